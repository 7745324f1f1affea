//! An MCP server that misbehaves on purpose. See `linetender_badserver::stdio`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(done) = linetender_wire::stdio::reaper::run_if_asked() {
        return done;
    }
    linetender_badserver::stdio::main(std::env::args().skip(1))
}
