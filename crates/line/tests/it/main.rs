//! The stdio rows of the fault catalogue, against real processes. Each test is named by its row.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]

mod calls;
mod context;
mod deaths;
mod hangs;
mod idle;
mod kit;
mod look;
mod odd;
mod outcomes;
mod parking;
mod rig;
mod starts;
mod strangers;
// The words of a Linux system are in them.
#[cfg(target_os = "linux")]
mod texts;
