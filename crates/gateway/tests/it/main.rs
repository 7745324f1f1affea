//! The gateway as agents see it: real sockets in front, real processes behind.

#![allow(clippy::disallowed_methods, reason = "tests spawn, and measure with a real clock")]

mod eras;
mod faults;
mod kit;
mod names;
mod reload;
mod streams;
