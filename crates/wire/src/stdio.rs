//! A server as a child process: its pipes, its exit, its whole tree.
//!
//! Every server runs under a small process of ours, the [`reaper`], which outlives neither us nor it and leaves
//! nothing behind. The pipes go straight from us to the server; the reaper holds no copy, so that end of file and
//! "no reader left" mean what they say.

mod child;
#[doc(hidden)]
pub mod control;
mod descriptors;
pub mod guard;
mod keeper;
mod lifeline;
mod local;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod orphans;
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[path = "stdio/no_orphans.rs"]
mod orphans;
#[doc(hidden)]
pub mod platform;
mod reader;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub mod reaper;
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[path = "stdio/no_reaper.rs"]
pub mod reaper;
mod reaper_program;
mod remains;
pub mod signals;
mod stderr;
pub(crate) mod writer;

pub use child::{Child, Env, Launch, Program, Reaper};
pub use descriptors::raise_descriptor_limit;
pub use lifeline::Lifeline;
