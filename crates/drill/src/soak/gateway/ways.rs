//! The ways in which an agent makes a call, and what it then owes or is owed.

use std::time::Duration;

use linetender::Era;
use serde_json::{Value, json};

use super::agent::Agent;
use super::house::Kind;
use crate::dice::Dice;

/// What a large call carries, in bytes: more than sockets and queues between hold without being read.
const LARGE: usize = 400_000;

/// How long an agent that does not read does not read, in milliseconds.
const UNREAD: u64 = 1500;

/// How long the stream of a call that was taken back may stay open.
const TAKEN_BACK: Duration = Duration::from_secs(8);

/// A stream that ended without the answer.
const ENDED: &str = "its stream ended without an answer";

/// A way to make a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    /// Asks, and waits.
    Plain,
    /// The same; the server takes its time.
    Slow,
    /// Wants to hear of its progress.
    Progress,
    /// Takes it back in the middle. In the legacy era that is a notification.
    TakesBack,
    /// Hangs up in the middle.
    HangsUp,
    /// Does not read its answer for a while.
    Unread,
}

impl Way {
    /// One that this kind of server and this era have. Of a hundred calls, 70 are plain.
    pub(super) fn draw(dice: &mut Dice, kind: Kind, era: Era) -> Self {
        match (dice.below(100), kind) {
            (96.., Kind::Real) => Self::HangsUp,
            (_, Kind::Real) | (0..70, _) => Self::Plain,
            (70..82, _) => Self::Slow,
            (82..90, _) => Self::Progress,
            (90..94, _) if era == Era::Legacy => Self::TakesBack,
            (90..96, _) => Self::HangsUp,
            _ => Self::Unread,
        }
    }

    /// The tool, and its arguments but for the nonce.
    pub(super) fn words(self, kind: Kind, dice: &mut Dice) -> (&'static str, Value) {
        match self {
            _ if kind == Kind::Real => ("echo", json!({})),
            Self::Plain => ("write", json!({})),
            Self::Slow => ("sleep", json!({ "ms": dice.below(300) })),
            Self::Progress => ("progress", json!({ "times": 3, "n": 3, "ms": dice.below(30) })),
            Self::TakesBack | Self::HangsUp => ("sleep", json!({ "ms": 200 + dice.below(400) })),
            Self::Unread if dice.below(2) == 0 => ("write", json!({ "much": "x".repeat(LARGE) })),
            Self::Unread => ("progress", json!({ "times": 60, "n": 60, "ms": 1 })),
        }
    }

    /// Makes the call; its answer, or nothing if it went without one. An error is a finding.
    pub(super) async fn carry(
        self,
        agent: &mut Agent,
        message: &Value,
        nonce: &str,
    ) -> Result<Option<Value>, String> {
        let moment = Duration::from_millis(agent.dice.below(60));
        match self {
            Self::Plain | Self::Slow | Self::Progress => answer(agent, message, nonce, 0).await,
            Self::Unread => answer(agent, message, nonce, UNREAD).await,
            Self::HangsUp => {
                // The call is on its way, or at work, or just answered.
                let _ = tokio::time::timeout(moment, answer(agent, message, nonce, 0)).await;
                Ok(None)
            }
            Self::TakesBack => {
                let cancel = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": message["id"] },
                });
                let takes_back = async {
                    tokio::time::sleep(moment).await;
                    agent.post(&cancel).await.and_then(|reply| match reply.status.as_u16() {
                        202 => Ok(()),
                        status => Err(format!("taking it back was answered with {status}")),
                    })
                };
                let told = tokio::time::timeout(TAKEN_BACK, answer(agent, message, nonce, 0));
                let (told, taken) = tokio::join!(told, takes_back);
                taken?;
                match told {
                    // It may have been answered already, and an end without an answer is what was asked for.
                    Ok(Ok(_)) => Ok(None),
                    Ok(Err(found)) if found == ENDED => Ok(None),
                    Ok(Err(found)) => Err(found),
                    Err(_) => Err("it was taken back, and its stream stays open".to_owned()),
                }
            }
        }
    }
}

/// Asks, and reads until the answer. What comes before it must be this call's own progress.
async fn answer(agent: &Agent, message: &Value, nonce: &str, unread: u64) -> Result<Option<Value>, String> {
    let mut reply = agent.post(message).await?;
    tokio::time::sleep(Duration::from_millis(unread)).await;
    while let Some(said) = reply.next().await? {
        if said.get("method").is_none() {
            // A refusal by status names no id.
            return if said["id"] == message["id"] || reply.status != 200 {
                Ok(Some(said))
            } else {
                Err(format!("an answer that is not its own: {said}"))
            };
        }
        let params = &said["params"];
        let own = params["progressToken"] == message["params"]["_meta"]["progressToken"]
            && (params["message"].is_null() || params["message"] == nonce);
        if said["method"] == "notifications/progress" && !own {
            return Err(format!("progress that is not its own: {said}"));
        }
        agent.world.notes.pages().notifications += 1;
    }
    Err(ENDED.to_owned())
}
