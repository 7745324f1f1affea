//! `linetender doctor`: starts every configured server once, and says what is wrong and how to fix it.
//!
//! It sees what `serve` would see: the same file, the same dial, the same words for a failure. No tool is called, and every
//! process that it started is gone when it ends.

mod check;
mod failure;
mod finding;
pub(crate) mod offers;
mod print;
mod program;
mod progress;
mod settings;
mod system;

use std::io::Write as _;
use std::process::ExitCode;

use linetender::Rig;
use tokio::task::JoinSet;

use crate::configured::{self, Configured, misused};
use crate::stop::Signals;
use crate::{args, keys, stop};
use check::Checked;
use finding::Finding;
use progress::{Progress, Stages};

/// More tools than this at one address are more than some providers of models take.
const MANY_AT_ONCE: usize = 128;

pub(crate) fn doctor(args: &args::Doctor) -> ExitCode {
    if args.system {
        let said = if args.json { system::json() } else { system::text() };
        return if write!(anstream::stdout(), "{said}").is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let read = configured::read(args.file.as_deref()).and_then(|mut read| {
        read.only(&args.server)?;
        Ok(read)
    });
    let configured = match read {
        Ok(configured) => configured,
        Err(why) => return misused(&why),
    };
    let runtime = match configured::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return misused(&format!("cannot start: {error}")),
    };
    let examined = runtime.block_on(examine(&configured, Progress::new(args.json)));
    let Ok(servers) = examined else {
        eprintln!("linetender: interrupted; the servers are being stopped");
        return examined.map_or_else(|signal| ExitCode::from(128 + signal), |_| ExitCode::SUCCESS);
    };
    let findings = of_all(&configured, &servers);
    let printed = if args.json {
        std::io::stdout().write_all(print::json(&configured.path, &servers, &findings).as_bytes())
    } else {
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into());
        write!(anstream::stdout(), "{}", print::text(&configured.path, &servers, &findings, width))
    };
    // A check that panicked has no result, and said so on stderr.
    let all = servers.len() == configured.config.servers.len();
    let ok = printed.is_ok() && all && servers.iter().all(|server| server.ok);
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Looks at all servers at once, as far as the rig lets them start. The signal that came before they were done, if one did.
async fn examine(configured: &Configured, mut progress: Progress) -> Result<Vec<Checked>, u8> {
    let Configured { path, config } = configured;
    let mut signals = Signals::of(stop::SHIM);
    let (rig, mut tasks) = (Rig::new().dialling_once(), JoinSet::new());
    let stages = Stages::new(config.servers.iter().map(|entry| entry.server.name().to_owned()));
    for (number, entry) in config.servers.iter().enumerate() {
        let login = keys::by_name(entry.server.name(), path);
        let separator = config.gateway.separator.clone();
        let check = check::check(rig.clone(), (number, entry.clone()), separator, login, stages.clone());
        tasks.spawn(async move { (number, check.await) });
    }
    let mut servers = Vec::new();
    let mut tick = tokio::time::interval(progress::TICK);
    loop {
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(Ok((number, checked))) => {
                    progress.done(&checked);
                    servers.push((number, checked));
                }
                Some(Err(_)) => {}
                None => break,
            },
            _ = tick.tick() => progress.tick(&stages),
            signal = signals.next() => {
                progress.end();
                return Err(signal);
            }
        }
    }
    progress.end();
    servers.sort_by_key(|(number, _)| *number);
    Ok(servers.into_iter().map(|(_, checked)| checked).collect())
}

/// What is to be said about the file, and about all servers together.
fn of_all(configured: &Configured, servers: &[Checked]) -> Vec<Finding> {
    let warnings = configured.config.warnings.iter().map(|problem| {
        let what = format!("line {}, column {}: {problem}", problem.line(), problem.column());
        Finding::warning("config", what, problem.advice().unwrap_or_default())
    });
    let mut findings: Vec<_> = warnings.collect();
    let tools: usize =
        servers.iter().filter_map(|server| server.known.as_ref()).map(|known| known.tools).sum();
    if tools > MANY_AT_ONCE && servers.len() > 1 {
        let what = format!("{tools} tools together at the gateway's /mcp");
        let fix = "hide what agents do not need with tools.include, or give agents the address of one server (/mcp/NAME)";
        findings.push(Finding::warning("too-many-tools", what, fix));
    }
    findings
}
