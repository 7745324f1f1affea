//! A program that calls tools through `rmcp`, 50 times a second, while somebody kills its server.
//!
//! `cargo run --release -p linetender-rmcp --example thousand_kills -- 1000 linetender`, and the same with `bare` for the SDK's
//! own transport to a child process. All that differs is the transport. What the server really ran is in its own book.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linetender::{Era, Eras, Policy, Server, Settings};
use linetender_badserver::{AS_SERVER, Book};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use serde_json::Value;
use tokio::task::JoinSet;

const USAGE: &str = "usage: thousand_kills COUNT bare|linetender";

/// 50 calls a second.
const BETWEEN_CALLS: Duration = Duration::from_millis(20);

/// A kill for each two calls.
const CALLS_PER_KILL: u32 = 2;

/// A call that takes longer hung.
const HUNG: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    if let Some(done) = linetender_badserver::run_if_asked() {
        return done;
    }
    let args: Vec<_> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [count, mode @ ("bare" | "linetender")] => count.parse().map_err(Failure::from).and_then(|count| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            runtime.block_on(run(count, mode))
        }),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(count: u32, mode: &str) -> Result<String, Failure> {
    let path = std::env::temp_dir().join(format!("linetender-kills-{}", std::process::id()));
    let book = Book::at(&path);
    let client = connect(mode, &book).await?;
    // Calls go on for as long as somebody kills: a budget that answers refill needs answers.
    let over = AtomicBool::new(false);
    let killing = async {
        let kills = kill_all(count).await;
        over.store(true, Ordering::Relaxed);
        kills
    };
    let (calls, kills) = tokio::join!(call_all(client.peer(), &over), killing);
    let closed = u8::from(client.peer().is_transport_closed());
    client.cancel().await?;
    let figures = judge(&calls, &book);
    let left = servers().len();
    let _ = std::fs::remove_file(&path);
    let policy = match mode {
        "linetender" => " (budget set by policy so that the line never parks)",
        _ => "",
    };
    Ok(format!(
        "{mode}{policy}: {kills} of {count} kills, {figures}, {closed} closed peers, {left} processes left"
    ))
}

/// The one place where the two differ.
async fn connect(mode: &str, book: &Book) -> Result<RunningService<RoleClient, ()>, Failure> {
    let program = std::env::current_exe()?;
    let argv =
        [AS_SERVER.as_ref(), "--era".as_ref(), "legacy".as_ref(), "--book".as_ref(), book.path().as_os_str()];
    Ok(if mode == "bare" {
        let mut command = tokio::process::Command::new(program);
        command.args(argv);
        ().serve(TokioChildProcess::new(command)?).await?
    } else {
        let server = Server::stdio("bad", [program.as_os_str()].into_iter().chain(argv));
        ().serve(linetender_rmcp::transport(server.eras(Eras::Only(Era::Legacy)).policy(no_budget()?)))
            .await?
    })
}

/// Each answered call refills the budget: this is about what a death does to a client, not about flapping.
fn no_budget() -> Result<Policy, Failure> {
    let mut settings = Settings::default();
    settings.budget.millis_per_answer = 5000;
    settings.budget.tokens = 50;
    settings.backoff.base = Duration::from_millis(1);
    settings.backoff.cap = Duration::from_millis(5);
    Policy::new(settings).map_err(|error| format!("{error:?}").into())
}

/// What a call was told; nothing if it hung.
type Told = Option<Result<CallToolResult, ServiceError>>;

async fn call_all(peer: &Peer<RoleClient>, over: &AtomicBool) -> Vec<(String, Told)> {
    let mut beat = tokio::time::interval(BETWEEN_CALLS);
    let mut calls = JoinSet::new();
    for number in 0_u32.. {
        beat.tick().await;
        if over.load(Ordering::Relaxed) {
            break;
        }
        let peer = peer.clone();
        calls.spawn(async move {
            let nonce = format!("n{number}");
            // Some take longer than others, so that every step of a call meets a death.
            let arguments = serde_json::json!({ "nonce": nonce, "ms": number % 13 * 3 });
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            let call = peer.call_tool(CallToolRequestParams::new("sleep").with_arguments(arguments));
            (nonce, tokio::time::timeout(HUNG, call).await.ok())
        });
    }
    calls.join_all().await
}

/// Kills each server that appears, so many times; or until none appears any more.
async fn kill_all(count: u32) -> u32 {
    let mut beat = tokio::time::interval(BETWEEN_CALLS * CALLS_PER_KILL);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = 0;
    for kills in 0..count {
        beat.tick().await;
        // A little earlier or later each time.
        tokio::time::sleep(Duration::from_micros(u64::from(kills % 37) * 500)).await;
        let appears = async {
            loop {
                match servers().into_iter().find(|pid| *pid != last) {
                    Some(pid) => return pid,
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        let Ok(pid) = tokio::time::timeout(HUNG, appears).await else { return kills };
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        last = pid;
    }
    count
}

/// The servers below this process.
fn servers() -> Vec<i32> {
    let mut found = Vec::new();
    let mut look = vec![i32::try_from(std::process::id()).unwrap_or_default()];
    while let Some(of) = look.pop() {
        for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
            let listed = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            look.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        let command = std::fs::read(format!("/proc/{of}/cmdline")).unwrap_or_default();
        if command.split(|byte| *byte == 0).nth(1) == Some(AS_SERVER.as_bytes()) {
            found.push(of);
        }
    }
    found
}

/// Holds what callers were told against what the server wrote down.
fn judge(calls: &[(String, Told)], book: &Book) -> String {
    let runs = book.runs();
    let (mut answered, mut full, mut unknown, mut hung, mut twice, mut wrong) = (0, 0, 0, 0, 0, 0);
    let mut poor = Vec::new();
    for (nonce, told) in calls {
        let runs = runs.get(nonce).copied().unwrap_or(0);
        twice += u32::from(runs > 1);
        match told {
            None => hung += 1,
            Some(Ok(result)) if result.is_error != Some(true) => {
                answered += 1;
                wrong += u32::from(runs == 0);
            }
            Some(failed) => match fields(failed) {
                Some(fields) => {
                    full += 1;
                    unknown += u32::from(fields["delivery"] == "unknown");
                    wrong += u32::from(fields["delivery"] == "not executed" && runs > 0);
                }
                None => poor.push(failed),
            },
        }
    }
    let says = poor.first().map_or(String::new(), |failed| match failed {
        Ok(result) => format!(" ({result:?})"),
        Err(error) => format!(" ({error})"),
    });
    format!(
        "{} calls: {answered} answered, {full} failed with a full error ({unknown} unknown), {} failed with less{says}, \
         {hung} hung, {twice} run twice, {wrong} wrong verdicts",
        calls.len(),
        poor.len(),
    )
}

/// What a failure says for programs, if it names all five things.
fn fields(failed: &Result<CallToolResult, ServiceError>) -> Option<Value> {
    let fields = match failed {
        Ok(result) => serde_json::to_value(result).ok()?["_meta"]["linetender"].clone(),
        Err(ServiceError::McpError(error)) => error.data.clone()?,
        Err(_) => return None,
    };
    let said = |name: &str| fields[name].as_str().is_some_and(|text| !text.trim().is_empty());
    ["server", "phase", "cause", "delivery", "nextTry"].into_iter().all(said).then_some(fields)
}
