//! The other gateways of a fleet, as far as agents' sessions go: a session has one home, and any gateway passes its requests on to it.

use std::fmt;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// What is promised for later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream of bytes between two gateways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why another gateway was not reached. Nothing was asked of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotReached {
    /// It is not there.
    Nobody,
    /// It may be there, and does not answer.
    Silence,
}

/// The fleet.
pub trait Kin: fmt::Debug + Send + Sync {
    /// This gateway's number, which nobody ever has again.
    fn own(&self) -> u64;

    /// Whether this gateway is about to go: nobody new should be sent to it.
    fn leaves(&self) -> bool {
        false
    }

    /// Whether a gateway is there.
    fn is_there(&self, node: u64) -> bool;

    /// The gateway where a session is at home whose own is not there any more, but for those that were tried. Everybody who sees the
    /// same gateways says the same.
    fn home(&self, session: &str, tried: &[u64]) -> Option<u64>;

    /// The key of this day, which all gateways have; `None` if it cannot be had now.
    fn key(&self, day: u64) -> Later<'_, Option<[u8; 32]>>;

    /// Those of that day that there are: whoever shows something that may be sealed makes no keys. It is more than one after a key was lost and another
    /// one made. `again`: those that were known here do not fit.
    fn known_keys(&self, day: u64, again: bool) -> Later<'_, Vec<[u8; 32]>>;

    /// A stream to another gateway's front.
    fn reach(&self, node: u64) -> Later<'_, Result<Box<dyn Stream>, NotReached>>;

    /// The next stream from another gateway; `None` when there will be none any more.
    fn accept(&self) -> Later<'_, Option<Box<dyn Stream>>>;
}
