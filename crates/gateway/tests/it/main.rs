//! The gateway as agents see it: real sockets in front, real processes behind.

#![allow(clippy::disallowed_methods, reason = "tests spawn, and measure with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]

mod addresses;
mod alone;
mod apps;
mod batches;
mod carried;
mod context;
mod corners;
mod durable;
mod ends;
mod environment;
mod eras;
mod faults;
mod filters;
mod hangs;
mod hostile;
mod kin;
mod kit;
mod lines;
mod names;
mod neighbours;
mod overload;
mod pages;
mod peer;
mod pipes;
mod questions;
mod refusals;
mod reload;
mod renames;
mod results;
mod streams;
mod tasks;
