//! A request that has an exchange of its own, carried by whoever waits for its answer.
//!
//! A frame for a pipe has to pass its writer; one that goes its own way need not pass anybody. Handing it to a task, and the
//! answer back, costs more than all that is done to it on the way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::Outgoing;

/// What an exchange does.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes exchanges of frames.
pub(crate) trait Carrier: Send + Sync {
    /// An exchange, or the frame if it has to wait its turn.
    fn carry(self: Arc<Self>, outgoing: Outgoing) -> Result<Exchange, Outgoing>;
}

/// A request on its way. It goes as far as it is polled; dropped, it ends.
pub struct Exchange {
    work: Work,
    rest: mpsc::Sender<Work>,
}

impl Exchange {
    pub(crate) fn new(work: Work, rest: mpsc::Sender<Work>) -> Self {
        Self { work, rest }
    }

    /// Its call is over, and it is not: the generation carries what is left of it, and ends it with itself.
    pub fn leave(self) {
        // Without room it is dropped. Then a connection is closed that could have been kept.
        let _ = self.rest.try_send(self.work);
    }
}

impl Future for Exchange {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.work.as_mut().poll(context)
    }
}
