//! An MCP server that misbehaves on purpose. See `linetender_badserver::stdio`.

// On Windows it has no console: wine starts a process for each of them, which would hold the pipes that the server closes.
#![cfg_attr(windows, windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(done) = linetender_wire::stdio::reaper::run_if_asked() {
        return done;
    }
    linetender_badserver::stdio::main(std::env::args().skip(1))
}
