//! What the agent is told in the server's place.

use bytes::Bytes;
use linetender_wire::frame;

use crate::error::CallError;
use crate::line::Line;

/// What a server is told that asks more than an agent can answer.
pub(crate) const TOO_MANY_QUESTIONS: &str = r#"{"code":7002,"message":"linetender: the agent has too many questions to answer","data":{"source":"linetender"}}"#;

/// How often a server may die between coming up and being quoted.
const TRIES: u32 = 3;

/// The answer to the agent's `initialize`: what the server said to ours.
pub(super) async fn initialized(line: &Line, id: &str) -> Bytes {
    for _ in 0..TRIES {
        if let Err(error) = line.ready().await {
            return failed("initialize", id, &error);
        }
        if let Some(result) = line.greeting() {
            return frame::reply(id, &result);
        }
    }
    let cause =
        line.status().cause.map_or_else(|| "it dies as soon as it is up".to_owned(), |why| why.text.clone());
    frame::error_reply(id, &serde_json::json!({ "code": 7005, "message": cause }).to_string())
}

/// A call that the server could not answer. For a tool a model reads it; for everything else a program does.
pub(super) fn failed(method: &str, id: &str, error: &CallError) -> Bytes {
    if method == "tools/call" {
        let result = serde_json::json!({
            "content": [{ "type": "text", "text": error.for_model() }],
            "isError": true,
            "_meta": { "linetender": error.fields() },
        });
        return frame::reply(id, &result.to_string());
    }
    let message = match &error.stderr {
        Some(stderr) => format!("{error}\nLast lines of its stderr:\n{stderr}"),
        None => error.to_string(),
    };
    let error = serde_json::json!({ "code": error.code(), "message": message, "data": error.fields() });
    frame::error_reply(id, &error.to_string())
}
