//! `linetender-sim`: sweeps worlds, or plays one and tells what happens in it.

use std::process::ExitCode;

use linetender_sim::{Declared, play, play_day, sweep};

const USAGE: &str = "usage: linetender-sim [--seeds FROM..TO | --seeds ONE [--trace]] [--calls N] [--threads N] [--first]
       linetender-sim --days N    how often an agent is told that a server's memory is gone, in N working days";

fn main() -> ExitCode {
    let (mut seeds, mut calls, mut threads) = (0..1000, usize::MAX, 2);
    let (mut broken, mut trace, mut days) = (usize::MAX, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next();
        let understood = match argument.as_str() {
            "--trace" => {
                trace = true;
                Some(())
            }
            "--first" => {
                broken = 1;
                Some(())
            }
            "--days" => number().and_then(|text| text.parse().ok()).map(|many| days = Some(many)),
            "--seeds" => number().and_then(|text| range(&text)).map(|range| seeds = range),
            "--calls" => number().and_then(|text| text.parse().ok()).map(|most| calls = most),
            "--threads" => number().and_then(|text| text.parse().ok()).map(|many| threads = many),
            _ => None,
        };
        if understood.is_none() {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    if let Some(days) = days {
        for declared in [Declared::Nothing, Declared::Lists, Declared::Stateless] {
            if let Some(played) = (0..days).map(|seed| play_day(seed, declared)).reduce(std::ops::Add::add) {
                println!("{played}");
            }
        }
        return ExitCode::SUCCESS;
    }
    if trace {
        let played = play(seeds.start, true);
        println!("world {}: {} calls, {:016x}", played.seed, played.calls, played.hash);
        played.findings.iter().for_each(|finding| println!("{finding}"));
        return if played.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let swept = sweep(seeds, calls, broken, threads);
    println!("{}{} worlds, {} calls", swept.coverage, swept.worlds, swept.calls);
    println!("{} ran again after refusals by servers that had run them", swept.ran_again);
    swept.complaints().iter().for_each(|complaint| println!("{complaint}"));
    if swept.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn range(text: &str) -> Option<std::ops::Range<u64>> {
    match text.split_once("..") {
        Some((from, to)) => Some(from.parse().ok()?..to.parse().ok()?),
        None => text.parse().ok().map(|one: u64| one..one + 1),
    }
}
