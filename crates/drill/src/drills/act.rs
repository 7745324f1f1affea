//! Faults, done: to the server, to its network, or to the target.

use std::time::Duration;

use linetender_badserver::process::{self, lives, parent};
use linetender_badserver::webserver::{self, Ending, Sockets, WebServer};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::agent::HUNG;
use super::stage::Stage;
use crate::scenario::{Fault, Scenario};

/// How often is looked whether a killed process is dead.
const LOOK: Duration = Duration::from_micros(200);

/// What came of doing it.
pub(crate) enum Done {
    /// It is done.
    Done,
    /// The target was killed, or told to end; so long lived whatever it had started.
    Ended(Duration),
}

/// Does it. What is told on failure must not be.
pub(crate) async fn act(scenario: &Scenario, stage: &mut Stage, run: u32) -> Result<Done, String> {
    match &scenario.fault {
        Fault::None | Fault::TakeBack => {}
        Fault::Kill => kill(stage, false).await?,
        Fault::KillLast => kill(stage, true).await?,
        Fault::Stop { for_ms } => {
            stage.process().await.ok_or("there is no server to stop")?;
            let all = stage.processes();
            for pid in &all {
                process::send(*pid, Signal::STOP);
            }
            if let Some(ms) = for_ms {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                for pid in &all {
                    process::send(*pid, Signal::CONT);
                }
            }
        }
        Fault::KillReaper => {
            let server = stage.process().await.ok_or("there is no server")?;
            process::kill(parent(server).ok_or("the server has no parent")?);
        }
        Fault::KillTarget => return stage.ends_by(Signal::KILL).await.map(Done::Ended),
        Fault::TermTarget => return stage.ends_by(Signal::TERM).await.map(Done::Ended),
        Fault::Mend => stage.server.mend().await?,
        Fault::Flip => stage.server.flip().await?,
        Fault::ChangeAndKill => {
            stage.server.change(run)?;
            kill(stage, false).await?;
        }
        Fault::Redial { callers, times } => {
            for time in 0..*times {
                // One that served nobody would be put off: what is asked here is what planned ends cost one that serves.
                if time > 0 {
                    serve(stage, &format!("redial-{run}-{time}")).await?;
                }
                redial(stage, *callers).await?;
            }
        }
        Fault::Restart => web(stage)?.restart(Ending::Reset).await.map_err(|error| error.to_string())?,
        Fault::ForgetSessions => web(stage)?.forget_sessions(),
        Fault::Refuse => web(stage)?.stop(Ending::Reset).await,
        Fault::Silence => web(stage)?.set(|manners| manners.sockets = Sockets::Silent),
        Fault::Reset => web(stage)?.end_connections(Ending::Reset),
        Fault::Meet { tool, args, times } => {
            let fault = webserver::Fault::new(tool, Value::from(args.clone())).times(*times);
            web(stage)?.set(|manners| manners.fault_on("tools/call", fault));
        }
    }
    Ok(Done::Done)
}

/// Ends what does not end by itself.
pub(crate) async fn undo(scenario: &Scenario, stage: &mut Stage) -> Result<(), String> {
    match &scenario.fault {
        Fault::Refuse => web(stage)?.restart(Ending::Reset).await.map_err(|error| error.to_string()),
        Fault::Silence => {
            web(stage)?.set(|manners| manners.sockets = Sockets::Open);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Kills the server; or, of what it has started, the last. A target may hold several of the same server, a process for each
/// request even: all of them die then, or those that are left would look like calls that hang.
async fn kill(stage: &Stage, last: bool) -> Result<(), String> {
    let first = stage.process().await.ok_or("there is no server to kill")?;
    let victims = if last { stage.processes().last().map(|pid| vec![*pid]) } else { None };
    for victim in victims.unwrap_or_else(|| stage.servers(first)) {
        process::kill(victim);
        // Until it is dead it might still read.
        let dead = async {
            while lives(victim) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(HUNG, dead).await.map_err(|_| "the server does not die of SIGKILL")?;
    }
    Ok(())
}

fn web(stage: &mut Stage) -> Result<&mut WebServer, String> {
    stage.server.web.as_mut().ok_or_else(|| "the server is not at an address".to_owned())
}

/// A call that is answered.
async fn serve(stage: &Stage, nonce: &str) -> Result<(), String> {
    let line = stage.line().ok_or("only the library can be asked for that")?;
    let answer = line.call_tool("write", json!({ "nonce": nonce })).await;
    answer.map(drop).map_err(|error| format!("after a planned end a call failed: {error}"))
}

/// So many ask at once, and all get the same generation.
async fn redial(stage: &Stage, callers: u32) -> Result<(), String> {
    let line = stage.line().ok_or("only the library can be asked for that")?;
    let before = line.status();
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..callers {
        let line = line.clone();
        asked.spawn(async move { line.redial().await });
    }
    let mut generations = std::collections::BTreeSet::new();
    while let Some(told) = asked.join_next().await {
        generations.insert(told.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?);
    }
    if generations.len() != 1 {
        return Err(format!("{callers} callers got {} generations", generations.len()));
    }
    if line.status().budget < before.budget {
        return Err("a planned end was charged".to_owned());
    }
    Ok(())
}
