//! Calls with a key as tasks: any node can be asked for them, by whoever began them.
// The extension `io.modelcontextprotocol/tasks` of 2026-07-28.

use std::time::{Duration, UNIX_EPOCH};

use linetender::Era;
use linetender::session::Replied;
use linetender_wire::frame::{self, Frame, Members, Message, Outcome};
use linetender_wire::wall::rfc3339;
use serde_json::{Value, json};

use super::durable::{Asked, Asker, in_era, replied};
use super::once::Answer;
use super::results::Told;
use super::tasks;
use crate::durable::{Ending, Identity, Seen, State, name_of_task};
use crate::ends::Ended;
use crate::failed::Failed;
use crate::gateway::Gateway;
use crate::kept::Of;
use crate::listing::Route;
use crate::principal::Principal;
use crate::tasks::OwnTasks;

/// How often whoever waits for one may ask, in milliseconds.
const POLL: u64 = 1000;

const INVALID_PARAMS: i32 = -32602;

/// A task, as its agent is told of it.
pub(super) struct Task {
    id: String,
    since: u64,
    at: u64,
    kept: Duration,
    status: &'static str,
}

impl Task {
    /// A call that was just asked for.
    pub(super) fn begun(call: &Identity, since: u64, kept: Duration) -> Self {
        Self { id: call.task(), since, at: since, kept, status: "working" }
    }

    pub(super) fn told(&self, kind: &str) -> Value {
        let kept = u64::try_from(self.kept.as_millis()).unwrap_or(u64::MAX);
        let time = |at: u64| rfc3339(UNIX_EPOCH + Duration::from_millis(at.min(LAST)));
        json!({
            "resultType": kind, "taskId": self.id, "status": self.status, "createdAt": time(self.since),
            "lastUpdatedAt": time(self.at), "ttlMs": kept, "pollIntervalMs": POLL,
        })
    }
}

/// The last millisecond that can be told of: another node may have noted anything.
const LAST: u64 = 253_402_300_799_000;

/// Asks about a call that became a task. `None` if the task is a server's.
pub(super) fn ask(asker: &Asker<'_>, frame: &Frame, params: &str) -> Option<Asked> {
    let id = Members::of(params)?.string("taskId")?;
    let name = name_of_task(&id)?.to_owned();
    let looks = Looks {
        name,
        frame: frame.clone(),
        declared: tasks::declares(params),
        routes: asker
            .view
            .routes
            .iter()
            .filter(|route| route.berth.entry.durable.is_some())
            .cloned()
            .collect(),
        gateway: asker.gateway.clone(),
        principal: asker.visitor.principal.clone(),
        tasks: asker.tasks.clone(),
    };
    Some(Asked { answer: Answer::new(looks.replied(), None), cancel: None })
}

/// Somebody who asks about a task.
struct Looks {
    name: String,
    frame: Frame,
    declared: bool,
    /// Servers whose calls it may see here.
    routes: Vec<Route>,
    gateway: Gateway,
    principal: Principal,
    tasks: OwnTasks,
}

impl Looks {
    async fn replied(self) -> Replied {
        let Message::Request { id, method, .. } = self.frame.message() else {
            return replied(Failed::nowhere().error("null").into());
        };
        match self.answer(id, method).await {
            Ok(answer) => {
                self.gateway.ends().saw(&self.frame, &self.principal, Ended::Answered);
                replied(answer.into())
            }
            Err(failed) => {
                self.gateway.ends().saw(&self.frame, &self.principal, Ended::Refused(failed.code()));
                replied(failed.error(id).into())
            }
        }
    }

    async fn answer(&self, id: &str, method: &str) -> Result<Frame, Failed> {
        if !self.declared {
            return Err(tasks::undeclared());
        }
        let seen = self.gateway.durable().look(&self.name, &self.principal).await?;
        // Whoever may not see the server any more asks for something that is not there.
        let route = |seen: &Seen| self.routes.iter().find(|route| *route.berth.name() == *seen.server);
        let none = || Failed::refused(INVALID_PARAMS, "no task with this taskId", "never");
        let (seen, route) = seen
            .and_then(|seen| Some((route(&seen)?, seen)))
            .map(|(route, seen)| (seen, route))
            .ok_or_else(none)?;
        if method == "tasks/get" {
            return Ok(self.state(id, seen, route));
        }
        // It asks nothing, so there is nothing to be answered.
        if method == "tasks/cancel" {
            self.gateway.durable().cancel(&seen.identity);
        }
        Ok(frame::response(id, &[r#"{"resultType":"complete"}"#]))
    }

    fn state(&self, id: &str, seen: Seen, route: &Route) -> Frame {
        let Seen { identity, since, at, kept, state, .. } = seen;
        let task =
            |status| Task { id: identity.task(), since, at, kept, status }.told("complete").to_string();
        let answer = match state {
            State::Working => return frame::response(id, &[&task("working")]),
            State::Cancelled => return frame::response(id, &[&task("cancelled")]),
            State::Ended(Ending::Answered(answer)) => Some(answer),
            State::Ended(Ending::Failed(failed)) => failed.outcome(),
        };
        let answer = answer.map(|answer| in_era(&answer, Era::Modern).into_owned());
        let outcome = answer.as_ref().and_then(|answer| match answer.message() {
            Message::Response { outcome, .. } => outcome,
            Message::Request { .. } | Message::Notification { .. } => None,
        });
        let (status, member, said) = match outcome {
            Some((Outcome::Result, result)) => ("completed", "result", result),
            Some((Outcome::Error, error)) => ("failed", "error", error),
            None => return frame::response(id, &[&task("failed")]),
        };
        let head = task(status);
        let head = head.strip_suffix('}').unwrap_or(&head);
        let whole = frame::response(id, &[head, ",\"", member, "\":", said, "}"]);
        let told =
            Told { method: "tasks/get", naming: &route.naming, from: route.berth.number, tasks: &self.tasks };
        let whole = told.named(&whole);
        match route.berth.entry.result_limit {
            Some(limit) => {
                let of = Of { principal: &self.principal, berth: route.berth.number, limit };
                self.gateway.kept_results().cut(whole, of)
            }
            None => whole,
        }
    }
}
