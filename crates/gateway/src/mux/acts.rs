//! What is to be done about a message, and where it goes.

use bytes::Bytes;
use linetender::{Kind, Members};
use linetender_wire::frame;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::board::{Route, View};
use crate::names::Naming;
use crate::splice::{Splice, string};

/// How many seconds to stay away when too much is open.
const RETRY_AFTER: u64 = 1;

/// Something to do.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Act {
    /// The agent hears this.
    Tell(Bytes),
    /// A server is asked this, in the agent's name.
    Ask {
        /// Which.
        to: u64,
        /// The request's id.
        id: Box<str>,
        /// The request.
        text: Bytes,
    },
    /// A server is told this.
    Say(u64, Bytes),
    /// The same, if the agent has anything to do with it yet.
    IfOpen(u64, Bytes),
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
    // Alone at its address a server is asked whatever it is asked.
    let only = || match &*view.routes {
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
    let public = string(Some(value)).ok_or(Unroutable::Nameless)?;
    match view.named(kind, &public) {
        Some((route, own)) => {
            let mut splice = Splice::of(params);
            splice.put(value, &own);
            Ok((route, splice.done().into_owned()))
        }
        None => Err(Unroutable::Nobodys { what, name: public }),
    }
}

impl Unroutable {
    /// A model reads why its tool cannot be called; a program reads the rest.
    pub(super) fn reply(&self, id: &str, method: &str, modern: bool, view: &View) -> Bytes {
        let servers = view.names();
        let (code, message) = match self {
            Self::Nobodys { what, name } => {
                let known = servers.join(", ");
                (7007, format!("there is no {what} `{name}` here; the servers are: {known}"))
            }
            Self::Nameless => (-32602, format!("the params of {method} do not say what it is about")),
            Self::Unknown => {
                (-32601, format!("{method} cannot be sent to several servers; use the address of one"))
            }
        };
        let data = json!({ "source": "linetender", "servers": servers });
        // What cannot be meant is an error of the request; what is not there is something for a model to read.
        let read_as = if code == 7007 { method } else { "" };
        Failed { code, words: &message, then: "The call was not executed.", data }.reply(id, read_as, modern)
    }
}

/// A request that ends here, and what is told of it.
struct Failed<'a> {
    code: i32,
    words: &'a str,
    /// What a model has to know besides.
    then: &'a str,
    data: Value,
}

impl Failed<'_> {
    /// A model reads it as the result of its tool; a program as an error.
    fn reply(self, id: &str, method: &str, modern: bool) -> Bytes {
        let Self { code, words, then, data } = self;
        if method != "tools/call" {
            let message = format!("linetender: {words}");
            let error = json!({ "code": code, "message": message, "data": data });
            return frame::error_reply(id, &error.to_string());
        }
        let text = format!("linetender: {words}. {then}");
        let mut result = json!({
            "content": [{ "type": "text", "text": text }], "isError": true, "_meta": { "linetender": data },
        });
        if modern {
            result["resultType"] = "complete".into();
        }
        frame::reply(id, &result.to_string())
    }
}

/// The id in a cancellation, as it was spelt.
pub(crate) fn request_id(params: Option<&str>) -> Option<&str> {
    Some(Members::of(params?)?.get("requestId")?.get())
}

/// The address in params.
pub(super) fn own_uri(params: &str) -> Option<String> {
    string(Members::of(params)?.get("uri"))
}

/// What there is too much of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Full {
    /// Requests under way.
    Requests,
    /// Lines, and this agent would need one of its own.
    Lines,
}

impl Full {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Requests => "too many requests are open",
            Self::Lines => {
                "there are as many lines as there may be, and this agent would need one of its own"
            }
        }
    }
}

/// A typed refusal: nothing was handed on. `server` is the one it was for, if that is known.
pub(super) fn overloaded(id: &str, method: &str, modern: bool, full: Full, server: Option<&str>) -> Bytes {
    let mut data = json!({
        "source": "linetender", "phase": "before the line", "cause": full.words(),
        "delivery": "not executed", "nextTry": "now", "retryAfter": RETRY_AFTER,
    });
    if let Some(server) = server {
        data["server"] = server.into();
    }
    let words = format!("{}; try again in {RETRY_AFTER} s", full.words());
    Failed { code: 7002, words: &words, then: "The call was not executed.", data }.reply(id, method, modern)
}

/// The way to a server ended under a request.
pub(super) fn gone(id: &str, method: &str, modern: bool, server: &str) -> Bytes {
    let cause = "the server was taken away while it worked on this";
    let data = json!({
        "source": "linetender", "server": server, "phase": "under way", "cause": cause,
        "delivery": "unknown", "nextTry": "never",
    });
    let words = format!("{server} could not answer: {cause}");
    let then = "It is unknown whether the call was executed: check for its effects before you repeat it.";
    Failed { code: 7005, words: &words, then, data }.reply(id, method, modern)
}
