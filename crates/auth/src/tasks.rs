//! The one room of this crate that starts tasks.

use std::future::Future;

use tokio::task::JoinHandle;

/// A task that bounds itself, and is not lost when whoever asked for it goes away.
#[expect(clippy::disallowed_methods, reason = "this is the room")]
pub(crate) fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn(work)
}
