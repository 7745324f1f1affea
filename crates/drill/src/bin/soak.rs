//! Lines to badservers at length: soaks that judge, and measurements.
//!
//! Each is described where it is printed: `soak` without arguments.

use std::process::ExitCode;

use linetender_drill::soak;

const USAGE: &str = "\
soak cycles COUNT      kill a server under calls that many times, and judge the history
soak killed COUNT      kill a process that holds 20 lines that many times; nothing may outlive it
soak detect COUNT      how fast a death is noticed, and a line is back
soak delivery COUNT    of the calls that a killed server never ran, how many were recovered unseen
soak neighbour COUNT   50 busy lines beside one that crash-loops, and without it
soak herd COUNT        that many lines to one server over HTTP that dies and returns
soak agents SECONDS    50 agents on one line whose server is killed; nobody may hear what is another's
soak gateway SECONDS [SEED] [--json] [--agents COUNT] [--linetender PATH] [--any-ratio]
                       64 agents on ten servers through `linetender serve`, a fault a second
soak blackhole         packets dropped under calls; in a network namespace of its own
soak hold COUNT        hold that many lines, and wait to be killed
soak keep COMMAND…     hold a line to that server, and wait to be killed

example: soak cycles 10000
";

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    if let Some(done) = linetender_badserver::run_if_asked() {
        return done;
    }
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["cycles", count] => soak::cycles(count.parse().unwrap_or(100)),
        ["hold", count] => soak::hold(count.parse().unwrap_or(1)),
        ["keep", ref argv @ ..] => soak::keep(argv),
        ["detect", count] => soak::detect(count.parse().unwrap_or(100)),
        ["killed", count] => soak::killed(count.parse().unwrap_or(10)),
        ["neighbour", count] => soak::neighbour(count.parse().unwrap_or(5)),
        ["herd", count] => soak::herd(count.parse().unwrap_or(500)),
        ["agents", seconds] => soak::agents(seconds.parse().unwrap_or(60)),
        ["gateway", seconds, ref rest @ ..] => gateway(seconds, rest),
        ["blackhole"] => soak::blackhole(),
        ["delivery", count] => soak::delivery(count.parse().unwrap_or(50)),
        _ => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// The seed is by the clock, unless it is given; it is printed either way.
#[expect(clippy::disallowed_methods, reason = "a seed that differs from run to run")]
fn gateway(seconds: &str, rest: &[&str]) -> ExitCode {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut options = soak::Options::new(seconds.parse().unwrap_or(60), now.map_or(1, |now| now.as_secs()));
    let (mut as_json, mut words) = (false, rest.iter());
    while let Some(word) = words.next() {
        match *word {
            "--json" => as_json = true,
            "--any-ratio" => options.strict = false,
            "--agents" => {
                options.agents = words.next().and_then(|count| count.parse().ok()).unwrap_or(options.agents);
            }
            "--linetender" => options.linetender = words.next().map(Into::into).unwrap_or_default(),
            seed => {
                let Ok(seed) = seed.parse() else {
                    eprint!("{USAGE}");
                    return ExitCode::FAILURE;
                };
                options.seed = seed;
            }
        }
    }
    soak::gateway(&options, as_json)
}
