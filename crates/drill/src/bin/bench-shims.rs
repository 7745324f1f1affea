//! Shims measured from the agent's side; what can be measured is printed without arguments.

use std::process::ExitCode;

use linetender_drill::bench::shims;

const USAGE: &str = "\
A shim is NAME=COMMAND: a program that speaks MCP on its pipes and has a tool `echo`.

bench-shims latency ROUNDS CALLS SHIM…   what each adds to the first, called alternately
bench-shims starts COUNT SHIM…           how long each needs to answer `initialize`, and what it takes up at rest
bench-shims at-once COUNT SHIM…          so many of it started together
bench-shims copy COMMAND…                be a shim that only copies both pipes

example: bench-shims latency 24 1000 direct=badserver 'copy=bench-shims copy badserver' 'run=linetender run -- badserver'
";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().unwrap_or(1);
    match args[..] {
        ["latency", rounds, calls, ref words @ ..] => shims::latency(number(rounds), number(calls), words),
        ["starts", count, ref words @ ..] => shims::starts(number(count), words),
        ["at-once", count, ref words @ ..] => shims::at_once(number(count), words),
        ["copy", ref command @ ..] => shims::copy(command),
        _ => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}
