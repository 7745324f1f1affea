//! Faults, done: to the server, to its network, or to the target.

use std::time::Duration;

use linetender_badserver::process::{self, lives, parent};
use linetender_badserver::webserver::{self, Ending, Sockets, WebServer};
use serde_json::{Value, json};

use super::agent::HUNG;
use super::stage::{Stage, Told};
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

/// The processes that it will be done to. They are looked for before it is done: how long that takes is the system's business, and
/// times count from the fault.
pub(crate) async fn aim(scenario: &Scenario, stage: &Stage) -> Result<Vec<i32>, String> {
    match &scenario.fault {
        // A target may hold several of the same server, a process for each request even: all of them die then, or those that are left
        // would look like calls that hang.
        Fault::Kill | Fault::ChangeAndKill => {
            stage.process().await.map(|first| stage.servers(first)).ok_or("there is no server to kill".into())
        }
        // Of what it has started, the last.
        Fault::KillLast => {
            stage.process().await.ok_or("there is no server to kill")?;
            Ok(stage.processes().pop().into_iter().collect())
        }
        Fault::Stop { .. } => {
            stage.process().await.ok_or("there is no server to stop")?;
            Ok(stage.processes())
        }
        Fault::KillReaper => {
            let server = stage.process().await.ok_or("there is no server")?;
            Ok(vec![parent(server).ok_or("the server has no parent")?])
        }
        _ => Ok(Vec::new()),
    }
}

/// Does it, to these processes. What is told on failure must not be.
pub(crate) async fn act(
    scenario: &Scenario,
    stage: &mut Stage,
    run: u32,
    aim: Vec<i32>,
) -> Result<Done, String> {
    match &scenario.fault {
        Fault::None | Fault::TakeBack => {}
        Fault::Kill | Fault::KillLast => kill(aim).await?,
        Fault::Stop { for_ms } => {
            let all = aim;
            for pid in &all {
                process::stop(*pid);
            }
            if let Some(ms) = for_ms {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                for pid in &all {
                    process::go_on(*pid);
                }
            }
        }
        Fault::KillReaper => aim.into_iter().for_each(process::kill),
        Fault::KillTarget => return stage.ends_by(Told::ToDie).await.map(Done::Ended),
        Fault::TermTarget => return stage.ends_by(Told::ToEnd).await.map(Done::Ended),
        Fault::Mend => stage.server.mend().await?,
        Fault::Flip => stage.server.flip().await?,
        Fault::ChangeAndKill => {
            stage.server.change(run)?;
            kill(aim).await?;
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

/// Kills them, one after the other.
async fn kill(victims: Vec<i32>) -> Result<(), String> {
    for victim in victims {
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
