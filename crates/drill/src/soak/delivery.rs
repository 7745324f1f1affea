//! Of the calls that a dying server never ran: how many were recovered unseen?

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use linetender::{CallError, Eras, Line, Raw, Server};
use linetender_badserver::Book;
use linetender_badserver::process;

use super::{badserver_argv, no_budget, runtime};

/// Calls that are under way when the server is killed.
const BURST: u32 = 20;

/// A server to be killed: what it is called, and how it is started with its book.
type Victim = (&'static str, Argv);
type Argv = Box<dyn Fn(&Path) -> Vec<OsString>>;

/// Kills each server so many times in a burst of calls.
pub fn delivery(count: u32) -> ExitCode {
    println!(
        "{count} kills in bursts of {BURST} calls; a call is sent again only if linetender counted that it did not run\n"
    );
    println!(
        "{:<34} {:>8} {:>9} {:>9} {:>8} {:>10} {:>7}",
        "server", "calls", "answered", "unknown", "not run", "recovered", "share"
    );
    for (name, argv) in victims() {
        match runtime().block_on(kill_in_bursts(&argv, count)) {
            Ok(tally) => println!("{name:<34} {tally}"),
            Err(broken) => {
                println!("{name:<34} BROKEN: {broken}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn victims() -> Vec<Victim> {
    let bad = |flags: &'static [&'static str]| -> Argv {
        Box::new(move |book| {
            let mut argv = badserver_argv(flags);
            argv.extend(["--book".into(), book.as_os_str().to_owned()]);
            argv
        })
    };
    let mut victims: Vec<Victim> = vec![
        ("badserver, one byte at a time", bad(&["--careful", "--single-threaded"])),
        ("badserver, reads ahead", bad(&["--single-threaded"])),
    ];
    for (name, venv, script) in [
        ("Python mcp 2.3", "py2", "server_mcp.py"),
        ("Python mcp 1.30", "py1", "server_mcp.py"),
        ("fastmcp", "py2", "server_fastmcp.py"),
    ] {
        let python = Path::new("target/real").join(venv).join("bin/python");
        let script = Path::new("crates/drill/real").join(script);
        if python.exists() && script.exists() {
            victims.push((
                name,
                Box::new(move |book| {
                    vec![python.clone().into(), script.clone().into(), book.as_os_str().to_owned()]
                }),
            ));
        }
    }
    victims
}

#[derive(Default)]
struct Tally {
    answered: u32,
    unknown: u32,
    not_run: u32,
    recovered: u32,
}

async fn kill_in_bursts(argv: &dyn Fn(&Path) -> Vec<OsString>, count: u32) -> Result<Tally, String> {
    let path = std::env::temp_dir().join(format!("linetender-delivery-{}", std::process::id()));
    let book = Book::at(&path);
    let line = Line::open(Server::stdio("victim", argv(&path)).eras(Eras::Auto).policy(no_budget()));
    let mut tally = Tally::default();
    for kill in 0..count {
        line.ready().await.map_err(|error| error.to_string())?;
        let _ = std::fs::write(&path, "");
        burst(&line, &book, kill, &mut tally).await?;
    }
    line.close().await;
    let _ = std::fs::remove_file(&path);
    Ok(tally)
}

#[expect(clippy::disallowed_methods, reason = "the tasks are awaited here")]
async fn burst(line: &Line, book: &Book, kill: u32, tally: &mut Tally) -> Result<(), String> {
    let victim = line.pid().unwrap_or_default();
    let calls: Vec<_> = (0..BURST)
        .map(|call| {
            let line = line.clone();
            let nonce = format!("k{kill}c{call}");
            tokio::spawn(async move {
                let arguments = format!(r#"{{"message":"x","nonce":"{nonce}"}}"#);
                (nonce.clone(), line.call_tool("echo", Raw(&arguments)).await)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_micros(u64::from(kill % 40) * 250)).await;
    process::kill(victim);
    let mut told: HashMap<String, Result<(), CallError>> = HashMap::new();
    for call in calls {
        let (nonce, outcome) = call.await.map_err(|error| error.to_string())?;
        told.insert(nonce, outcome.map(drop));
    }
    let runs = book.runs_by();
    for (nonce, outcome) in told {
        let ran = runs.get(&nonce).map_or(&[][..], Vec::as_slice);
        if ran.len() > 1 {
            return Err(format!("{nonce} ran {} times", ran.len()));
        }
        let by_victim = ran.contains(&victim);
        match outcome {
            Ok(()) => tally.answered += 1,
            Err(error) if error.not_executed() && !ran.is_empty() => {
                return Err(format!("{nonce}: {error}, but it ran"));
            }
            Err(_) => tally.unknown += 1,
        }
        tally.not_run += u32::from(!by_victim);
        tally.recovered += u32::from(!by_victim && !ran.is_empty());
    }
    Ok(())
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answered, unknown, not_run, recovered } = self;
        let share = f64::from(*recovered) * 100.0 / f64::from((*not_run).max(1));
        let calls = answered + unknown;
        write!(f, "{calls:>8} {answered:>9} {unknown:>9} {not_run:>8} {recovered:>10} {share:>6.1}%")
    }
}
