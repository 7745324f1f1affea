//! Shims measured from the agent's side: any program that speaks MCP on its pipes, the server itself included.
//!
//! A shim is a command line, so that a server itself, a shim of ours and a shim of somebody else's are measured by one
//! client in one run, alternately.

mod program;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use crate::figures::{interval, median, share};
use program::Program;

/// A shim: what it is called, and how it is started.
struct Shim {
    name: String,
    command: Vec<String>,
}

impl Shim {
    /// `NAME=COMMAND AND ITS WORDS`.
    fn of(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or(format!("a shim is NAME=COMMAND, not {text}"))?;
        Ok(Self { name: name.to_owned(), command: command.split_whitespace().map(str::to_owned).collect() })
    }
}

fn shims(words: &[&str]) -> Result<Vec<Shim>, String> {
    if words.is_empty() {
        Err("which shims?".into())
    } else {
        words.iter().map(|word| Shim::of(word)).collect()
    }
}

/// One call after the other through each shim in turn, that many times; and what each adds to the first.
pub fn latency(rounds: usize, calls: usize, words: &[&str]) -> ExitCode {
    tell(shims(words).and_then(|shims| {
        let mut open = Vec::new();
        for shim in &shims {
            open.push(Program::start(&shim.command)?.greeted()?.0);
        }
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); shims.len()];
        // The first round warms up and is thrown away; every other one goes the other way round.
        for round in 0..=rounds {
            let order: Vec<usize> =
                if round % 2 == 0 { (0..shims.len()).collect() } else { (0..shims.len()).rev().collect() };
            for at in order {
                let each = (0..calls).map(|_| open[at].call().map(micros)).collect::<Result<Vec<_>, _>>()?;
                if round > 0 {
                    times[at].push(median(&each));
                }
            }
        }
        let mut table = format!("{calls} calls a measurement, {rounds} alternations; microseconds\n");
        let _ = writeln!(table, "{:<16} {:>9} {:>12} {:>20}", "shim", "p50", "adds to p50", "95 % interval");
        for (at, shim) in shims.iter().enumerate() {
            let added: Vec<f64> = times[at].iter().zip(&times[0]).map(|(mine, base)| mine - base).collect();
            let (low, high) = interval(&added);
            let between = format!("{low:.1} … {high:.1}");
            let _ = writeln!(
                table,
                "{:<16} {:>9.1} {:>12.1} {between:>20}",
                shim.name,
                median(&times[at]),
                median(&added)
            );
        }
        Ok(table)
    }))
}

/// Each shim is started in turn, that many times: how long until it has answered `initialize`; and what it takes up at rest.
pub fn starts(count: usize, words: &[&str]) -> ExitCode {
    tell(shims(words).and_then(|shims| {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); shims.len()];
        let mut rest = vec![(0, 0); shims.len()];
        for round in 0..count {
            for (at, shim) in shims.iter().enumerate() {
                let (mut program, took) = Program::start(&shim.command)?.greeted()?;
                times[at].push(micros(took) / 1000.0);
                // The server has to be there before its shim is at rest; then the next start finds what it is to find.
                if round == 0 || round + 1 == count {
                    program.call()?;
                    rest[at] = program.at_rest();
                }
                program.end()?;
            }
        }
        let mut table =
            format!("{count} starts each, in turn; milliseconds until `initialize` is answered\n");
        let _ = writeln!(
            table,
            "{:<16} {:>8} {:>8} {:>8} {:>10} {:>8}",
            "shim", "p50", "p99", "most", "RSS KiB", "threads"
        );
        for (at, shim) in shims.iter().enumerate() {
            let (kib, threads) = rest[at];
            let _ = writeln!(
                table,
                "{:<16} {:>8.2} {:>8.2} {:>8.2} {kib:>10} {threads:>8}",
                shim.name,
                median(&times[at]),
                share(&times[at], 0.99),
                share(&times[at], 1.0),
            );
        }
        Ok(table)
    }))
}

/// So many of each shim at once, as an agent starts its servers: how long until the last has answered a call.
pub fn at_once(count: usize, words: &[&str]) -> ExitCode {
    tell(shims(words).and_then(|shims| {
        let mut table = format!("{count} at once; milliseconds\n");
        let _ = writeln!(table, "{:<16} {:>14} {:>14}", "shim", "all greeted", "all answered");
        for shim in &shims {
            let start = now();
            let mut programs = Vec::new();
            for _ in 0..count {
                programs.push(Program::start(&shim.command)?.hello()?);
            }
            let mut open = Vec::new();
            for program in programs {
                open.push(program.welcome()?);
            }
            let greeted = start.elapsed();
            for program in &mut open {
                program.call()?;
            }
            let _ = writeln!(
                table,
                "{:<16} {:>14.1} {:>14.1}",
                shim.name,
                micros(greeted) / 1000.0,
                micros(start.elapsed()) / 1000.0
            );
        }
        Ok(table)
    }))
}

/// A program that only copies both pipes: what is the least that anything between an agent and its server can cost.
pub fn copy(command: &[&str]) -> ExitCode {
    tell(program::copy(command).map(|()| String::new()))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn tell(done: Result<String, String>) -> ExitCode {
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("linetender: {error}");
            ExitCode::FAILURE
        }
    }
}
