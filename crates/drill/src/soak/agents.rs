//! Many agents on one line whose server is killed again and again: does any of them ever hear what is another's?
//!
//! All of them use the same ids and the same progress tokens, so that whatever is mixed up is also taken for one's own,
//! and only the nonce in it tells.

pub(super) mod ends;
pub(super) mod one;

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use linetender::{Era, Eras, Rig};
use linetender_badserver::{Book, Finding};
use tokio::task::JoinSet;

use super::{HUNG, badserver, no_budget, process, runtime, tell};
use ends::Ends;
use one::{Life, Told};

const AGENTS: u64 = 50;

const KILL_EVERY: Duration = Duration::from_millis(150);

/// So many seconds, half of them on a legacy server and half on a modern one.
pub fn agents(seconds: u64) -> ExitCode {
    let verdict = runtime().block_on(async {
        let mut lives = Vec::new();
        let mut kills = 0;
        for era in [Era::Legacy, Era::Modern] {
            kills += crowd(era, Duration::from_secs(seconds) / 2, &mut lives).await?;
        }
        Ok(format!("{AGENTS} agents on one line, {kills} kills, {}", report(&lives)))
    });
    tell(verdict)
}

/// All agents on one line for so long; how often its server was killed.
#[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
async fn crowd(era: Era, time: Duration, lives: &mut Vec<Life>) -> Result<u32, String> {
    let path = std::env::temp_dir().join(format!("linetender-agents-{}-{era:?}", std::process::id()));
    let book = Book::at(&path);
    let (name, at) = (if era == Era::Legacy { "legacy" } else { "modern" }, path.to_string_lossy());
    let server = badserver(&["--full", "--era", name, "--book", &at]).eras(Eras::Only(era));
    let line = Rig::new().open(server.policy(no_budget()));
    let end = Instant::now() + time;
    let mut agents = JoinSet::new();
    for number in 0..AGENTS {
        let line = line.clone();
        agents.spawn(async move { one::live(|| Ok(Ends::join(&line)), era, number, end).await });
    }
    let killed = async {
        let mut kills = 0;
        while Instant::now() < end {
            tokio::time::sleep(KILL_EVERY).await;
            if let Some(pid) = line.pid() {
                process::kill(pid);
                kills += 1;
            }
        }
        kills
    };
    let lived = async {
        let mut here = Vec::new();
        while let Some(life) = agents.join_next().await {
            here.push(life.map_err(|error| error.to_string())??);
        }
        Ok::<_, String>(here)
    };
    let bound = time + HUNG * 2;
    let (kills, lived) = tokio::join!(killed, tokio::time::timeout(bound, lived));
    let lived = lived.map_err(|_| "an agent hung".to_owned())??;
    line.close().await;
    let judged = judge(&lived, &book.runs());
    let _ = std::fs::remove_file(&path);
    judged?;
    lives.extend(lived);
    Ok(kills)
}

/// Holds what the agents were told against what the server wrote down.
pub(super) fn judge(lives: &[Life], runs: &HashMap<String, u32>) -> Result<(), String> {
    for (nonce, told) in lives.iter().flat_map(|life| &life.calls) {
        let (nonce, runs) = (nonce.clone(), runs.get(nonce).copied().unwrap_or(0));
        let finding = match told {
            _ if runs > 1 => Finding::RanTwice { nonce, runs },
            Told::Answer if runs == 0 => Finding::WrongVerdict { nonce, told: "answered".into(), runs },
            Told::NotExecuted if runs > 0 => {
                Finding::WrongVerdict { nonce, told: "not executed".into(), runs }
            }
            Told::Answer | Told::NotExecuted | Told::Unknown | Told::Nothing => continue,
        };
        return Err(finding.to_string());
    }
    Ok(())
}

/// What the agents did, and that nothing was found.
pub(super) fn report(lives: &[Life]) -> String {
    let told =
        |wanted: Told| lives.iter().flat_map(|life| &life.calls).filter(|(_, told)| *told == wanted).count();
    let sum = |what: fn(&Life) -> u64| lives.iter().map(what).sum::<u64>();
    format!(
        "{} sessions, {} calls ({} answered, {} unknown, {} not executed, \
         {} left in the middle), {} notifications, {} questions: 0 at the wrong agent, 0 hung, 0 run twice, 0 wrong verdicts",
        sum(|life| life.sessions),
        sum(|life| life.calls.len() as u64),
        told(Told::Answer),
        told(Told::Unknown),
        told(Told::NotExecuted),
        told(Told::Nothing),
        sum(|life| life.notifications),
        sum(|life| life.questions),
    )
}
