//! There is none: agents on Windows come by the address.

use std::io;
use std::path::Path;

/// There is none.
#[derive(Debug)]
pub(in crate::front) enum Socket {}

/// What an agent would come on.
pub(in crate::front) type Stream = tokio::io::Empty;

/// There is nobody.
pub(in crate::front) const fn owner(_: &Stream) -> Option<u32> {
    None
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
