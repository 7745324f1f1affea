//! Making a generation, and talking to it.
//!
//! In: a configured server, and a turn at the rig's dial limit. Out: a [`Link`]: a process or an address that was greeted, with a book of
//! calls on the way down and an ear on the way up. What callers asked the server to keep doing is asked of each new one.

mod context;
mod dial;
mod dial_limit;
mod ear;
mod link;
mod listen;
mod predecessors;
mod reach;
mod relay;
mod session_check;
mod stray;
mod wishes;

pub(crate) use context::ServerContext;
pub(crate) use dial::{Dial, DialNews};
pub(crate) use dial_limit::{Counted, DialLimit};
pub(crate) use ear::{Ear, ListsHeard, UNUSED};
pub(crate) use link::{Connection, Link, Live, Probed};
pub(crate) use listen::listen;
pub(crate) use predecessors::Predecessors;
pub(crate) use reach::Reach;
pub(crate) use relay::Process;
pub(crate) use wishes::{RESOURCES, Wishes};
