//! Servers on macOS: below a reaper that hears of them by a kqueue and finds what is below them with libproc.

mod calls;
mod kernel;
mod named;
mod queue;
pub mod reaper;
pub(super) mod watched;

pub(super) use calls::{on_main_thread, session};
pub(super) use kernel::Mac;
pub use named::Named;
