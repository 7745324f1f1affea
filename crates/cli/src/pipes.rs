//! The agent's two pipes, as each system has them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

#[cfg(unix)]
pub(crate) use unix::Pipes;
#[cfg(windows)]
pub(crate) use windows::Pipes;

/// How often it is looked whether an agent that stopped asking still reads. It is given a few seconds at most.
const LOOK: Duration = Duration::from_millis(20);

/// What the agent says.
type Input = Box<dyn AsyncRead + Send + Unpin>;

/// What the agent hears.
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// An end that says when there was no more to read.
struct Heard<R>(R, Arc<Notify>);

impl<R: AsyncRead + Unpin> AsyncRead for Heard<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self(input, ended) = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(input).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() == before {
            ended.notify_one();
        }
        read
    }
}
