//! The seam below a connection. The system's network has no need of it; a simulation puts its own in this place.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

/// Connects to hosts that exist nowhere else.
pub trait Network: Send + Sync {
    /// Connects to one.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;
}

/// A connection in the making.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Socket>>> + Send + 'a>>;

/// A connection, as the code above TCP sees it.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// How it can be looked at while somebody else reads from it.
    fn look(&self) -> Arc<dyn Quiet>;
}

/// A connection that can be looked at.
pub trait Quiet: Send + Sync {
    /// Nothing to read, and not closed: what an idle connection has to be before it is used again.
    fn is_quiet(&self) -> bool;
}
