//! A modern server that needs something of the agent answers with what it needs, and wants to be asked again with it. A
//! legacy agent knows nothing of that: it is asked, as it would be by a legacy server, and its call goes on.
// MCP 2026-07-28, "Multi Round-Trip Requests".

use bytestring::ByteString;
use linetender_core::Delivery;
use linetender_wire::frame::{Frame, Members, Message, Outcome, respell};
use linetender_wire::handshake::Era;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::bridge;
use crate::basics::error::{CallError, CallErrorKind, Phase};
use crate::basics::next_try::NextTry;
use crate::call::{Options, Reply};
use crate::line::Line;

/// How often a server may ask back before its call fails.
const ROUNDS: u32 = 16;

/// The most that may be asked at once.
const QUESTIONS: usize = 64;

/// A question for the agent.
pub(super) struct Round {
    pub(super) method: String,
    pub(super) params: Option<String>,
    pub(super) answer: oneshot::Sender<Frame>,
}

/// A call of an agent's, with as many rounds as it takes.
pub(super) struct Call<'a> {
    pub(super) line: &'a Line,
    pub(super) method: &'a str,
    pub(super) options: Options,
    /// Where questions for a legacy agent go.
    pub(super) rounds: Option<&'a mpsc::Sender<Round>>,
    /// The agent's era.
    pub(super) era: Era,
}

/// What a server needs.
#[derive(Deserialize)]
struct Needs<'a> {
    #[serde(borrow, default, rename = "inputRequests")]
    requests: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Needed<'a> {
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl Call<'_> {
    pub(super) async fn run(&self, params: Option<ByteString>) -> Result<Reply, CallError> {
        let mut now = params.clone();
        for round in 0..ROUNDS {
            let answer = self.line.pass(self.method, now.as_deref(), self.options_of(round)).await?;
            if self.era == Era::Modern || !answer.is_modern() || !bridge::needs_input(answer.result()) {
                return Ok(answer);
            }
            match self.gather(answer.result()).await {
                Some(members) => now = Some(bridge::with_members(params.as_deref(), &members).into()),
                None => {
                    return Err(self.unanswered("the agent did not answer the server's request for input"));
                }
            }
        }
        Err(self.unanswered("the server keeps requesting input: too many rounds"))
    }

    /// Returns the options of one round. Each round has its own time: what a person took to answer is not the server's.
    fn options_of(&self, round: u32) -> Options {
        let is_later_round = round > 0;
        let arrived = self.options.arrived.filter(|_| !is_later_round);
        Options { is_later_round, arrived, ..self.options.clone() }
    }

    /// A legacy agent could make nothing of a result that is a question, so its call fails with a reason.
    fn unanswered(&self, cause: &str) -> CallError {
        CallError {
            kind: CallErrorKind::BadAnswer,
            server: self.line.name().into(),
            phase: Phase::AtServer,
            cause: cause.to_owned(),
            delivery: Delivery::Answered,
            next_try: NextTry::Now,
            stderr: None,
            answered: None,
            context: None,
            attempts: 1,
        }
    }

    /// Asks the agent for all that is needed: what belongs into the next request. `None` if it could not be had.
    async fn gather(&self, result: &str) -> Option<String> {
        let needs: Needs<'_> = serde_json::from_str(result).ok()?;
        let mut members = Vec::new();
        if let Some(requests) = needs.requests {
            let mut waiting = Vec::new();
            let named = Members::of(requests.get())?.all().filter_map(|(name, needed)| Some((name?, needed)));
            for (key, needed) in named.take(QUESTIONS) {
                let Needed { method, params } = serde_json::from_str(needed.get()).ok()?;
                let (answer, told) = oneshot::channel();
                let params = params.map(|params| params.get().to_owned());
                self.rounds?.send(Round { method, params, answer }).await.ok()?;
                waiting.push((key, told));
            }
            let until = Instant::now() + self.line.policy().call.question_cap;
            let mut answers = Vec::new();
            for (key, told) in waiting {
                let frame = tokio::time::timeout_at(until, told).await.ok()?.ok()?;
                let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message()
                else {
                    return None;
                };
                answers.push(format!("{}:{result}", respell(&key)));
            }
            members.push(format!(r#""inputResponses":{{{}}}"#, answers.join(",")));
        }
        if let Some(state) = needs.state {
            members.push(format!(r#""requestState":{}"#, state.get()));
        }
        Some(members.join(","))
    }
}
