//! The rows of the fault catalogue that are about the gateway as a process: `linetender serve`, killed, told to stop, and
//! without descriptors; and what it costs. What can be seen without a process is in `gateway/tests/it`.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock, and owns its tasks")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(dead_code, reason = "what it shares with other tests is not used in whole")]

#[path = "../agent/mod.rs"]
mod agent;
mod costs;
mod descriptors;
mod kit;
#[path = "../door/look.rs"]
mod look;
mod stops;
