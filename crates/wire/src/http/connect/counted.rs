//! Counts what is written, so that "no byte of it was" is a fact.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// A stream that counts. It stands below TLS: TLS may send a part of what it is given and then report an error of all of it.
/// What TLS says on its own behalf counts too, so that a request may count as written that was not, and never the reverse.
pub(crate) struct Counted<T> {
    io: T,
    written: Written,
}

/// How many bytes were accepted so far, and when the last of them was.
#[derive(Clone, Debug)]
pub(crate) struct Written(Arc<Count>);

#[derive(Debug)]
struct Count {
    bytes: AtomicU64,
    /// When the last byte was accepted, in nanoseconds after `since`.
    last: AtomicU64,
    since: Instant,
}

impl Written {
    fn new() -> Self {
        Self(Arc::new(Count { bytes: AtomicU64::new(0), last: AtomicU64::new(0), since: Instant::now() }))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Acquire)
    }

    /// How long ago the last byte was accepted.
    pub(crate) fn since_last(&self) -> Duration {
        let last = Duration::from_nanos(self.0.last.load(Ordering::Acquire));
        self.0.since.elapsed().saturating_sub(last)
    }

    fn add(&self, bytes: usize) {
        let now = u64::try_from(self.0.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.last.store(now, Ordering::Release);
        self.0.bytes.fetch_add(bytes as u64, Ordering::Release);
    }
}

impl<T> Counted<T> {
    pub(crate) fn new(io: T) -> (Self, Written) {
        let written = Written::new();
        (Self { io, written: written.clone() }, written)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = ready!(Pin::new(&mut self.io).poll_write(context, bytes))?;
        self.written.add(taken);
        Poll::Ready(Ok(taken))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let taken = ready!(Pin::new(&mut self.io).poll_write_vectored(context, slices))?;
        self.written.add(taken);
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
