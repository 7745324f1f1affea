//! Holds lines to badservers: crash cycles with a checker, or just holds them until it is killed.
//!
//! `soak cycles 10000`: kills a server that many times under calls and judges the history.
//! `soak hold 20`: opens that many lines, prints `ready`, and waits to be killed.
//! `soak keep COMMAND`: the same with one line to that server.
//! `soak detect 1000`: how fast a death is noticed, and a line is back.

use std::process::ExitCode;

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
        _ => {
            eprintln!(
                "usage: soak cycles COUNT | soak hold COUNT | soak detect COUNT\nexample: soak cycles 10000"
            );
            ExitCode::FAILURE
        }
    }
}
