//! A server as a child process: its pipes, its exit, its whole tree.
//!
//! What is said and heard, and when it is over, is the same everywhere (`child`, `keeper`, `reader`, `writer`). What the
//! system does for it is behind the [`platform`] seam, and there is one module for each kind of system, with the same names in it:
//!
//! - `unix`: every server runs under a small process of ours, the [`reaper`], which outlives neither us nor it and leaves nothing
//!   behind; Linux and macOS have those. Elsewhere this process plays its part, and watches the server's process group.
//! - `windows`: every server runs in a Job Object, which the kernel ends with us.
//!
//! The pipes go straight from us to the server; nobody else holds a copy, so that end of file and "no reader left" mean what they
//! say.

mod child;
mod client;
pub mod container;
#[doc(hidden)]
pub mod control;
mod keeper;
mod left_behind;
mod passed;
#[doc(hidden)]
pub mod platform;
mod process;
mod reader;
mod residue;
mod stderr;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
pub(crate) mod writer;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use child::{Child, Env, Launch, Program, Reaper};
pub use client::{client, far_side};
pub use left_behind::LeftBehind;
pub use passed::pass_on;
pub use process::Process;
pub use residue::Residue;
pub(crate) use system::EXHAUSTED;
pub use system::{Lifeline, guard, raise_descriptor_limit, reaper, signals};
