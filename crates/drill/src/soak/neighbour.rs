//! One line that crash-loops beside fifty busy ones: do they feel it?

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linetender::{Line, Rig};

use super::{badserver, runtime};

const BUSY: usize = 50;
/// How often each of them calls; low enough to leave half of the machine idle.
const EVERY: Duration = Duration::from_millis(40);
const ROUND: Duration = Duration::from_secs(4);
/// Twenty crashes a second: far more than the budget would ever allow.
const CRASH_EVERY: Duration = Duration::from_millis(50);

/// Measures the busy lines' p99 with and without the neighbour, alternately.
pub fn neighbour(alternations: usize) -> ExitCode {
    runtime().block_on(async {
        let rig = Rig::new();
        let lines: Vec<_> = (0..BUSY).map(|_| rig.open(badserver(&[]))).collect();
        for line in &lines {
            if let Err(error) = line.ready().await {
                println!("BROKEN: {error}");
                return ExitCode::FAILURE;
            }
        }
        let mut ratios = Vec::new();
        println!("{:>12} {:>14} {:>14} {:>8}", "alternation", "alone p99 ms", "beside p99 ms", "ratio");
        for round in 1..=alternations {
            let alone = busy(&lines).await;
            let beside = {
                let flapper = rig.open(badserver(&["--die-on-call", "1"]));
                let stop = Arc::new(AtomicBool::new(false));
                let crash = crash_loop(&flapper, &stop);
                let measured = async {
                    let p99 = busy(&lines).await;
                    stop.store(true, Ordering::Relaxed);
                    p99
                };
                let (p99, crashes) = tokio::join!(measured, crash);
                flapper.close().await;
                eprintln!("  {crashes} crashes beside");
                p99
            };
            println!("{round:>12} {alone:>14.3} {beside:>14.3} {:>8.2}", beside / alone);
            ratios.push(beside / alone);
        }
        for line in &lines {
            line.close().await;
        }
        ratios.sort_unstable_by(f64::total_cmp);
        println!("median ratio {:.2}", ratios[ratios.len() / 2]);
        ExitCode::SUCCESS
    })
}

async fn crash_loop(flapper: &Line, stop: &AtomicBool) -> u32 {
    let mut crashes = 0;
    while !stop.load(Ordering::Relaxed) {
        // A parked line is woken by hand: the loop must not end because the budget does its work.
        if flapper.status().state == "parked" {
            flapper.redial().await;
        }
        if flapper.ready().await.is_ok() && flapper.call_tool("write", "{}").await.is_err() {
            crashes += 1;
        }
        tokio::time::sleep(CRASH_EVERY).await;
    }
    crashes
}

/// The p99 of all calls of one round, in milliseconds.
#[expect(clippy::disallowed_methods, reason = "this is a measurement, and its tasks are awaited here")]
async fn busy(lines: &[Line]) -> f64 {
    let end = Instant::now() + ROUND;
    let mut tasks = Vec::new();
    for (number, line) in lines.iter().cloned().enumerate() {
        tasks.push(tokio::spawn(async move {
            // Not all in step.
            tokio::time::sleep(EVERY * u32::try_from(number).unwrap_or(0) / u32::try_from(BUSY).unwrap_or(1))
                .await;
            let mut times = Vec::new();
            while Instant::now() < end {
                let start = Instant::now();
                if line.call_tool("echo", "{}").await.is_ok() {
                    times.push(start.elapsed());
                }
                tokio::time::sleep(EVERY).await;
            }
            times
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap_or_default());
    }
    super::detect::percentiles(&mut all)[1]
}
