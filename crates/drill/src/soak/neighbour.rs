//! One line that crash-loops beside fifty busy ones: do they feel it?

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linetender::{CallErrorKind, Line, Policy, Raw, Rig, State};

use super::{badserver, runtime};

const BUSY: usize = 50;
/// How often each of them calls; low enough to leave half of the machine idle.
const EVERY: Duration = Duration::from_millis(40);
const ROUND: Duration = Duration::from_secs(4);
/// How often its caller tries: up to twenty crashes a second, far more than the budget would ever allow.
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
        let (mut by_policy, mut without_budget) = (Vec::new(), Vec::new());
        println!("p99 of {BUSY} busy lines, in ms: alone, beside a line that crashes as often as its budget lets it, and beside");
        println!("one that is revived by hand whenever it parks\n");
        println!("{:>12} {:>9} {:>9} {:>7} {:>9} {:>7}", "alternation", "alone", "beside", "ratio", "revived", "ratio");
        for round in 1..=alternations {
            let alone = busy(&lines).await;
            let beside = busy_beside(&rig, &lines, false).await;
            let revived = busy_beside(&rig, &lines, true).await;
            println!(
                "{round:>12} {alone:>9.3} {beside:>9.3} {:>7.2} {revived:>9.3} {:>7.2}",
                beside / alone,
                revived / alone
            );
            by_policy.push(beside / alone);
            without_budget.push(revived / alone);
        }
        println!("{:>12} {:>9} {:>9} {:>7.2} {:>9} {:>7.2}", "median", "", "", median(&mut by_policy), "", median(&mut without_budget));
        for line in &lines {
            line.close().await;
        }
        ExitCode::SUCCESS
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The busy lines' p99 beside one whose server dies on its first call.
async fn busy_beside(rig: &Rig, lines: &[Line], revive: bool) -> f64 {
    let flapper = rig.open(badserver(&["--die-on-call", "1"]).policy(Policy::default()));
    let stop = AtomicBool::new(false);
    let measured = async {
        let p99 = busy(lines).await;
        stop.store(true, Ordering::Relaxed);
        p99
    };
    let (p99, crashes) = tokio::join!(measured, crash_loop(&flapper, &stop, revive));
    flapper.close().await;
    eprintln!("  {crashes} crashes beside");
    p99
}

async fn crash_loop(flapper: &Line, stop: &AtomicBool, revive: bool) -> u32 {
    let mut crashes = 0;
    while !stop.load(Ordering::Relaxed) {
        if revive && flapper.status().state == State::Parked {
            let _ = flapper.redial().await;
        }
        if let Err(error) = flapper.call_tool("write", Raw("{}")).await {
            crashes += u32::from(error.kind == CallErrorKind::Lost);
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
                if line.call_tool("echo", Raw("{}")).await.is_ok() {
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
