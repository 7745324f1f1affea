//! Who waits for an answer on the event stream of HTTP+SSE, and that it ended.
//!
//! A message that was taken is answered there. So the exchange of a request is not over when its POST is, but when its answer was
//! heard, or when none can come any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::redact::Redacted;
use crate::seen::Seen;

/// The requests of one stream that have no answer yet.
pub(super) struct Replies(Mutex<State>);

enum State {
    /// It is open, or not yet.
    Open(HashMap<u64, oneshot::Sender<()>>),
    /// It is not any more.
    Ended(Redacted),
}

/// A request that waits for its answer. Dropped, it waits no more.
pub(super) struct Awaited<'a> {
    id: u64,
    replies: &'a Replies,
    told: oneshot::Receiver<()>,
}

impl Replies {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Open(HashMap::new())))
    }

    /// No code that holds this lock can panic, and none waits.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From before it is sent: a quick server answers before it says that it took the request.
    pub(super) fn wait_for(&self, id: u64) -> Awaited<'_> {
        let (tell, told) = oneshot::channel();
        if let State::Open(waiting) = &mut *self.state() {
            waiting.insert(id, tell);
        }
        Awaited { id, replies: self, told }
    }

    /// It was answered.
    pub(super) fn answered(&self, id: u64) {
        if let State::Open(waiting) = &mut *self.state()
            && let Some(tell) = waiting.remove(&id)
        {
            let _ = tell.send(());
        }
    }

    /// The stream is over: nothing else will be answered.
    pub(super) fn end(&self, words: Redacted) {
        *self.state() = State::Ended(words);
    }
}

impl Awaited<'_> {
    /// Until it was answered; or what was seen, if it will not be.
    pub(super) async fn over(mut self) -> Option<Seen> {
        if (&mut self.told).await.is_ok() {
            return None;
        }
        match &*self.replies.state() {
            State::Ended(words) => Some(Seen::StreamEnded { words: words.clone() }),
            State::Open(_) => None,
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if let State::Open(waiting) = &mut *self.replies.state() {
            waiting.remove(&self.id);
        }
    }
}
