//! What the agent is told in the server's place.

use std::sync::Arc;

use bytes::Bytes;
use linetender_wire::frame;
use linetender_wire::handshake::{Era, Greeting};

use super::bridge;

use crate::error::CallError;
use crate::line::Line;
use crate::server::ToolErrors;

/// What a server is told that asks more than an agent can answer.
pub(crate) const TOO_MANY_QUESTIONS: &str = r#"{"code":7002,"message":"linetender: the agent has too many questions to answer","data":{"source":"linetender"}}"#;

/// How often a server may die between coming up and being quoted.
const TRIES: u32 = 3;

/// The answer to a legacy agent's `initialize`: what the server said to ours, in the agent's own era.
pub(super) async fn initialized(line: &Line, id: &str, asked: Option<&str>) -> Bytes {
    match greeting(line, id).await {
        Ok(greeting) => frame::reply(
            id,
            &match greeting.era {
                Era::Modern => bridge::initialized(&greeting.result, asked, line.name()),
                // Alone with its server, the agent has asked for the version itself.
                Era::Legacy if line.speaks_for(asked) => greeting.result.to_string(),
                Era::Legacy => bridge::same_era(&greeting.result, asked),
            },
        ),
        Err(failed) => failed,
    }
}

/// The answer to a modern agent's `server/discover`, where the server is a legacy one.
pub(super) async fn discovered(line: &Line, id: &str) -> Bytes {
    match greeting(line, id).await {
        Ok(greeting) if greeting.era == Era::Legacy => {
            frame::reply(id, &bridge::discovered(&greeting.result, line.name()))
        }
        Ok(greeting) => frame::reply(id, &greeting.result),
        Err(failed) => failed,
    }
}

/// The era that the server speaks, once it is up.
pub(super) async fn era(line: &Line) -> Option<Era> {
    greeting(line, "null").await.ok().map(|greeting| greeting.era)
}

/// What the server said of itself, once it is up; or the answer that says why it did not.
async fn greeting(line: &Line, id: &str) -> Result<Arc<Greeting>, Bytes> {
    for _ in 0..TRIES {
        if let Err(error) = line.ready().await {
            return Err(failed(line, "initialize", id, &error, Era::Legacy));
        }
        if let Some(greeting) = line.greeting() {
            return Ok(greeting);
        }
    }
    let cause =
        line.status().cause.map_or_else(|| "it dies as soon as it is up".to_owned(), |why| why.text.clone());
    Err(frame::error_reply(id, &serde_json::json!({ "code": 7005, "message": cause }).to_string()))
}

/// A call that the server could not answer. For a tool a model reads it, in either form; for everything else a program does.
pub(super) fn failed(line: &Line, method: &str, id: &str, error: &CallError, era: Era) -> Bytes {
    let message = match (method, line.tool_errors()) {
        ("tools/call", ToolErrors::Result) => return frame::reply(id, &failed_result(error, era)),
        ("tools/call", ToolErrors::Error) => error.for_model(),
        _ => match &error.stderr {
            Some(stderr) => format!("{error}\nLast lines of its stderr:\n{stderr}"),
            None => error.to_string(),
        },
    };
    let error = serde_json::json!({ "code": error.code(), "message": message, "data": error.fields() });
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
