//! What is to be done about a message, and where it goes.

use std::borrow::Cow;

use linetender::{Code, Kind, visible};
use linetender_wire::frame::{Frame, Members, Message, Passed, string};
use serde_json::value::RawValue;

use crate::ends::Ended;
use crate::failed::Failed;
use crate::listing::{Route, View};
use crate::names::Naming;
use crate::splice::Splice;

/// How much of what an agent named is repeated to it.
const SHOWN: usize = 200;

/// Something to do.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Act {
    /// The agent hears this.
    Tell(Passed),
    /// What it just asked ends here, with this answer: no server is asked.
    End(Passed, Ended),
    /// A server is asked this, in the agent's name.
    Ask {
        /// Which.
        to: u64,
        /// The request's id.
        id: Box<str>,
        /// The request.
        frame: Frame,
    },
    /// A server is told this.
    Say(u64, Passed),
    /// The same, if the agent has anything to do with it yet.
    IfOpen(u64, Passed),
}

impl Act {
    /// What was just asked is answered from what is known.
    pub(super) fn answer(text: impl Into<Passed>) -> Self {
        Self::End(text.into(), Ended::Answered)
    }

    /// What was just asked is not taken.
    pub(super) fn refuse(failed: &Failed, id: &str, method: &str, modern: bool) -> Self {
        Self::End(failed.reply(id, method, modern).into(), Ended::Refused(failed.code()))
    }
}

/// Why a request goes nowhere.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Unroutable {
    /// No server of ours has such a thing.
    Nobodys { what: &'static str, name: String },
    /// It does not say what it is about.
    Nameless,
    /// Nobody could say to whom it belongs.
    Unknown,
    /// Nobody could say whether it is about something hidden.
    Unjudged,
}

/// Whether a method is known to be about nothing that a filter could hide.
fn names_nothing(method: &str) -> bool {
    matches!(method, "ping" | "initialize" | "logging/setLevel" | "server/discover")
        // A task is of a call that was let through, by the same principal.
        || matches!(method, "tasks/get" | "tasks/list" | "tasks/result" | "tasks/cancel" | "tasks/update")
}

/// Whether a server may be told this by an agent. A sloppy one runs `tools/call` also if nobody wants its answer.
pub(super) fn may_be_told(route: &Route, method: &str) -> bool {
    !route.hides()
        || matches!(
            method,
            "notifications/cancelled"
                | "notifications/initialized"
                | "notifications/progress"
                | "notifications/roots/list_changed"
                | "notifications/tasks/status"
        )
}

/// True for a request that was sent as a notification. A lenient server runs it, and no quota, audit or caller ever hears of it.
// MCP, "Messages": the names of all notifications begin so, and no request's does.
pub(crate) fn is_unasked(frame: &Frame) -> bool {
    matches!(frame.message(), Message::Notification { method, .. } if !method.starts_with("notifications/"))
}

/// What a method is about: the kind, where its name stands, and what people call it.
fn about(method: &str) -> Option<(Kind, &'static str, &'static str)> {
    match method {
        "tools/call" => Some((Kind::Tools, "name", "tool")),
        "prompts/get" => Some((Kind::Prompts, "name", "prompt")),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            Some((Kind::Resources, "uri", "resource"))
        }
        _ => None,
    }
}

/// Who is to answer, and the params as it wants them.
pub(super) fn routed<'v>(
    method: &str,
    params: Option<&str>,
    view: &'v View,
) -> Result<(&'v Route, String), Unroutable> {
    // Alone at its address a server is asked whatever it is asked, if nothing of it is hidden.
    let only = || match &*view.routes {
        [route] if *route.naming == Naming::Plain && route.hides() && !names_nothing(method) => {
            Err(Unroutable::Unjudged)
        }
        [route] if *route.naming == Naming::Plain => Ok((route, params.unwrap_or("{}").to_owned())),
        _ => Err(Unroutable::Unknown),
    };
    if method == "completion/complete" {
        return completed(params.unwrap_or("{}"), view);
    }
    let Some((kind, member, what)) = about(method) else { return only() };
    let params = params.ok_or(Unroutable::Nameless)?;
    let value = Members::of(params).and_then(|members| members.get(member)).ok_or(Unroutable::Nameless)?;
    splice(params, value, kind, what, view)
}

/// A completion is about the thing that its `ref` names.
fn completed<'v>(params: &str, view: &'v View) -> Result<(&'v Route, String), Unroutable> {
    let about = Members::of(params).and_then(|members| Members::of(members.get("ref")?.get()));
    let about = about.ok_or(Unroutable::Nameless)?;
    match (about.get("name"), about.get("uri")) {
        (Some(name), None) => splice(params, name, Kind::Prompts, "prompt", view),
        (_, Some(uri)) => splice(params, uri, Kind::Templates, "resource", view),
        (None, None) => Err(Unroutable::Nameless),
    }
}

fn splice<'v>(
    params: &str,
    value: &RawValue,
    kind: Kind,
    what: &'static str,
    view: &'v View,
) -> Result<(&'v Route, String), Unroutable> {
    let public = string(value).ok_or(Unroutable::Nameless)?;
    match view.named(kind, &public) {
        Some((route, own)) => {
            let mut splice = Splice::of(params);
            splice.put(value, &own);
            Ok((route, splice.done().into_owned()))
        }
        None => Err(Unroutable::Nobodys { what, name: public.into_owned() }),
    }
}

impl Unroutable {
    /// A model reads why its tool cannot be called; a program reads the rest.
    pub(super) fn failed(&self, method: &str, view: &View) -> Failed {
        let servers = view.names();
        let asked = visible::cut(method, SHOWN);
        let (code, message) = match self {
            Self::Nobodys { what, name } => {
                let (known, name) = (servers.join(", "), visible::cut(name, SHOWN));
                (Code::NotHere.number(), format!("no {what} named `{name}`; configured servers: {known}"))
            }
            Self::Nameless => (-32602, format!("the params of {asked} do not name a target")),
            Self::Unjudged => (
                -32601,
                format!(
                    "{asked} is not known to linetender, so the filters of this server cannot be applied to it"
                ),
            ),
            Self::Unknown => {
                (-32601, format!("{asked} cannot be routed at /mcp; use /mcp/NAME of one server"))
            }
        };
        Failed::unroutable(code, message, &servers)
    }
}

/// The id in a cancellation, as it was spelt.
pub(crate) fn request_id(params: Option<&str>) -> Option<&str> {
    Some(Members::of(params?)?.get("requestId")?.get())
}

/// The address in params.
pub(super) fn own_uri(params: &str) -> Option<Cow<'_, str>> {
    Members::of(params)?.string("uri")
}
