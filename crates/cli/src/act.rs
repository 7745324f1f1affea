//! `redial`, `drain`, `reload`, `log-level`: what running linetender processes are told to do.

use std::process::ExitCode;

use linetender::visible;
use linetender_holder::holder::{Act, Ask, Done, Found, Reply, ask_holder};
use serde_json::{Value, json};

use crate::args::OfServer;
use crate::{holders, places};

/// Tells every process that is meant, and says what came of it.
pub(crate) fn of_server(of: &OfServer, act: impl Fn(String) -> Act) -> ExitCode {
    holders::with_all(async |found| {
        let having: Vec<u32> = found
            .iter()
            .filter(|holder| has(holder, &of.server) && !is_shared(holder, &of.server))
            .map(|holder| holder.pid)
            .collect();
        let pids = match (of.pid, having.as_slice()) {
            (Some(pid), _) => vec![pid],
            (None, []) => {
                eprintln!("linetender: {}", no_server(found, &of.server));
                return ExitCode::FAILURE;
            }
            (None, [one]) => vec![*one],
            (None, _) if of.all => having,
            (None, many) => {
                let pids: Vec<_> = many.iter().map(ToString::to_string).collect();
                eprintln!(
                    "linetender: {} processes have a server named {}: add --all, or --pid with one of {}",
                    many.len(),
                    visible::line(&of.server),
                    pids.join(", ")
                );
                return ExitCode::FAILURE;
            }
        };
        tell(&pids, &act(of.server.clone()), of.json).await
    })
}

/// The same for what concerns a whole process.
pub(crate) fn of_process(pid: Option<u32>, json: bool, act: &Act) -> ExitCode {
    holders::with_all(async |found| {
        let pids: Vec<u32> = match pid {
            Some(pid) => vec![pid],
            None => found.iter().map(|holder| holder.pid).collect(),
        };
        if pids.is_empty() {
            eprintln!("linetender: no linetender process is running");
            return ExitCode::FAILURE;
        }
        tell(&pids, act, json).await
    })
}

async fn tell(pids: &[u32], act: &Act, json: bool) -> ExitCode {
    let (mut code, mut told) = (ExitCode::SUCCESS, Vec::<Value>::new());
    for pid in pids {
        let done: std::io::Result<Done> = ask_holder(&places::sockets(), *pid, &Ask::Act(act.clone())).await;
        match done {
            Ok(Done { done }) if json => told.push(json!({ "pid": pid, "done": done })),
            Ok(Done { done }) => println!("{pid}: {}", visible::line(&done)),
            Err(error) => {
                code = ExitCode::FAILURE;
                if json {
                    told.push(json!({ "pid": pid, "error": error.to_string() }));
                } else {
                    eprintln!("linetender: {pid}: {}", visible::line(&error.to_string()));
                }
            }
        }
    }
    if json {
        println!("{}", visible::json(&format!("{:#}", Value::from(told))));
    }
    code
}

fn has(holder: &Found, server: &str) -> bool {
    match &holder.reply {
        Reply::Report(report) => report.lines.iter().any(|line| line.server == server),
        Reply::Silent(_) => false,
    }
}

/// Whether its server of this name is run by a keeper, which is the one to be told.
fn is_shared(holder: &Found, server: &str) -> bool {
    match &holder.reply {
        Reply::Report(report) => {
            let mut lines = report.lines.iter().filter(|line| line.server == server);
            lines.all(|line| line.keeper.is_some())
        }
        Reply::Silent(_) => false,
    }
}

/// That there is none, and which there are.
pub(crate) fn no_server(found: &[Found], server: &str) -> String {
    let mut names: Vec<&str> = found
        .iter()
        .filter_map(|holder| match &holder.reply {
            Reply::Report(report) => Some(report.lines.iter().map(|line| line.server.as_str())),
            Reply::Silent(_) => None,
        })
        .flatten()
        .collect();
    names.sort_unstable();
    names.dedup();
    let server = visible::line(server);
    let silent = found.iter().filter(|holder| matches!(holder.reply, Reply::Silent(_)));
    let silent: Vec<_> = silent.map(|holder| holder.pid.to_string()).collect();
    if !silent.is_empty() {
        let which = silent.join(", ");
        return format!(
            "no linetender process that answers has a server named {server}. Some do not answer now (pid {which}); to try one of \
             them all the same, add --pid"
        );
    }
    if names.is_empty() {
        return format!("no running linetender process has a server named {server}, nor any other");
    }
    format!(
        "no running linetender process has a server named {server}; there are: {}",
        visible::line(&names.join(", "))
    )
}
