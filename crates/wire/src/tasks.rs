//! The one room of this crate that starts tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

/// A task that ends with whoever owns it.
pub(crate) struct Owned<T>(JoinHandle<T>);

impl<T: Send + 'static> Owned<T> {
    #[expect(clippy::disallowed_methods, reason = "this is the room")]
    pub(crate) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::task::spawn(work))
    }
}

impl<T> Owned<T> {
    /// Ends it now.
    pub(crate) fn end(&self) {
        self.0.abort();
    }

    /// Ends it, and returns when nothing of it is left.
    pub(crate) async fn ended(&mut self) {
        self.0.abort();
        if !self.0.is_finished() {
            let _ = (&mut self.0).await;
        }
    }
}

/// Starts a task that nobody owns, because it has to outlive its owner by the little that it takes to clean up.
#[expect(clippy::disallowed_methods, reason = "this is the room")]
pub(crate) fn spawn_last(work: impl Future<Output = ()> + Send + 'static) {
    tokio::task::spawn(work);
}

impl<T> Future for Owned<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
