//! Doors measured from the agent's side; what can be measured is printed without arguments.

use std::process::ExitCode;

use linetender_drill::doors;

const USAGE: &str = "\
A door is NAME=COMMAND: a program that speaks MCP on its pipes and has a tool `echo`.

doors latency ROUNDS CALLS DOOR…   what each adds to the first, called alternately
doors starts COUNT DOOR…           how long each needs to answer `initialize`, and what it takes up at rest
doors at-once COUNT DOOR…          so many of it started together
doors copy COMMAND…                be a door that only copies both pipes

example: doors latency 24 1000 direct=badserver 'copy=doors copy badserver' 'run=linetender run -- badserver'
";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().unwrap_or(1);
    match args[..] {
        ["latency", rounds, calls, ref words @ ..] => doors::latency(number(rounds), number(calls), words),
        ["starts", count, ref words @ ..] => doors::starts(number(count), words),
        ["at-once", count, ref words @ ..] => doors::at_once(number(count), words),
        ["copy", ref command @ ..] => doors::copy(command),
        _ => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}
