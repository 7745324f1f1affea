//! The soaks, for a few seconds each: what needs a process, or a network, of its own.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(dead_code, reason = "what it shares with other tests is not used in whole")]

mod agents;
mod holders;
mod http;
#[path = "../../../line/tests/it/look.rs"]
mod look;
mod principals;

use std::process::Command;

const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

fn soak(words: &[&str]) -> Command {
    let mut command = Command::new(LINETENDER);
    command.args(["drill", "soak"]).args(words);
    command
}
