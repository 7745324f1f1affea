//! Crash cycles at length, with a judge; and measurements of how fast a death is noticed.
//!
//! They are run by `linetender drill soak NAME`, and this program is also started as a holder of lines, as a server and as its reaper.

mod agents;
mod blackhole;
mod delivery;
mod detect;
#[cfg(unix)]
mod gateway;
mod herd;
mod killed;
mod neighbour;
#[cfg(unix)]
mod shared;
#[cfg(windows)]
mod windows;

pub use agents::agents;
pub use blackhole::blackhole;
pub use delivery::delivery;
pub use detect::detect;
#[cfg(unix)]
pub use gateway::{Options, Verdict, gateway, gateway_verdict};
pub use herd::herd;
pub use killed::killed;
pub use neighbour::neighbour;
#[cfg(unix)]
pub use shared::shared;
#[cfg(windows)]
pub use windows::{Options, gateway, shared};

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use linetender::{Era, Eras, Line, Policy, Rig, Server, Settings, State, StdioServer};
use linetender_badserver::process::{self, Own};
use linetender_badserver::{Book, Bounds, Finding, History, check};

use crate::Recorder;
use crate::drills::system;

/// How long any call may take before it counts as hung.
const HUNG: Duration = Duration::from_secs(20);

/// How many cycles are judged at a time.
const PORTION: u64 = 50;

/// How often it is looked, at the end, whether everything is as it was.
const SETTLED: u32 = 200;

/// A policy without a budget to speak of: every answered call refills it. A soak is not about flapping.
fn no_budget() -> Policy {
    let mut settings = Settings::default();
    settings.budget.millis_per_answer = 5000;
    settings.budget.tokens = 50;
    settings.backoff.base = Duration::from_millis(1);
    settings.backoff.cap = Duration::from_millis(5);
    Policy::new(settings).unwrap_or_default()
}

/// This program, as a server.
fn badserver_argv(flags: &[&str]) -> Vec<OsString> {
    let this = std::env::current_exe().unwrap_or_default();
    let flags = flags.iter().map(Into::into);
    system::bad(&this).into_iter().map(OsString::from).chain(flags).collect()
}

fn badserver(flags: &[&str]) -> StdioServer {
    Server::stdio("bad", badserver_argv(flags)).eras(Eras::Only(Era::Legacy)).policy(no_budget())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// Opens lines, one of them with a grandchild that left its session, and waits to be killed.
pub fn hold(count: usize) -> ExitCode {
    runtime().block_on(async {
        let rig = Rig::new();
        let lines: Vec<_> = (0..count)
            .map(|number| rig.open(badserver(if number == 0 { &["--escapee"] } else { &["--grandchild"] })))
            .collect();
        for line in &lines {
            line.wait_for(|status| status.state == State::Up).await;
        }
        println!("ready");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

/// Holds a line to this server, and waits to be killed.
pub fn keep(argv: &[&str]) -> ExitCode {
    runtime().block_on(async {
        let line = Line::open(Server::stdio("kept", argv.iter().copied()));
        line.wait_for(|status| status.state == State::Up).await;
        println!("ready");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

/// Kills a server so many times, under calls, and judges what happened.
pub fn cycles(count: u64) -> ExitCode {
    let runtime = runtime();
    let path = std::env::temp_dir().join(format!("linetender-soak-{}", std::process::id()));
    let book = Book::at(&path);
    let verdict = runtime.block_on(crash(count, &book));
    let _ = std::fs::remove_file(&path);
    tell(verdict)
}

/// A soak's last word.
fn tell(verdict: Result<String, String>) -> ExitCode {
    match verdict {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("BROKEN: {broken}");
            ExitCode::FAILURE
        }
    }
}

async fn crash(count: u64, book: &Book) -> Result<String, String> {
    let path = book.path().to_string_lossy().into_owned();
    let line = Rig::new().open(badserver(&["--book", &path]));
    at_rest(&line).await?;
    let recorder = Recorder::start();
    let (before, mut sum) = (Own::look(), Sum::default());
    let watched = line.clone();
    let cycles = async {
        let looked = crash_and_judge(&line, &recorder, book, count, before, &mut sum).await;
        // Also when something was found: whoever watches the line waits for its end.
        line.close().await;
        looked
    };
    let (looked, ()) = tokio::join!(cycles, recorder.watch(&watched));
    let (halfway, after) = looked?;
    let left = Own::look();
    if left.processes > 0 {
        return Err(Finding::Orphans { processes: left.processes }.to_string());
    }
    for (what, before, after) in
        [("descriptors", before.descriptors, after.descriptors), ("tasks", before.tasks, after.tasks)]
    {
        if after != before {
            return Err(Finding::Leak { what, before, after }.to_string());
        }
    }
    let slope =
        (i64::from(after.kib) - i64::from(halfway.kib)) * 1024 / i64::try_from(count / 2).unwrap_or(1).max(1);
    Ok(format!(
        "{count} crash cycles, {} calls ({} answered, {} unknown, {} not executed): 0 hung, 0 run twice, 0 wrong verdicts, \
         0 causeless errors, 0 list changes, 0 processes left, {} descriptors and {} tasks before and after, {slope} bytes of memory \
         per cycle over the last half",
        sum.answered + sum.unknown + sum.not_executed,
        sum.answered,
        sum.unknown,
        sum.not_executed,
        before.descriptors,
        before.tasks,
    ))
}

/// The cycles themselves; what this process had after half of them, and after all.
async fn crash_and_judge(
    line: &Line,
    recorder: &Recorder,
    book: &Book,
    count: u64,
    before: Own,
    sum: &mut Sum,
) -> Result<(Own, Own), String> {
    let mut halfway = Own::look();
    for cycle in 0..count {
        one_cycle(line, recorder, cycle).await;
        // Judged in portions, so that what grows is what is watched and not the watcher.
        if cycle % PORTION == PORTION - 1 || cycle + 1 == count {
            sum.add(&judge(recorder, book)?);
        }
        if cycle == count / 2 {
            halfway = Own::look();
        }
        if cycle % 1000 == 999 {
            eprintln!("{} of {count} cycles", cycle + 1);
        }
    }
    at_rest(line).await?;
    // What is over may take a moment to be gone; a leak stays.
    for _ in 0..SETTLED {
        let now = Own::look();
        if (now.descriptors, now.tasks) == (before.descriptors, before.tasks) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok((halfway, Own::look()))
}

/// Waits until everything that a line starts with has been done: its process is known, its lists have been read.
async fn at_rest(line: &Line) -> Result<(), String> {
    let rest = async {
        line.ready().await?;
        while line.catalogue().await?.generation < line.status().generation || line.pid().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    };
    rest.await.map_err(|error: linetender::CallError| error.to_string())
}

/// Some calls, a kill in the middle of them, and a call that finds the line again.
async fn one_cycle(line: &Line, recorder: &Recorder, cycle: u64) {
    let pid = line.pid();
    let call = |number: u32, tool: &'static str| {
        let nonce = format!("c{cycle}n{number}");
        async move {
            // A call that hangs is left to the checker: it was told nothing.
            let _ = tokio::time::timeout(HUNG, recorder.call(line, tool, &nonce, false)).await;
        }
    };
    let kill = async {
        // A little earlier or later each time, so that every step of a call meets a death.
        tokio::time::sleep(Duration::from_micros(cycle % 50 * 10)).await;
        if let Some(pid) = pid {
            process::kill(pid);
        }
    };
    tokio::join!(call(0, "write"), call(1, "echo"), call(2, "write"), call(3, "echo"), kill);
    // The kill may have come after the last answer: the next cycle wants a fresh one to kill.
    call(4, "write").await;
}

/// Holds what callers were told against what the server wrote down.
fn judge(recorder: &Recorder, book: &Book) -> Result<History, String> {
    let history = recorder.take();
    let bounds = Bounds { call: HUNG, dials_per_second: 2000, changes: 0 };
    if let Some(finding) = check(&history, book, bounds).first() {
        return Err(finding.to_string());
    }
    let _ = std::fs::write(book.path(), "");
    Ok(history)
}

/// What callers were told, all in all.
#[derive(Default)]
struct Sum {
    answered: usize,
    unknown: usize,
    not_executed: usize,
}

impl Sum {
    fn add(&mut self, history: &History) {
        for asked in history.calls.values() {
            match &asked.told {
                Some((_, Ok(()))) => self.answered += 1,
                Some((_, Err(error))) if error.not_executed() => self.not_executed += 1,
                Some((_, Err(_))) | None => self.unknown += 1,
            }
        }
    }
}
