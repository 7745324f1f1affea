//! Reading from a pipe to its end.
//!
//! A write of no bytes is not the end of a pipe, and looks like it: by the documentation of `ReadFile`, whoever reads at that moment
//! reads none, and the runtime tells of both in the same way. Programs do write nothing, as for an empty print; so it is asked which
//! of the two it was.

#![allow(unsafe_code, reason = "whether a pipe has another end is told by a raw call only")]

use std::io;
use std::os::windows::io::AsRawHandle;
use std::pin::Pin;
use std::ptr::null_mut;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use windows_sys::Win32::System::Pipes::PeekNamedPipe;

/// A pipe that is read to its end; or something else, which ends as it does.
#[derive(Debug)]
pub struct Reading<R>(R);

impl<R: AsRawHandle> Reading<R> {
    /// Reads from this.
    pub const fn new(from: R) -> Self {
        Self(from)
    }

    /// Whether it is a pipe with somebody who could write, or something that was written.
    fn is_open(&self) -> bool {
        // SAFETY: the handle is open, and nothing is to be told but whether there is another end.
        unsafe {
            PeekNamedPipe(self.0.as_raw_handle(), null_mut(), 0, null_mut(), null_mut(), null_mut()) != 0
        }
    }
}

impl<R: AsyncRead + AsRawHandle + Unpin> AsyncRead for Reading<R> {
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
