//! Our end of a server's stdout and stderr.
//!
//! A write of no bytes is not the end of a pipe, and looks like it: by the documentation of `ReadFile`, whoever reads at that moment
//! reads none, and the runtime tells of both in the same way.
//! Programs do write nothing, as after an empty print; so it is asked which of the two it was.

#![allow(unsafe_code, reason = "whether a pipe has another end is told by a raw call only")]

use std::io;
use std::os::windows::io::AsRawHandle as _;
use std::pin::Pin;
use std::ptr::null_mut;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::net::windows::named_pipe::NamedPipeServer;
use windows_sys::Win32::System::Pipes::PeekNamedPipe;

use crate::stdio::platform::Stdout;

/// How long what lies in a pipe may take to us: the system has it, and the runtime has yet to hear of that.
const TURN: Duration = Duration::from_millis(10);

/// A pipe that we read from.
pub(super) struct Up(NamedPipeServer);

impl Up {
    pub(super) const fn new(pipe: NamedPipeServer) -> Self {
        Self(pipe)
    }

    /// Whether there is somebody who could write, or something that was written.
    fn is_open(&self) -> bool {
        // SAFETY: the handle is open, and nothing is to be told but whether there is another end.
        unsafe {
            PeekNamedPipe(self.0.as_raw_handle(), null_mut(), 0, null_mut(), null_mut(), null_mut()) != 0
        }
    }
}

impl AsyncRead for Up {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        loop {
            // Each turn counts against what this task may do at a stretch, so one who writes nothing for ever keeps no thread.
            ready!(Pin::new(&mut self.0).poll_read(context, buffer))?;
            if buffer.filled().len() > before || !has_room || !self.is_open() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl Stdout for Up {
    /// A read is always under way: what it brings is here after a turn of the runtime.
    async fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let read = tokio::time::timeout(TURN, self.read_buf(buffer)).await;
        read.unwrap_or_else(|_| Err(io::ErrorKind::WouldBlock.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::Up;
    use crate::stdio::windows::pipes::Pipe;

    /// Of messages, since wine drops a write of nothing to any other pipe.
    #[tokio::test]
    async fn a_write_of_nothing_is_not_the_end() {
        let pipe = Pipe::of_messages().unwrap();
        let (mut up, mut theirs) = (Up::new(pipe.ours), File::from(pipe.theirs));
        let mut buffer = [0; 16];
        let mut read = async || {
            let read = tokio::time::timeout(Duration::from_secs(20), up.read(&mut buffer)).await;
            read.expect("an end in time").map(|bytes| buffer[..bytes].to_vec()).unwrap()
        };
        for nothings in [1, 3, 1000] {
            for _ in 0..nothings {
                assert_eq!(theirs.write(&[]).unwrap(), 0);
            }
            assert_eq!(theirs.write(b"x").unwrap(), 1);
            assert_eq!(read().await, b"x", "after {nothings}");
        }
        let _ = theirs.write(&[]).unwrap();
        drop(theirs);
        assert_eq!(read().await, b"", "the end");
    }
}
