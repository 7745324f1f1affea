//! The HTTP rows of the fault catalogue, over real sockets. Each test is named by its row.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(dead_code, reason = "what it shares with the stdio rows is not used in whole")]

mod alone;
mod calls;
mod context;
mod desk;
mod hangs;
mod keys;
mod kit;
mod lines;
#[path = "../it/look.rs"]
mod look;
mod network;
mod odd;
mod records;
mod refusals;
mod secure;
mod sessions;
mod sse;
mod streams;
