//! The one room of this crate that starts tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

/// A task that ends with whoever owns it.
pub(crate) struct Owned<T> {
    handle: JoinHandle<T>,
    /// Whether its end was seen: a handle is not asked twice.
    seen: bool,
}

impl<T: Send + 'static> Owned<T> {
    #[expect(clippy::disallowed_methods, reason = "this is the room")]
    pub(crate) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { handle: tokio::task::spawn(work), seen: false }
    }
}

impl<T> Owned<T> {
    /// Ends it now.
    pub(crate) fn end(&self) {
        self.handle.abort();
    }

    /// Ends it, and returns when nothing of it is left.
    pub(crate) async fn ended(&mut self) {
        self.handle.abort();
        if !self.handle.is_finished() {
            let _ = (&mut self.handle).await;
        }
    }

    /// Returns when it has panicked, and never if it ends otherwise.
    pub(crate) async fn panicked(&mut self) {
        if !self.seen && self.await.is_err_and(|error| error.is_panic()) {
            return;
        }
        std::future::pending::<()>().await;
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
        let polled = Pin::new(&mut self.handle).poll(context);
        self.seen |= polled.is_ready();
        polled
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}
