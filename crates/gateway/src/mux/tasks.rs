//! Tasks where many servers are: whose a request about one is, and ids as the agent knows them.
//!
//! A list has a page of each server that has tasks of this agent, one after the other: so each request goes to one server, and a
//! server that fails costs the others' tasks nothing.
// MCP 2025-11-25, "Tasks"; and the extension `io.modelcontextprotocol/tasks` of 2026-07-28, which has no lists.

use std::fmt::Write as _;

use linetender::Era;
use linetender_wire::frame::{self, Frame, Members, Message, Outcome, respell, string};
use linetender_wire::handshake::CAPABILITIES_IN_META;
use serde_json::json;
use serde_json::value::RawValue;

use super::acts::Act;
use super::{Running, State, extensions};
use crate::failed::Failed;
use crate::listing::{Route, View};
use crate::splice::Splice;
use crate::tasks::OwnTasks;

/// By which a message says that it belongs to a task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

const MISSING_CAPABILITY: i32 = -32021;
const INVALID_PARAMS: i32 = -32602;

/// Whether a method is about tasks, in this era.
pub(super) fn is_about(method: &str, modern: bool) -> bool {
    match method {
        "tasks/get" | "tasks/cancel" => true,
        "tasks/result" | "tasks/list" => !modern,
        "tasks/update" => modern,
        _ => false,
    }
}

impl State {
    /// A request about tasks.
    pub(super) fn task_asked(
        &mut self,
        frame: &Frame,
        id: &str,
        method: &str,
        params: Option<&str>,
        view: &View,
    ) -> Vec<Act> {
        let asked = if method == "tasks/list" { self.list(params, view) } else { self.task(params, view) };
        match asked {
            Ok(Some((route, params))) => {
                let (to, naming) = (route.berth.number, route.naming.clone());
                self.running.insert(id.into(), Running { to, method: method.into(), naming });
                vec![Act::Ask { to, id: id.into(), frame: frame.with_params(&params) }]
            }
            Ok(None) => vec![Act::answer(frame::reply(id, r#"{"tasks":[]}"#))],
            Err(failed) => vec![Act::refuse(&failed, id, method, self.is_modern())],
        }
    }

    /// The server of a task, and the params as that wants them.
    fn task<'v>(&self, params: Option<&str>, view: &'v View) -> Result<Option<(&'v Route, String)>, Failed> {
        let params = params.unwrap_or("{}");
        if self.is_modern() && !declares(params) {
            return Err(undeclared());
        }
        let value = Members::of(params).and_then(|members| members.get("taskId"));
        let found = value.and_then(|value| Some((value, self.tasks.find(&string(value)?)?)));
        let Some((value, (number, own))) = found else {
            return Err(Failed::refused(INVALID_PARAMS, "no task with this taskId", "never"));
        };
        let route = view.route(number).ok_or_else(|| {
            let cause = "the server of this task was changed or removed in the config after the task began: its result is lost";
            Failed::refused(INVALID_PARAMS, cause, "never")
        })?;
        let mut splice = Splice::of(params);
        splice.put(value, &own);
        Ok(Some((route, splice.done().into_owned())))
    }

    /// The server whose page comes next, and the params as it wants them; nothing if none has a task of this agent.
    fn list<'v>(&self, params: Option<&str>, view: &'v View) -> Result<Option<(&'v Route, String)>, Failed> {
        let members = params.and_then(Members::of);
        let cursor = members.as_ref().and_then(|members| members.get("cursor"));
        let (route, cursor) = match cursor.filter(|cursor| cursor.get() != "null") {
            None => (self.lists_from(0, view), None),
            Some(cursor) => {
                let none = || Failed::refused(INVALID_PARAMS, "no such cursor", "never");
                let cursor = string(cursor).ok_or_else(none)?;
                let (number, own) = match cursor.split_once(':') {
                    Some((number, own)) => (number, Some(own.to_owned())),
                    None => (&*cursor, None),
                };
                let number = number.parse().map_err(|_| none())?;
                (Some(view.route(number).ok_or_else(none)?), own)
            }
        };
        let Some(route) = route else { return Ok(None) };
        let meta = members.and_then(|members| members.get("_meta"));
        let meta = meta.map(|meta| format!(r#""_meta":{meta}"#));
        let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, respell(&cursor)));
        let members: Vec<_> = meta.into_iter().chain(cursor).collect();
        Ok(Some((route, format!("{{{}}}", members.join(",")))))
    }

    /// The first server from this place on that has tasks of this agent and can list them.
    fn lists_from<'v>(&self, place: usize, view: &'v View) -> Option<&'v Route> {
        let own = self.tasks.servers();
        let lists = |route: &&Route| {
            let declared = route.berth.line.declared();
            let tasks = declared.as_ref().and_then(|declared| declared.tasks.as_ref());
            own.contains(&route.berth.number) && tasks.is_none_or(|tasks| tasks.get("list").is_some())
        };
        view.routes.iter().skip(place).find(lists)
    }

    /// A page of a list: of these tasks, those of this agent.
    pub(super) fn tasks_listed(&self, frame: &Frame, from: u64, view: &View) -> Frame {
        let Message::Response { id: Some(id), outcome: Some((outcome, said)), .. } = frame.message() else {
            return frame.clone();
        };
        let (mut tasks, mut meta, mut cursor) = (Vec::new(), None, None);
        if outcome == Outcome::Result {
            let members = Members::of(said);
            let member = |name| members.as_ref().and_then(|members| members.get(name));
            let all =
                member("tasks").and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok());
            tasks =
                all.unwrap_or_default().into_iter().filter_map(|task| self.tasks.named(task, from)).collect();
            meta = member("_meta").map(ToString::to_string);
            cursor = member("nextCursor").and_then(string).map(|own| format!("{from}:{own}"));
        } else if let Some(route) = view.route(from) {
            // What is missing is said, and the others' tasks are still listed.
            let server = respell(route.berth.name());
            meta = Some(format!(r#"{{"linetender":{{"server":{server},"error":{said}}}}}"#));
        }
        let place = view.routes.iter().position(|route| route.berth.number == from);
        let next = place.and_then(|place| self.lists_from(place + 1, view));
        let cursor = cursor.or_else(|| next.map(|route| route.berth.number.to_string()));
        let mut members = format!(r#"{{"tasks":[{}]"#, tasks.join(","));
        for (name, value) in
            [("nextCursor", cursor.map(|cursor| respell(&cursor).into_owned())), ("_meta", meta)]
        {
            if let Some(value) = value {
                let _ = write!(members, r#","{name}":{value}"#);
            }
        }
        frame::response(id, &[&members, "}"])
    }
}

impl OwnTasks {
    /// A task as its agent knows it; `None` if it is not this agent's.
    fn named(&self, task: &RawValue, server: u64) -> Option<String> {
        let value = Members::of(task.get())?.get("taskId")?;
        let public = self.public(server, &string(value)?)?;
        let mut splice = Splice::of(task.get());
        splice.put(value, &public);
        Some(splice.done().into_owned())
    }
}

/// An answer with the ids that the agent knows. One that begins a task makes it the agent's.
pub(super) fn named(frame: &Frame, method: &str, from: u64, own: &OwnTasks) -> Option<Frame> {
    let Message::Response { id, outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
        return None;
    };
    if !result.contains("taskId") {
        return None;
    }
    let mut splice = Splice::of(result);
    if method == "tools/call"
        && let Some(begun) = begun(result)
    {
        let Some(public) = own.begin(from, &string(begun.id)?, begun.ttl) else {
            let failed = Failed::answered("the server began a task whose id is longer than 256 bytes");
            return frame::parse(&failed.error(id?), frame::Limits { length: usize::MAX, depth: usize::MAX })
                .ok();
        };
        splice.put(begun.id, &public);
    } else if method.starts_with("tasks/")
        && let Some(value) = Members::of(result)?.get("taskId")
        && let Some(public) = own.public(from, &string(value)?)
    {
        splice.put(value, &public);
    }
    relate(result, &mut splice, |task| own.public(from, task));
    match splice.done() {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(result) => Some(frame.with_outcome(&result)),
    }
}

/// What is said to a client that asks for tasks and does not say that it knows them.
pub(super) fn undeclared() -> Failed {
    let needed = json!({ "extensions": { (extensions::TASKS): {} } });
    let cause = "the client did not declare the extension io.modelcontextprotocol/tasks";
    Failed::refused(MISSING_CAPABILITY, cause, "never").with("requiredCapabilities", needed)
}

/// Whether a modern request says that its client knows tasks.
// The extension, "Protocol Errors": non-declaring clients MUST be refused for that, whatever else they ask for.
pub(super) fn declares(params: &str) -> bool {
    let declared = || {
        let meta = Members::of(Members::of(params)?.get("_meta")?.get())?;
        let all = Members::of(meta.get(CAPABILITIES_IN_META)?.get())?;
        Members::of(all.get("extensions")?.get())?.get(extensions::TASKS)
    };
    declared().is_some()
}

struct Begun<'a> {
    id: &'a RawValue,
    ttl: Option<u64>,
}

/// The task that a call's result says was begun: in the legacy era it is in `task`, in the modern one it is the result.
fn begun(result: &str) -> Option<Begun<'_>> {
    let members = Members::of(result)?;
    let (task, ttl) = match members.get("task") {
        Some(task) if members.get("content").is_none() => (Members::of(task.get())?, "ttl"),
        _ if members.string("resultType").as_deref() == Some("task") => (members, "ttlMs"),
        _ => return None,
    };
    string(task.get("taskId")?)?;
    let ttl = task.get(ttl).and_then(|ttl| serde_json::from_str::<f64>(ttl.get()).ok());
    // More than any number of milliseconds that is meant is for ever.
    let ttl = ttl.filter(|ttl| (0.0..1e15).contains(ttl));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within these")]
    Some(Begun { id: task.get("taskId")?, ttl: ttl.map(|ttl| ttl as u64) })
}

/// Where an object names its task, and what this agent knows that by; nothing, if it is not this agent's.
pub(super) fn known<'a>(object: &'a str, from: u64, own: &OwnTasks) -> Option<(&'a RawValue, String)> {
    let value = Members::of(object)?.get("taskId")?;
    Some((value, own.public(from, &string(value)?)?))
}

/// The state of a task, if it is this agent's.
pub(super) fn status(frame: &Frame, params: &str, from: u64, own: &OwnTasks) -> Option<Frame> {
    let (value, public) = known(params, from, own)?;
    let mut splice = Splice::of(params);
    splice.put(value, &public);
    Some(frame.with_params(&splice.done()))
}

/// A server's question that belongs to a task, as the agent knows that.
pub(super) fn question(frame: &Frame, from: u64, own: &OwnTasks) -> Option<Frame> {
    let Message::Request { params: Some(params), .. } = frame.message() else { return None };
    let mut splice = Splice::of(params);
    relate(params, &mut splice, |task| own.public(from, task));
    let named = splice.done();
    matches!(named, std::borrow::Cow::Owned(_)).then(|| frame.with_params(&named))
}

/// An agent's answer that belongs to a task, as its server knows that.
pub(super) fn reply(frame: &Frame, own: &OwnTasks) -> Option<Frame> {
    let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
        return None;
    };
    let mut splice = Splice::of(result);
    relate(result, &mut splice, |task| own.find(task).map(|(_, own)| own));
    let named = splice.done();
    matches!(named, std::borrow::Cow::Owned(_)).then(|| frame.with_outcome(&named))
}

/// Names the task that an object belongs to.
fn relate(object: &str, splice: &mut Splice<'_>, name: impl Fn(&str) -> Option<String>) {
    if !object.contains("related-task") {
        return;
    }
    let value = || {
        let meta = Members::of(Members::of(object)?.get("_meta")?.get())?;
        Members::of(meta.get(RELATED)?.get())?.get("taskId")
    };
    if let Some((value, task)) = value().and_then(|value| Some((value, name(&string(value)?)?))) {
        splice.put(value, &task);
    }
}

/// What a legacy agent is told of tasks, if servers of its era run any: what all of these can.
pub(super) fn capability(view: &View) -> Option<serde_json::Value> {
    let declared = view.routes.iter().filter_map(|route| route.berth.line.declared());
    let legacy = declared.filter(|declared| declared.era == Era::Legacy);
    let mut all = json!({ "requests": { "tools": { "call": {} } } });
    let of: Vec<_> = legacy.filter_map(|declared| declared.tasks.clone()).collect();
    let of: Vec<_> = of.iter().filter(|tasks| tasks["requests"]["tools"]["call"].is_object()).collect();
    for can in ["cancel", "list"] {
        if of.iter().all(|tasks| tasks.get(can).is_some_and(serde_json::Value::is_object)) {
            all[can] = json!({});
        }
    }
    (!of.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use linetender_wire::frame;
    use serde_json::Value;

    use super::named;
    use crate::tasks::OwnTasks;

    /// The server has executed the call by then, so its agent is not to be told that it may call again.
    #[tokio::test]
    async fn a_task_whose_id_is_too_long_was_begun() {
        let own = OwnTasks::default();
        let answer =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":{{"taskId":"{}"}}}}}}"#, "x".repeat(300));
        let limits = frame::Limits { length: usize::MAX, depth: usize::MAX };
        let answer = frame::parse(&answer.into(), limits).unwrap();
        let told = named(&answer, "tools/call", 7, &own).unwrap();
        let told: Value = serde_json::from_slice(told.text()).unwrap();
        assert_eq!(told["error"]["data"]["delivery"], "answered", "{told}");
    }
}
