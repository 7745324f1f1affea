//! There are none yet: a holder on Windows is not asked. A named pipe for this user alone would be one.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// There is none.
#[derive(Debug)]
pub(in crate::holder) enum Listener {}

/// There is none.
#[derive(Debug)]
pub(in crate::holder) enum Stream {}

impl Listener {
    #[expect(clippy::unused_async, reason = "stands in for one that waits")]
    pub(in crate::holder) async fn accept(&self) -> io::Result<(Stream, Stream)> {
        match *self {}
    }
}

pub(in crate::holder) fn bind(_: &Path) -> io::Result<Listener> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::holder) async fn connect(_: &Path) -> io::Result<Stream> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::holder) fn check_peer(stream: &Stream) -> io::Result<()> {
    match *stream {}
}

pub(in crate::holder) fn check_socket(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::NotFound.into())
}

/// Nobody is taken for dead.
pub(in crate::holder) const fn lives(_: u32) -> bool {
    true
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
