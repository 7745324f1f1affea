//! How fast a death is noticed, and how fast a line is back.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use linetender::{Event, Line, Raw, Rig, State};

use super::{badserver, badserver_argv, process, runtime};

/// How a server is made to die.
#[derive(Clone, Copy)]
enum Death {
    /// From outside, while idle.
    Kill,
    /// By a tool: this one.
    Tool(&'static str),
}

/// The ways to die: what it is called, how the server is started, and how it dies.
const DEATHS: [(&str, &[&str], Death); 4] = [
    ("kill -9, idle", &[], Death::Kill),
    ("kill -9, grandchild on pipe", &["--grandchild"], Death::Kill),
    ("exit in mid-call", &[], Death::Tool("exit")),
    ("closed stdout in mid-call", &[], Death::Tool("close_stdout")),
];

/// Lets servers die so many times in each way, and prints percentiles; with each, a bare start of the same server.
pub fn detect(count: usize) -> ExitCode {
    runtime().block_on(async {
        println!("milliseconds, {count} times each; bare: spawn, handshake and a call without linetender, alternately\n");
        println!(
            "{:<28} {:>23}   {:>15} {:>15} {:>11}",
            "", "noticed p50 / p99 / max", "back p50 / p99", "bare p50 / p99", "back / bare"
        );
        for (name, flags, death) in DEATHS {
            let line = Rig::new().open(badserver(flags));
            let (mut noticed, mut back, mut bare) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..count {
                let (seen, up) = one(&line, death).await;
                noticed.push(seen);
                back.push(up);
                bare.push(tokio::task::block_in_place(|| start_bare(flags)));
            }
            line.close().await;
            let (seen, up, bare) = (percentiles(&mut noticed), percentiles(&mut back), percentiles(&mut bare));
            println!(
                "{name:<28} {:>7.2} {:>7.2} {:>7.2}   {:>7.2} {:>7.2} {:>7.2} {:>7.2} {:>11.2}",
                seen[0], seen[1], seen[2], up[0], up[1], bare[0], bare[1], up[0] / bare[0]
            );
        }
    });
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
async fn one(line: &Line, death: Death) -> (Duration, Duration) {
    // A call that works proves the generation and refills the budget.
    while line.call_tool("echo", Raw("{}")).await.is_err() {}
    let mut events = line.events();
    let pid = line.pid();
    let start = Instant::now();
    match (death, pid) {
        (Death::Kill, Some(pid)) => process::kill(pid),
        (Death::Kill, None) => {}
        (Death::Tool(tool), _) => drop(line.call_tool(tool, Raw("{}")).await),
    }
    let noticed = loop {
        match events.next().await {
            Some(Event::State(status)) if status.state == State::Ending => break start.elapsed(),
            Some(_) => {}
            None => break Duration::MAX,
        }
    };
    while line.call_tool("echo", Raw("{}")).await.is_err() {}
    (noticed, start.elapsed())
}

/// The same server without us: spawned, greeted and called by hand.
#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
fn start_bare(flags: &[&str]) -> Duration {
    let start = Instant::now();
    let argv = badserver_argv(flags);
    let mut command = Command::new(&argv[0]);
    let spawned =
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut server) = spawned else { return Duration::MAX };
    if let (Some(mut to), Some(from)) = (server.stdin.take(), server.stdout.take()) {
        let mut from = BufReader::new(from);
        let mut answer = String::new();
        let initialize =
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let call =
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;
        let _ = writeln!(to, "{initialize}").and_then(|()| from.read_line(&mut answer).map(drop));
        let _ = writeln!(to, "{initialized}\n{call}").and_then(|()| from.read_line(&mut answer).map(drop));
    }
    let took = start.elapsed();
    for pid in process::descendants(&server.id().to_string()) {
        process::kill(pid);
    }
    let _ = server.kill();
    let _ = server.wait();
    took
}

/// p50, p99 and the longest, in milliseconds.
pub(super) fn percentiles(times: &mut [Duration]) -> [f64; 3] {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    [at(50), at(99), times.last()].map(|time| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0))
}
