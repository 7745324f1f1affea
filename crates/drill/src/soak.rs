//! Crash cycles at length, with a judge; and measurements of how fast a death is noticed.

mod delivery;
mod detect;
mod killed;
mod neighbour;
mod process;

pub use delivery::delivery;
pub use detect::detect;
pub use killed::killed;
pub use neighbour::neighbour;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linetender::{CallError, Era, Eras, Line, Policy, Rig, Server, Settings, Span};

use crate::Book;
use process::Own;

/// How long any call may take before it counts as hung.
const HUNG: Duration = Duration::from_secs(20);

/// Callers that call at the same time.
const CALLERS: usize = 4;

/// How many cycles are judged at a time.
const PORTION: u64 = 50;

/// What callers were told, by nonce.
type Told = HashMap<String, Result<(), CallError>>;

/// A policy without a budget to speak of: every answered call refills it. A soak is not about flapping.
fn no_budget() -> Policy {
    let mut settings = Settings::default();
    settings.budget.millis_per_answer = 5000;
    settings.budget.tokens = 50;
    settings.backoff.base = Span::from_millis(1);
    settings.backoff.cap = Span::from_millis(5);
    Policy::new(settings).unwrap_or_default()
}

/// It lies beside this program.
fn badserver_path() -> PathBuf {
    let mut path = std::env::current_exe().unwrap_or_default();
    path.set_file_name("badserver");
    path
}

fn badserver(flags: &[&str]) -> Server {
    let argv = [badserver_path().into_os_string()].into_iter().chain(flags.iter().map(Into::into));
    Server::stdio("bad", argv).eras(Eras::Only(Era::Legacy)).policy(no_budget())
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
            line.wait_for(|status| status.state == "up").await;
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
        line.wait_for(|status| status.state == "up").await;
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
    line.ready().await.map_err(|error| error.to_string())?;
    let before = Own::look();
    let nonces = Arc::new(AtomicU64::new(0));
    let (mut sum, mut told, mut halfway) = (Sum::default(), Told::new(), before);
    for cycle in 0..count {
        told.extend(one_cycle(&line, &nonces, cycle).await?);
        // Judged in portions, so that what grows is what is watched and not the watcher.
        if cycle % PORTION == PORTION - 1 || cycle + 1 == count {
            judge(&told, book)?;
            sum.add(&told);
            told.clear();
            let _ = std::fs::write(book.path(), "");
        }
        if cycle == count / 2 {
            halfway = Own::look();
        }
        if cycle % 1000 == 999 {
            eprintln!("{} of {count} cycles", cycle + 1);
        }
    }
    line.ready().await.map_err(|error| error.to_string())?;
    let after = Own::look();
    line.close().await;
    let left = Own::look();
    if left.processes > 0 {
        return Err(format!("{} processes are left", left.processes));
    }
    if after.descriptors != before.descriptors {
        return Err(format!("{} descriptors became {}", before.descriptors, after.descriptors));
    }
    let slope =
        (i64::from(after.kib) - i64::from(halfway.kib)) * 1024 / i64::try_from(count / 2).unwrap_or(1).max(1);
    Ok(format!(
        "{count} crash cycles, {} calls ({} answered, {} unknown, {} not executed): 0 hung, 0 run twice, 0 wrong verdicts, 0 processes left, \
         {} descriptors before and after, {slope} bytes of memory per cycle over the last half",
        sum.answered + sum.unknown + sum.not_executed,
        sum.answered,
        sum.unknown,
        sum.not_executed,
        before.descriptors,
    ))
}

/// Some calls, and a kill in the middle of them.
async fn one_cycle(line: &Line, nonces: &Arc<AtomicU64>, cycle: u64) -> Result<Told, String> {
    let pid = line.pid();
    let calls: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let nonce = format!("n{}", nonces.fetch_add(1, Ordering::Relaxed));
            let tool = if caller % 2 == 0 { "write" } else { "echo" };
            let arguments = format!(r#"{{"nonce":"{nonce}"}}"#);
            async move { (nonce, tokio::time::timeout(HUNG, line.call_tool(tool, &arguments)).await) }
        })
        .collect();
    let calls = join_all(calls);
    let kill = async {
        // A little earlier or later each time, so that every step of a call meets a death.
        tokio::time::sleep(Duration::from_micros(cycle % 50 * 10)).await;
        if let Some(pid) = pid {
            process::kill(pid);
        }
    };
    let (told, ()) = tokio::join!(calls, kill);
    let mut cycle = Told::new();
    for (nonce, outcome) in told {
        let outcome = outcome.map_err(|_| format!("call {nonce} hung"))?;
        cycle.insert(nonce, outcome.map(drop));
    }
    // The kill may have come after the last answer: the next cycle wants a fresh one to kill.
    let nonce = format!("n{}", nonces.fetch_add(1, Ordering::Relaxed));
    let arguments = format!(r#"{{"nonce":"{nonce}"}}"#);
    let outcome = tokio::time::timeout(HUNG, line.call_tool("write", &arguments)).await;
    cycle.insert(nonce.clone(), outcome.map_err(|_| format!("call {nonce} hung"))?.map(drop));
    Ok(cycle)
}

async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |context| {
        let mut all = true;
        for (future, done) in &mut pending {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(output) => *done = Some(output),
                    std::task::Poll::Pending => all = false,
                }
            }
        }
        if all {
            std::task::Poll::Ready(pending.iter_mut().filter_map(|(_, done)| done.take()).collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}

/// Holds what callers were told against what the server wrote down.
fn judge(told: &Told, book: &Book) -> Result<(), String> {
    let runs = book.runs();
    for (nonce, outcome) in told {
        let runs = runs.get(nonce).copied().unwrap_or(0);
        if runs > 1 {
            return Err(format!("{nonce} ran {runs} times"));
        }
        match outcome {
            Ok(()) if runs == 0 => return Err(format!("{nonce} was answered and never ran")),
            Err(error) if error.not_executed() && runs > 0 => {
                return Err(format!("{nonce} ran, and its caller was told that it did not: {error}"));
            }
            Err(error) if error.cause.is_empty() || error.next_try.is_empty() => {
                return Err(format!("{nonce} failed without a cause: {error:?}"));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// What callers were told, all in all.
#[derive(Default)]
struct Sum {
    answered: usize,
    unknown: usize,
    not_executed: usize,
}

impl Sum {
    fn add(&mut self, told: &Told) {
        for outcome in told.values() {
            match outcome {
                Ok(()) => self.answered += 1,
                Err(error) if error.not_executed() => self.not_executed += 1,
                Err(_) => self.unknown += 1,
            }
        }
    }
}
