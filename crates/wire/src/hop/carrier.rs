//! The streams of bytes between asker and owner.
//!
//! An owner on this machine is [`near`]. One on another machine is reached by whatever its fleet talks over ([`Far`]).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::near;

/// Both directions.
pub(super) type Carrier = (Input, Output);

/// What an owner on another machine says. That it ended does not say what the owner had read: the owner may live, and what was on its way
/// may still arrive.
pub trait Far: AsyncRead + Send + Unpin {
    /// After its end: up to which byte the owner can have taken what was written to it, if that is known. It has acknowledged so much.
    fn taken(&self, acknowledged: u64) -> Option<u64>;
}

/// What is read from.
pub(super) enum Input {
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody is near on such a system"))]
    Near(near::Input),
    Far(Box<dyn Far>),
}

/// What is written to.
pub(super) enum Output {
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody is near on such a system"))]
    Near(near::Output),
    Far(Box<dyn AsyncWrite + Send + Sync + Unpin>),
}

impl Input {
    /// Reads what is there, and waits for nothing.
    ///
    /// # Errors
    /// If nothing is there.
    pub(super) fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Near(near) => near.read_now(buffer),
            Self::Far(far) => {
                let mut space = [0; 8 * 1024];
                let mut read = ReadBuf::new(&mut space);
                match Pin::new(far).poll_read(&mut Context::from_waker(Waker::noop()), &mut read) {
                    Poll::Ready(done) => done?,
                    Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
                }
                buffer.extend_from_slice(read.filled());
                Ok(read.filled().len())
            }
        }
    }

    /// After its end: up to which byte the owner has taken what was written to it, if that is known.
    pub(super) fn taken(&self, acknowledged: u64) -> Option<u64> {
        match self {
            // Whoever held the other end acknowledged what it took before it acted on it, and is gone.
            Self::Near(_) => Some(acknowledged),
            Self::Far(far) => far.taken(acknowledged),
        }
    }
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Near(near) => Pin::new(near).poll_read(cx, buf),
            Self::Far(far) => Pin::new(far).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Near(near) => Pin::new(near).poll_write(cx, bytes),
            Self::Far(far) => Pin::new(far).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Near(near) => Pin::new(near).poll_shutdown(cx),
            Self::Far(far) => Pin::new(far).poll_shutdown(cx),
        }
    }
}
