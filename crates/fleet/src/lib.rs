//! Several gateways, one set of lines.
//!
//! A line with a memory lives in one gateway at a time. Which one is written in a [`Directory`] that all of them reach; the rules are
//! those of [`linetender_core::lease`], and [`Ownership`] follows them for one line. [`placement`] says who should have it.

mod clock;
pub mod directory;
mod fleet;
mod local;
#[cfg(feature = "nats")]
mod nats;
mod ownership;
pub mod placement;
#[cfg(any(feature = "nats", test))]
mod written;

pub use clock::now;
pub use directory::{Away, Directory};
pub use fleet::Fleet;
pub use linetender_core::lease::{Entry, Node, Revision, Terms};
pub use local::Local;
#[cfg(feature = "nats")]
pub use nats::{
    Gone, House, Input, Joined, LineReport, Member, Nats, NodeStream, Options, Output, Report, Seat,
};
pub use ownership::{Asked, Clock, Ownership, Stand};
