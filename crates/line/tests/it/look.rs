//! Ways to wait, and to look at processes and errors.

use std::time::{Duration, Instant};

use linetender::{CallError, Policy, Settings};
use linetender_badserver::process;

/// Longer than anything here may take, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The server that misbehaves, and its reaper.
pub fn badserver() -> &'static str {
    linetender_badserver::program().to_str().unwrap()
}

pub fn policy(change: impl FnOnce(&mut Settings)) -> Policy {
    let mut settings = Settings::default();
    change(&mut settings);
    Policy::new(settings).unwrap()
}

pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

pub async fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    in_time(async {
        loop {
            match look() {
                Some(found) => return found,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    })
    .await
}

/// What is said of a process that was killed.
pub const KILLED: &str = if cfg!(windows) { "status 9" } else { "SIGKILL" };

#[cfg(windows)]
pub fn kill(signal: &str, pid: i32) {
    match signal {
        "-9" | "-KILL" => process::kill(pid),
        "-STOP" => process::stop(pid),
        "-CONT" => process::go_on(pid),
        other => panic!("there is no {other} here"),
    }
}

#[cfg(unix)]
pub fn kill(signal: &str, pid: i32) {
    let done = std::process::Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(done.success(), "kill {signal} {pid}");
}

/// The processes below this one, zombies included.
pub fn children() -> Vec<i32> {
    descendants(i32::try_from(std::process::id()).unwrap())
}

pub fn lives(pid: i32) -> bool {
    process::lives(pid)
}

pub fn descendants(of: i32) -> Vec<i32> {
    process::descendants(&of.to_string())
}

pub fn stopwatch() -> Instant {
    Instant::now()
}

/// Every error names server, phase, cause, delivery and next try.
pub fn speaks(error: &CallError) {
    assert_eq!(&*error.server, "bad");
    for text in [error.phase.name(), &error.cause, error.delivery.name(), &error.next_try.to_string()] {
        assert!(!text.trim().is_empty(), "{error:?}");
    }
    let fields = error.fields();
    for field in ["source", "server", "phase", "cause", "delivery", "nextTry"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {fields}");
    }
    assert!(error.for_model().contains(&error.cause));
    assert!(!(-32768..=-32000).contains(&error.code().number()));
}
