//! What a process that holds lines does beside them: it writes a [`journal`], answers at a socket where its lines stand
//! ([`Holder`], [`look`](holder::look)), remembers on disk what servers said of themselves ([`Memory`]),
//! and writes down each call, if it is asked to ([`audit`]).
//!
//! None of it is needed to use a line, and no line waits for any of it; whoever answers an agent may wait for the audit.
//!
//! ```no_run
//! use linetender::Rig;
//! use linetender_holder::{Holder, Memory};
//!
//! # fn main() -> std::io::Result<()> {
//! let holder = Holder::new("my program", None, None);
//! let rig = Rig::new().followed_by(holder.clone()).remembering(Memory::open("memory")?);
//! # drop(rig);
//! # Ok(())
//! # }
//! ```

pub mod audit;
mod files;
pub mod holder;
pub mod journal;
mod memory;
pub mod processes;
pub mod story;
pub mod tally;
pub mod trusted;

pub use holder::Holder;
pub use memory::Memory;

/// What stands in the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
