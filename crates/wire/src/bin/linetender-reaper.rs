//! The reaper as a program of its own, for hosts that cannot call it first thing in their `main`.

use std::process::ExitCode;

fn main() -> ExitCode {
    linetender_wire::stdio::reaper::run_if_asked().unwrap_or_else(|| {
        eprintln!("linetender-reaper is started by linetender, to watch over one server; there is nothing to do by hand");
        ExitCode::FAILURE
    })
}
