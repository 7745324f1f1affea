//! Tasks that an agent asks for: whether they are its own, and what is said of those that died with their server.

use bytes::Bytes;
use linetender_wire::Redacted;
use linetender_wire::frame::{self, Members};
use linetender_wire::handshake::Era;
use serde_json::value::RawValue;

use super::{bridge, replies};
use crate::audience::TaskOwner;
use crate::basics::error::Phase;
use crate::call::Reply;
use crate::call::turns::Caller;
use crate::line::Line;

/// What is said of a task that is not there, or not for whoever asks.
const NONE: &str = r#"{"code":-32602,"message":"linetender: no task with this taskId"}"#;

/// How a server refuses what it does not know.
const INVALID_PARAMS: i64 = -32602;

/// How much is shown of what it says then.
const SHOWN: usize = 200;

/// Whose the tasks are that a caller begins. A legacy agent has a session, and is the same from one request to the next; of a modern one
/// only its principal is.
pub(super) fn owner(caller: Caller, era: Era) -> TaskOwner {
    let agent = match caller {
        Caller::Owner => None,
        Caller::Listener(number) => Some(number),
        Caller::Known(who) => (era == Era::Legacy).then_some(who.agent),
    };
    TaskOwner { principal: caller.principal(), session: agent }
}

/// The task that a request is about.
pub(super) fn named(method: &str, params: Option<&str>) -> Option<String> {
    if !method.starts_with("tasks/") {
        return None;
    }
    Members::of(params?)?.string("taskId").map(Into::into)
}

/// The answer to whoever asks for another's task, which is that to whoever asks for none there is.
pub(super) fn not_its(
    line: &Line,
    method: &str,
    params: Option<&str>,
    caller: Caller,
    era: Era,
) -> Option<&'static str> {
    let (Some(about), Caller::Known(_)) = (method.strip_prefix("tasks/"), caller) else { return None };
    match named(method, params) {
        _ if about == "list" => None,
        Some(task) if line.audience().may_ask_for(&task, owner(caller, era)) => None,
        _ => Some(NONE),
    }
}

/// On a line that several share, a server's own words for a task that it does not have are ours too: otherwise they would tell it from
/// one that is another's.
pub(super) fn none(line: &Line, task: &str, id: &str, answer: &Reply, caller: Caller) -> Option<Bytes> {
    let Caller::Known(_) = caller else { return None };
    let refused = answer.error().is_some_and(|error| replies::code(error) == INVALID_PARAMS);
    (refused && line.audience().began(task).is_none()).then(|| frame::error_reply(id, NONE))
}

/// A server's list of tasks, without those of others with whom the line is shared.
// MCP 2025-11-25, "Tasks", "Security": a list MUST have only tasks of the requestor's authorization context.
pub(super) fn own(
    line: &Line,
    method: &str,
    id: &str,
    answer: &Reply,
    caller: Caller,
    era: Era,
) -> Option<Bytes> {
    let (true, Caller::Known(_), None) = (method == "tasks/list", caller, answer.error()) else {
        return None;
    };
    let result = answer.result();
    let list = Members::of(result).and_then(|members| members.get("tasks"));
    let all: Vec<&RawValue> = list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default();
    let is_own = |task: &&&RawValue| {
        let id = Members::of(task.get()).and_then(|members| members.string("taskId"));
        id.is_some_and(|id| line.audience().may_ask_for(&id, owner(caller, era)))
    };
    let own: Vec<&str> = all.iter().filter(is_own).map(|task| task.get()).collect();
    let own = format!("[{}]", own.join(","));
    // What has no list that can be read shows nothing.
    let shown = crate::basics::params::respell_member(result, "tasks", &own);
    let shown = shown.unwrap_or_else(|| r#"{"tasks":[]}"#.to_owned());
    Some(frame::reply(id, &bridge::result(era, method, shown)))
}

/// What is said of a task that its server does not know any more because it was restarted since.
pub(super) fn lost(line: &Line, task: &str, id: &str, answer: &Reply) -> Option<Bytes> {
    let error = answer.error().filter(|error| replies::code(error) == INVALID_PARAMS)?;
    if line.audience().began(task)?.number() >= line.status().generation {
        return None;
    }
    let cause = "the server was restarted after this task began and no longer has it: its result is lost";
    let message = format!(
        "linetender: {}: {cause}. It is unknown how much of it was executed: check for side effects before beginning it again. \
         The server's error: {}",
        line.name(),
        Redacted::head(error, SHOWN)
    );
    let data = serde_json::json!({
        "source": "linetender", "server": line.name(), "phase": Phase::AtServer.name(), "cause": cause,
        "delivery": "unknown", "nextTry": "never",
    });
    let error = serde_json::json!({ "code": INVALID_PARAMS, "message": message, "data": data });
    Some(frame::error_reply(id, &error.to_string()))
}
