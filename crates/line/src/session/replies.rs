//! What the agent is told in the server's place.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use linetender_wire::frame::{self, Members};
use linetender_wire::handshake::{Era, Greeting};

use super::bridge;

use crate::basics::error::CallError;
use crate::basics::kind::Kind;
use crate::basics::params::respell_member;
use crate::call::Reply;
use crate::line::Line;
use crate::server::ToolErrors;

/// What the agent was told of its server.
type Promised = OnceLock<Arc<Greeting>>;

/// How often a server may die between coming up and being quoted.
const TRIES: u32 = 3;

/// The answer to a legacy agent's `initialize`: what the server said to ours, in the agent's own era.
pub(super) async fn initialized(line: &Line, id: &str, asked: Option<&str>, promised: &Promised) -> Bytes {
    // Whoever asks twice is told the same twice.
    let greeting = match promised.get() {
        Some(greeting) => Ok(Arc::clone(greeting)),
        None => greeting(line, id).await,
    };
    match greeting {
        Ok(greeting) => {
            let result = match greeting.era {
                Era::Modern => bridge::initialized(&greeting.result, asked, line.name()),
                // Alone with its server, the agent has asked for the version itself.
                Era::Legacy if line.speaks_for(asked) => greeting.result.to_string(),
                Era::Legacy => bridge::same_era(&greeting.result, asked),
            };
            let _ = promised.set(greeting);
            frame::reply(id, &result)
        }
        Err(failed) => match nothing_yet(line) {
            Some(nothing) => frame::reply(id, &bridge::initialized(&nothing, asked, line.name())),
            None => failed,
        },
    }
}

/// What is said of a server to which nobody has logged in: it offers nothing yet, and why. An agent whose first request is refused
/// does not ask again after the login; one that was told of no tools hears that there are some.
fn nothing_yet(line: &Line) -> Option<String> {
    let why = line.wants_login()?;
    let changes = serde_json::json!({ "listChanged": true });
    let capabilities = serde_json::json!({ "tools": changes, "prompts": changes, "resources": changes });
    Some(serde_json::json!({ "capabilities": capabilities, "instructions": why }).to_string())
}

/// The answer to a modern agent's `server/discover`, where the server is a legacy one, or not up.
pub(super) async fn discovered(line: &Line, id: &str, promised: &Promised) -> Bytes {
    match greeting(line, id).await {
        Ok(greeting) => {
            let result = match greeting.era {
                Era::Legacy => bridge::discovered(&greeting.result, line.name()),
                // Nobody can say how long the word of a server is good that does not say it now.
                Era::Modern => respell_member(&greeting.result, "ttlMs", "0")
                    .unwrap_or_else(|| greeting.result.to_string()),
            };
            let _ = promised.set(greeting);
            frame::reply(id, &result)
        }
        Err(failed) => match nothing_yet(line) {
            Some(nothing) => frame::reply(id, &bridge::discovered(&nothing, line.name())),
            None => failed,
        },
    }
}

/// A list as it was last known: the answer while the server is down, or starts.
pub(super) fn listed(line: &Line, id: &str, method: &str, params: Option<&str>, era: Era) -> Option<Bytes> {
    let kind = Kind::asked_by(method)?;
    // A later page is a server's own business.
    let first = params.and_then(Members::of).is_none_or(|members| members.get("cursor").is_none());
    let nothing = || line.wants_login().map(|_| format!(r#"{{"{}":[]}}"#, kind.member()));
    let list = line.known_list(kind).or_else(nothing).filter(|_| first)?;
    Some(frame::reply(id, &bridge::result(era, method, list)))
}

/// JSON-RPC 2.0: the server does not know the method. Any other error is about the call.
const METHOD_NOT_FOUND: i64 = -32601;

/// The server refuses what it once offered: that it does not any more is what the agent has to know.
pub(super) fn broken(
    line: &Line,
    promised: &Promised,
    method: &str,
    id: &str,
    answer: &Reply,
    era: Era,
) -> Option<Bytes> {
    let said = answer.error().filter(|said| code(said) == METHOD_NOT_FOUND)?;
    let capability = capability(method)?;
    let now = line.greeting()?;
    let offers = |greeting: &Greeting| offers(greeting, capability);
    if !promised.get().is_some_and(|then| offers(then)) || offers(&now) {
        return None;
    }
    let said = linetender_wire::Redacted::head(said, 200);
    let cause = format!(
        "the server no longer offers {capability}, which it did when this session began (its error: {said})"
    );
    Some(failed(line, method, id, &line.vanished(cause), era))
}

/// The code of a JSON-RPC error.
pub(super) fn code(error: &str) -> i64 {
    #[derive(serde::Deserialize)]
    struct Error {
        #[serde(default)]
        code: i64,
    }
    serde_json::from_str(error).map_or(0, |Error { code }| code)
}

/// What a server must offer for a method to mean anything.
fn capability(method: &str) -> Option<&'static str> {
    Some(match method.split_once('/')?.0 {
        "tools" => "tools",
        "prompts" => "prompts",
        "resources" => "resources",
        "completion" => "completions",
        "logging" => "logging",
        _ => return None,
    })
}

fn offers(greeting: &Greeting, capability: &str) -> bool {
    let capabilities = Members::of(&greeting.result).and_then(|members| members.get("capabilities"));
    capabilities.and_then(|has| Members::of(has.get())).is_some_and(|has| has.get(capability).is_some())
}

/// The era that the server speaks, once it is up.
pub(super) async fn era(line: &Line) -> Option<Era> {
    greeting(line, "null").await.ok().map(|greeting| greeting.era)
}

/// What the server said of itself, once it is up; or the answer that says why it did not.
async fn greeting(line: &Line, id: &str) -> Result<Arc<Greeting>, Bytes> {
    // While it is down, it is what it was.
    if let Some(greeting) = line.greeting() {
        return Ok(greeting);
    }
    for _ in 0..TRIES {
        if let Err(error) = line.ready().await {
            return Err(failed(line, "initialize", id, &error, Era::Legacy));
        }
        if let Some(greeting) = line.greeting() {
            return Ok(greeting);
        }
    }
    let cause =
        line.told(&line.status()).unwrap_or_else(|| "the server exits as soon as it is up".to_owned());
    let error = line.given_up(cause);
    Err(failed(line, "initialize", id, &error, Era::Legacy))
}

/// A call that the server could not answer. For a tool a model reads it, in either form; for everything else a program does.
pub(super) fn failed(line: &Line, method: &str, id: &str, error: &CallError, era: Era) -> Bytes {
    let message = match (method, line.tool_errors()) {
        ("tools/call", ToolErrors::Result) => return frame::reply(id, &failed_result(error, era)),
        ("tools/call", ToolErrors::Error) => error.for_model(),
        _ => match &error.stderr {
            Some(stderr) => format!("{error}\nLast lines of the server's stderr:\n{stderr}"),
            None => error.to_string(),
        },
    };
    let error =
        serde_json::json!({ "code": error.code().number(), "message": message, "data": error.fields() });
    frame::error_reply(id, &error.to_string())
}

/// A failed tool call as the tool's own result.
fn failed_result(error: &CallError, era: Era) -> String {
    let mut result = serde_json::json!({
        "content": [{ "type": "text", "text": error.for_model() }],
        "isError": true,
        "_meta": { "linetender": error.fields() },
    });
    // MCP 2026-07-28: `resultType` on every result.
    if era == Era::Modern {
        result["resultType"] = "complete".into();
    }
    result.to_string()
}
