//! The reaper as a program of its own, for hosts that cannot call it first thing in their `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    linetender_wire::stdio::reaper::run_if_asked().unwrap_or_else(|| {
        eprintln!("linetender-reaper is started by linetender to supervise one server process; it is not meant to be run by hand");
        ExitCode::FAILURE
    })
}
