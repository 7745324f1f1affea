//! Bodies that are written as they go, so that a fault can happen at any byte.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::tap::Tap;

type Work = Pin<Box<dyn Future<Output = Result<(), Gone>> + Send>>;

/// The body of an answer.
pub(super) enum Out {
    /// All there is.
    Whole(Option<Bytes>),
    /// What a piece of work says while it is polled. Nobody has to own a task for it: it ends with its body.
    Live { work: Option<Work>, said: mpsc::Receiver<Bytes>, cut: Option<Gone> },
}

/// What a live body's work speaks into.
#[derive(Clone)]
pub(super) struct Sink {
    says: mpsc::Sender<Bytes>,
    tap: Arc<Tap>,
}

/// An answer that does not come, or not to its end.
#[derive(Debug)]
pub(super) struct Gone(Option<h2::Error>);

impl Out {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }

    pub(super) fn live<F>(tap: &Arc<Tap>, work: impl FnOnce(Sink) -> F) -> Self
    where
        F: Future<Output = Result<(), Gone>> + Send + 'static,
    {
        // One at a time: a peer that does not read holds the work, and nothing piles up.
        let (says, said) = mpsc::channel(1);
        let sink = Sink { says, tap: Arc::clone(tap) };
        Self::Live { work: Some(Box::pin(work(sink))), said, cut: None }
    }
}

impl Sink {
    pub(super) async fn say(&self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            let _ = self.says.send(bytes).await;
        }
    }

    /// Says it, and waits until the kernel has it: what follows cannot overtake it.
    pub(super) async fn say_now(&self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let goal = self.tap.written() + bytes.len() as u64;
        self.say(bytes).await;
        self.tap.until_written(goal).await;
    }
}

impl Gone {
    /// The connection is cut; an HTTP/2 stream is reset.
    pub(super) fn cut() -> Self {
        Self(None)
    }

    /// On HTTP/2, a stream reset that says nothing was done.
    pub(super) fn refused() -> Self {
        Self(Some(h2::Reason::REFUSED_STREAM.into()))
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cut on purpose")
    }
}

impl Error for Gone {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_ref().map(|error| error as _)
    }
}

impl Body for Out {
    type Data = Bytes;
    type Error = Gone;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Gone>>> {
        let (work, said, cut) = match &mut *self {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Live { work, said, cut } => (work, said, cut),
        };
        if let Some(running) = work
            && let Poll::Ready(done) = running.as_mut().poll(context)
        {
            *cut = done.err();
            *work = None;
        }
        match said.poll_recv(context) {
            Poll::Ready(Some(bytes)) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Poll::Ready(None) => Poll::Ready(cut.take().map(Err)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Live { .. } => SizeHint::default(),
        }
    }
}
