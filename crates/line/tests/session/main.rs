//! What an agent sees of its session: in either era, on servers of either era, on pipes and over HTTP.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(dead_code, reason = "what it shares with other tests is not used in whole")]

mod agent;
mod bytes;
mod context;
mod corners;
mod crowd;
#[cfg(unix)]
mod early;
mod failures;
mod lists;
#[path = "../it/look.rs"]
mod look;
mod order;
mod peer;
mod questions;
mod queues;
