//! The client that the official conformance suite judges. See `linetender_drill::conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    linetender_drill::conformance::main(std::env::args().skip(1))
}
