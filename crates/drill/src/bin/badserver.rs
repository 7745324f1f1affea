//! An MCP server that misbehaves on purpose. See `linetender_drill::badserver`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    linetender_drill::badserver::main(std::env::args().skip(1))
}
