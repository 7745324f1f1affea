//! What happens, told as it happens: server-sent events.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use linetender::visible;
use linetender_holder::Holder;
use linetender_holder::holder::CallReport;
use linetender_holder::journal::Entry;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast};

use crate::routes::Missed;

/// After how much silence a comment is sent, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The first thing that is sent: the reader knows that nothing is missed from here on.
const HELLO: &[u8] = b"retry: 1000\n: watching\n\n";

/// The rest of a stream, and its next piece.
pub(crate) type Next = Pin<Box<dyn Future<Output = Option<(Watch, Bytes)>> + Send>>;

/// Somebody who watches.
pub(crate) struct Watch {
    greeted: bool,
    entries: broadcast::Receiver<Arc<Entry>>,
    calls: Option<broadcast::Receiver<Arc<CallReport>>>,
    /// There are only so many.
    _place: OwnedSemaphorePermit,
}

impl Watch {
    pub(crate) fn new(holder: &Holder, calls: bool, place: OwnedSemaphorePermit) -> Self {
        let calls = calls.then(|| holder.watch_calls());
        Self { greeted: false, entries: holder.watch_events(), calls, _place: place }
    }

    /// The next piece. What comes faster than it is read is counted, and its number told.
    pub(crate) fn next(mut self) -> Next {
        Box::pin(async move {
            if !self.greeted {
                self.greeted = true;
                return Some((self, Bytes::from_static(HELLO)));
            }
            let calls = async {
                match &mut self.calls {
                    Some(calls) => calls.recv().await,
                    None => std::future::pending().await,
                }
            };
            let told = tokio::select! {
                entry = self.entries.recv() => told("entry", entry),
                call = calls => told("call", call),
                () = tokio::time::sleep(KEEP_ALIVE) => Some(Bytes::from_static(b": still here\n\n")),
            };
            told.map(|bytes| (self, bytes))
        })
    }
}

fn told<T: Serialize>(name: &str, heard: Result<Arc<T>, RecvError>) -> Option<Bytes> {
    let (name, text) = match heard {
        Ok(one) => (name, serde_json::to_string(&*one).ok()?),
        Err(RecvError::Lagged(missed)) => ("missed", serde_json::to_string(&Missed { missed }).ok()?),
        Err(RecvError::Closed) => return None,
    };
    // JSON text has no line breaks of its own, so it is one line of data.
    Some(Bytes::from(format!("event: {name}\ndata: {}\n\n", visible::json(&text))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use linetender::Redacted;
    use linetender_holder::Holder;
    use tokio::sync::Semaphore;

    use super::Watch;

    #[tokio::test(start_paused = true)]
    async fn a_watcher_is_greeted_told_what_it_missed_and_kept_awake() {
        let holder = Holder::new("serve", None, None);
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (watch, hello) = Watch::new(&holder, true, place).next().await.unwrap();
        assert!(hello.ends_with(b"\n\n"));
        for _ in 0..1000 {
            holder.begin("1", &Redacted::head("a\u{2028}b\nc", 100));
        }
        let (watch, missed) = watch.next().await.unwrap();
        assert!(missed.starts_with(b"event: missed\ndata: {\"missed\":7"), "{missed:?}");
        let (mut watch, entry) = watch.next().await.unwrap();
        let text = std::str::from_utf8(&entry).unwrap();
        assert!(text.starts_with("event: entry\ndata: {\"v\":1,"), "{text}");
        assert_eq!(text.lines().count(), 3, "it is one line of data: {text}");
        loop {
            let (rest, piece) = watch.next().await.unwrap();
            if piece.starts_with(b": ") {
                break;
            }
            watch = rest;
        }
    }
}
