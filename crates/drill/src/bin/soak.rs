//! Lines to badservers at length: soaks that judge, and measurements.
//!
//! Each is described where it is printed: `soak` without arguments.

use std::process::ExitCode;

const USAGE: &str = "\
soak cycles COUNT      kill a server under calls that many times, and judge the history
soak killed COUNT      kill a process that holds 20 lines that many times; nothing may outlive it
soak detect COUNT      how fast a death is noticed, and a line is back
soak delivery COUNT    of the calls that a killed server never ran, how many were recovered unseen
soak neighbour COUNT   50 busy lines beside one that crash-loops, and without it
soak herd COUNT        that many lines to one server over HTTP that dies and returns
soak agents SECONDS    50 agents on one line whose server is killed; nobody may hear what is another's
soak blackhole         packets dropped under calls; in a network namespace of its own
soak hold COUNT        hold that many lines, and wait to be killed
soak keep COMMAND…     hold a line to that server, and wait to be killed

example: soak cycles 10000
";

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let args: Vec<_> = std::env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["cycles", count] => linetender_drill::soak::cycles(count.parse().unwrap_or(100)),
        ["hold", count] => linetender_drill::soak::hold(count.parse().unwrap_or(1)),
        ["keep", ref argv @ ..] => linetender_drill::soak::keep(argv),
        ["detect", count] => linetender_drill::soak::detect(count.parse().unwrap_or(100)),
        ["killed", count] => linetender_drill::soak::killed(count.parse().unwrap_or(10)),
        ["neighbour", count] => linetender_drill::soak::neighbour(count.parse().unwrap_or(5)),
        ["herd", count] => linetender_drill::soak::herd(count.parse().unwrap_or(500)),
        ["agents", seconds] => linetender_drill::soak::agents(seconds.parse().unwrap_or(60)),
        ["blackhole"] => linetender_drill::soak::blackhole(),
        ["delivery", count] => linetender_drill::soak::delivery(count.parse().unwrap_or(50)),
        _ => {
            eprint!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}
