//! A connection whose peer has to take what it asked for: one that reads nothing for a while is dropped, and what was kept for it
//! with it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long a peer may take to read anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Stall<S> {
    stream: S,
    /// Until when it has to take something, if something waits for it.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Stall<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    /// Passes on what writing came to, unless it has waited for too long.
    fn within<T>(&mut self, context: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.until = None;
            return wrote;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PATIENCE)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wrote = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, wrote)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wrote = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, wrote)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::{PATIENCE, Stall};

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_dropped_and_a_slow_one_is_not() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut ours = Stall::new(ours);
        let slow = async {
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE / 2).await;
                theirs.read_exact(&mut [0; 64]).await.unwrap();
            }
        };
        let (wrote, ()) = tokio::join!(ours.write_all(&[0; 256]), slow);
        wrote.unwrap();
        let began = Instant::now();
        let error = ours.write_all(&[0; 256]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
    }
}
