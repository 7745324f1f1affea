//! The one room of this crate that starts tasks: simulated processes live as long as they like.

use tokio::task::JoinHandle;

#[expect(clippy::disallowed_methods, reason = "a simulated process has no owner among ours")]
pub(crate) fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}
