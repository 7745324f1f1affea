//! There is none: agents on Windows come by the address.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// There is none.
#[derive(Debug)]
pub(in crate::front) enum Socket {}

/// There is none.
#[derive(Debug)]
pub(in crate::front) enum Stream {}

/// There is nobody.
pub(in crate::front) const fn owner(stream: &Stream) -> Option<u32> {
    match *stream {}
}

impl Socket {
    /// # Errors
    /// Always.
    pub(in crate::front) fn bind(_: &Path, _: bool) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "there are no Unix sockets on Windows: remove gateway.socket, and let agents use gateway.listen",
        ))
    }

    #[expect(clippy::unused_async, reason = "stands in for one that waits")]
    pub(in crate::front) async fn accept(&self) -> io::Result<Stream> {
        match *self {}
    }

    pub(in crate::front) const fn path(&self) -> &Path {
        match *self {}
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self.get_mut() {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self.get_mut() {}
    }
}
