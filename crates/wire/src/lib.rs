//! JSON-RPC frames and how they travel, for linetender alone: this crate has **no stable interface**.
//!
//! A generation is something that takes frames, yields frames, and ends with a cause. This crate makes such things:
//! [`stdio`] runs a server as a child process under a [`reaper`](stdio::reaper) of ours, and [`http`] has the parts of a
//! client for servers elsewhere. It owns the bytes, and it says what happened to them; it decides nothing. What to do about it is the core's business, and who does it the tender's.

pub mod allocator;
mod aside;
mod caught;
mod elsewhere;
pub mod frame;
pub mod handshake;
pub mod hop;
pub mod http;
mod lines;
pub mod queue;
#[cfg(unix)]
mod readable;
mod redact;
mod reopen;
mod room;
pub mod seam;
mod secrets;
mod seen;
mod slept;
pub mod stdio;
mod steady;
mod tasks;
#[doc(hidden)]
pub mod test_hooks;
pub mod visible;
pub mod wall;
#[cfg(windows)]
#[doc(hidden)]
pub mod windows;

pub use aside::aside;
pub use caught::{Panicked, caught, caught_now, renewed};
#[doc(hidden)]
pub use elsewhere::Elsewhere;
pub use lines::{About, Item, Lines, about};
pub use redact::Redacted;
pub use reopen::Reopen;
pub use room::{NoRoom, Room};
pub use secrets::{Secrets, hide};
pub use seen::{Detail, Exit, Pipe, Seen};
pub use slept::{SleepWatch, Slept};
pub use steady::Steady;
