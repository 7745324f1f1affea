//! The seam below a connection. The system's network has no need of it; a simulation puts its own in this place.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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

    /// Since when nothing has come from the peer, where the system tells. Where it does not, its own timers find a dead peer.
    fn silence(&self) -> Option<Silence> {
        None
    }
}

/// What is known of a peer below every protocol.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Silence {
    /// How long ago the last packet came: bytes, or an acknowledgement.
    pub lasts: Duration,
    /// True if something was sent that the peer has to acknowledge, and has not: bytes, or a probe of the system's own.
    pub owes: bool,
    /// How often that was sent again.
    pub tries: u32,
}
