//! The `linetender` command: arguments in, words and exit codes out.

mod args;
mod log;
#[expect(dead_code, reason = "the journal, the memory and the status come to live there")]
mod places;
mod run;
mod serve;
mod stop;

use std::process::ExitCode;

use clap::Parser as _;

/// The hidden subcommand by which this binary is a badserver.
const BADSERVER: &str = "__badserver";

fn main() -> ExitCode {
    // Every server runs under a reaper, and that is this binary too.
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    // The servers that misbehave on purpose, for drills.
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(BADSERVER) {
        return linetender_drill::badserver::main(words);
    }
    match args::Args::parse().command {
        args::Command::Run(run) => run::run(run),
        args::Command::Serve(serve) => serve::run(&serve),
    }
}
