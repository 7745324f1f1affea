//! A socket with a tap: faults below HTTP are made here, where no server library can soften them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How a connection ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// A reset: what was not yet delivered is lost.
    Reset,
    /// A proper end of the stream.
    Fin,
}

/// What flows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Flow {
    Open,
    Silent,
    /// HTTP says good-bye: GOAWAY, or `Connection: close`.
    Leaving,
    /// HTTP/2: every stream that is open is disowned.
    Disowned,
    /// The next write is the last.
    LastWrite(Ending),
    Ended(Ending),
}

/// The handle of one connection's tap.
#[derive(Debug)]
pub(super) struct Tap {
    /// The port of whoever is at the other end.
    pub(super) client: u16,
    flow: watch::Sender<Flow>,
    written: watch::Sender<u64>,
    stuck: Mutex<Vec<Waker>>,
}

/// A socket that obeys its tap.
pub(super) struct Tapped {
    stream: TcpStream,
    tap: Arc<Tap>,
}

impl Tap {
    pub(super) fn new(flow: Flow, client: u16) -> Self {
        Self {
            client,
            flow: watch::Sender::new(flow),
            written: watch::Sender::new(0),
            stuck: Mutex::default(),
        }
    }

    /// Turns it. An ended connection stays ended.
    pub(super) fn turn(&self, flow: Flow) {
        self.flow.send_if_modified(|now| {
            let changes = !matches!(now, Flow::Ended(_)) && *now != flow;
            if changes {
                *now = flow;
            }
            changes
        });
        for waker in self.stuck.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            waker.wake();
        }
    }

    pub(super) fn flow(&self) -> Flow {
        *self.flow.borrow()
    }

    /// Until it has been turned to what is looked for.
    pub(super) async fn until(&self, wanted: impl Fn(&Flow) -> bool) {
        let _ = self.flow.subscribe().wait_for(wanted).await;
    }

    /// How many bytes the kernel has taken.
    pub(super) fn written(&self) -> u64 {
        *self.written.borrow()
    }

    /// Until the kernel has taken so many.
    pub(super) async fn until_written(&self, bytes: u64) {
        let _ = self.written.subscribe().wait_for(|written| *written >= bytes).await;
    }

    fn holds(&self, context: &Context<'_>) -> bool {
        // The waker is left before the look, or a turn in between would be missed.
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = self.flow() == Flow::Silent;
        if holds && !stuck.iter().any(|waker| waker.will_wake(context.waker())) {
            stuck.push(context.waker().clone());
        }
        holds
    }

    fn wrote(&self, bytes: usize) {
        self.written.send_modify(|written| *written += bytes as u64);
        if let Flow::LastWrite(how) = self.flow() {
            self.turn(Flow::Ended(how));
        }
    }
}

impl Tapped {
    pub(super) fn new(stream: TcpStream, tap: Arc<Tap>) -> Self {
        Self { stream, tap }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.tap.holds(context) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.tap.holds(context) {
            return Poll::Pending;
        }
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.tap.wrote(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tap.holds(context) {
            return Poll::Pending;
        }
        // A proper end would come before the reset.
        if self.tap.flow() == Flow::Ended(Ending::Reset) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        if self.tap.flow() == Flow::Ended(Ending::Reset) {
            // With no time to linger, the kernel resets instead of closing.
            let _ = self.stream.set_zero_linger();
        }
    }
}
