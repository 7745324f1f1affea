//! Work that takes long, on a thread where it holds up no other task.

use std::sync::{Arc, Mutex, PoisonError};

use crate::caught_now;

/// Does this on a thread for long work; here, if this machine gives us none (a limit of processes). `None` if it panicked.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // The runtime panics if it has no thread and gets none. The work must not be lost with that.
    let work = Arc::new(Mutex::new(Some(work)));
    let (theirs, ours) = (Arc::clone(&work), work);
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    match caught_now(|| tokio::task::spawn_blocking(move || take(&theirs).map(|work| work()))) {
        Ok(working) => working.await.ok().flatten(),
        Err(_) => take(&ours).and_then(|work| caught_now(work).ok()),
    }
}
