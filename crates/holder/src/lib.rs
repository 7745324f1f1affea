//! What a process that holds lines does beside them: it writes a [`journal`], answers at a socket where its lines stand
//! ([`Holder`], [`look`](holder::look)), and remembers on disk what servers said of themselves ([`Memory`]).
//!
//! None of it is needed to use a line, and no line waits for any of it.
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

pub mod holder;
pub mod journal;
mod memory;
pub mod story;
pub mod trusted;

pub use holder::Holder;
pub use memory::Memory;

/// What stands in the crate's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
