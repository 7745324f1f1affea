//! The process that holds the lines is killed, again and again: nothing may outlive it.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::detect::percentiles;
use super::process;
use crate::drills::system;

/// What may be left after so long is an orphan.
const BOUND: Duration = Duration::from_secs(1);

/// Kills a holder of twenty lines so many times.
pub fn killed(count: usize) -> ExitCode {
    let mut times = Vec::new();
    for _ in 0..count {
        match one() {
            Ok(time) => times.push(time),
            Err(broken) => {
                println!("BROKEN: {broken}");
                return ExitCode::FAILURE;
            }
        }
    }
    let [p50, p99, max] = percentiles(&mut times);
    println!(
        "a holder of 20 lines was killed {count} times: everything was gone after {p50:.1} ms p50, {p99:.1} ms p99, \
         {max:.1} ms at most; 0 orphans"
    );
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "this is a measurement")]
fn one() -> Result<Duration, String> {
    let words = |error: std::io::Error| error.to_string();
    let this = std::env::current_exe().map_err(words)?;
    let mut holder = Command::new(this);
    holder.args(["drill", "soak", "hold", "20"]);
    let mut holder = holder.stdout(Stdio::piped()).spawn().map_err(words)?;
    let mut ready = String::new();
    let said = holder.stdout.take().ok_or("no output")?;
    BufReader::new(said).read_line(&mut ready).map_err(words)?;
    let tree = process::descendants(&holder.id().to_string());
    if tree.len() < 20 * system::OF_A_SERVER {
        let _ = holder.kill();
        return Err(format!("only {} processes to begin with", tree.len()));
    }
    let start = Instant::now();
    holder.kill().map_err(words)?;
    holder.wait().map_err(words)?;
    while tree.iter().any(|&pid| process::lives(pid)) {
        if start.elapsed() > BOUND {
            let left = tree.iter().filter(|&&pid| process::lives(pid)).count();
            return Err(format!("{left} processes are left after {BOUND:?}"));
        }
        std::thread::yield_now();
    }
    Ok(start.elapsed())
}
