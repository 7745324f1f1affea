//! How fast a death is noticed, and how fast a line is back.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use linetender::{Event, Line, Rig};

use super::{badserver, process, runtime};

/// Kills idle servers so many times, in each way, and prints percentiles.
pub fn detect(count: usize) -> ExitCode {
    runtime().block_on(async {
        println!("{:<28} {:>9} {:>9} {:>9}   {:>9} {:>9}", "", "noticed", "", "", "back", "");
        println!(
            "{:<28} {:>9} {:>9} {:>9}   {:>9} {:>9}",
            "fault", "p50 ms", "p99 ms", "max ms", "p50 ms", "p99 ms"
        );
        for (name, flags) in [("kill -9", &[][..]), ("kill -9, grandchild on pipe", &["--grandchild"])] {
            let line = Rig::new().open(badserver(flags));
            let (mut noticed, mut back) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let (seen, up) = one(&line).await;
                noticed.push(seen);
                back.push(up);
            }
            line.close().await;
            let (seen, up) = (percentiles(&mut noticed), percentiles(&mut back));
            println!(
                "{name:<28} {:>9.3} {:>9.3} {:>9.3}   {:>9.3} {:>9.3}",
                seen[0], seen[1], seen[2], up[0], up[1]
            );
        }
    });
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
async fn one(line: &Line) -> (Duration, Duration) {
    // A call that works proves the generation and refills the budget.
    while line.call_tool("echo", "{}").await.is_err() {}
    let mut events = line.events();
    let pid = line.pid();
    let start = Instant::now();
    if let Some(pid) = pid {
        process::kill(pid);
    }
    let noticed = loop {
        match events.recv().await {
            Ok(Event::State(status)) if status.state == "ending" => break start.elapsed(),
            Ok(_) => {}
            Err(_) => break Duration::MAX,
        }
    };
    while line.call_tool("echo", "{}").await.is_err() {}
    (noticed, start.elapsed())
}

/// p50, p99 and the longest, in milliseconds.
fn percentiles(times: &mut [Duration]) -> [f64; 3] {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
    [at(50), at(99), times.last()].map(|time| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0))
}
