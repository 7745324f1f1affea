//! A directory in memory, for one process: what holds for a fleet holds for one gateway too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linetender_core::lease::{Entry, Revision};
use tokio::sync::mpsc;

use crate::directory::{Begun, Changed, Directory, Later, There};

/// Changes that wait for whoever watches. One that does not read them begins anew.
const WAITING: usize = 1024;

/// Calls that are remembered. Of more, the oldest are forgotten.
const CALLS: usize = 65_536;

/// The directory. Cheap to clone.
#[derive(Clone, Default)]
pub struct Local(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    last: u64,
    lines: BTreeMap<String, (Revision, Entry)>,
    watchers: Vec<mpsc::Sender<Changed>>,
    calls: BTreeMap<String, (u64, Vec<u8>)>,
    /// By when they came.
    order: BTreeMap<u64, String>,
}

impl Local {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory for Local {
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There> {
        Box::pin(std::future::ready(Ok(self.inner().lines.get(line).copied())))
    }

    fn put<'a>(
        &'a self,
        line: &'a str,
        expected: Option<Revision>,
        entry: Entry,
    ) -> Later<'a, Option<Revision>> {
        let mut inner = self.inner();
        let there = inner.lines.get(line).map(|(revision, _)| *revision);
        let revision = (there == expected).then(|| {
            inner.last += 1;
            Revision(inner.last)
        });
        if let Some(revision) = revision {
            inner.lines.insert(line.to_owned(), (revision, entry));
            let changed = Changed { line: line.to_owned(), there: Some((revision, entry)) };
            inner.watchers.retain(|watcher| watcher.try_send(changed.clone()).is_ok());
        }
        Box::pin(std::future::ready(Ok(revision)))
    }

    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>> {
        let (tell, changes) = mpsc::channel(WAITING);
        self.inner().watchers.push(tell);
        Box::pin(std::future::ready(Ok(changes)))
    }

    fn begin<'a>(&'a self, call: &'a str, note: &'a [u8]) -> Later<'a, Begun> {
        let mut inner = self.inner();
        let known = inner.calls.get(call).map(|(_, known)| Begun::Known(known.clone()));
        let begun = known.unwrap_or_else(|| {
            inner.last += 1;
            let number = inner.last;
            inner.calls.insert(call.to_owned(), (number, note.to_owned()));
            inner.order.insert(number, call.to_owned());
            if inner.order.len() > CALLS
                && let Some((_, oldest)) = inner.order.pop_first()
            {
                inner.calls.remove(&oldest);
            }
            Begun::New
        });
        Box::pin(std::future::ready(Ok(begun)))
    }

    fn finish<'a>(&'a self, call: &'a str, note: &'a [u8]) -> Later<'a, ()> {
        if let Some((_, known)) = self.inner().calls.get_mut(call) {
            note.clone_into(known);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::Local;
    use crate::directory::{Begun, Directory as _};
    use linetender_core::lease::{Entry, Held};

    const FREE: Entry = Entry { held: Held::Free, written: 0 };

    #[tokio::test]
    async fn only_what_was_expected_is_replaced() {
        let local = Local::default();
        let mut changes = local.watch().await.unwrap();
        let first = local.put("a", None, FREE).await.unwrap().unwrap();
        assert_eq!(local.put("a", None, FREE).await.unwrap(), None);
        let second = local.put("a", Some(first), FREE).await.unwrap().unwrap();
        assert_eq!(local.put("a", Some(first), FREE).await.unwrap(), None);
        assert_eq!(local.look("a").await.unwrap(), Some((second, FREE)));
        assert_eq!(local.look("b").await.unwrap(), None);
        assert_eq!(changes.recv().await.unwrap().there, Some((first, FREE)));
        assert_eq!(changes.recv().await.unwrap().there, Some((second, FREE)));
        assert!(changes.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_call_begins_once() {
        let local = Local::default();
        assert_eq!(local.begin("call", b"runs").await.unwrap(), Begun::New);
        assert_eq!(local.begin("call", b"again").await.unwrap(), Begun::Known(b"runs".to_vec()));
        local.finish("call", b"done").await.unwrap();
        assert_eq!(local.begin("call", b"again").await.unwrap(), Begun::Known(b"done".to_vec()));
    }
}
