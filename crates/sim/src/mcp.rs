//! What simulated servers say, in either era. The words are plain; what is simulated is when, and whether.

use serde_json::{Value, json};

use crate::habits::{OnDiscover, Speaks};

/// A tool that must not run twice.
pub(crate) const WRITE: &str = "write";
/// One that says it only reads.
pub(crate) const LOOK: &str = "look";
/// One that the user lists as safe.
pub(crate) const LISTED: &str = "listed";

/// What becomes of a request that is not a call.
pub(crate) enum Reply {
    Result(Value),
    Error(i64, &'static str),
    Silence,
    Exit,
}

/// The reply to anything but a tool call.
pub(crate) fn reply(speaks: Speaks, method: &str) -> Reply {
    let unknown = Reply::Error(-32601, "unknown method");
    match (method, speaks) {
        ("server/discover", Speaks::Modern) => Reply::Result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities(),
            "ttlMs": 0, "cacheScope": "private",
        })),
        ("server/discover", Speaks::Legacy(OnDiscover::Refuses)) => unknown,
        ("server/discover", Speaks::Legacy(OnDiscover::SaysNothing)) => Reply::Silence,
        ("server/discover", Speaks::Legacy(OnDiscover::Exits)) => Reply::Exit,
        ("server/discover", Speaks::Legacy(OnDiscover::AnswersNothing)) => Reply::Result(json!({})),
        ("initialize", Speaks::Legacy(_)) => Reply::Result(json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities(),
            "serverInfo": { "name": "simulated", "version": "1" },
        })),
        ("ping" | "resources/subscribe", Speaks::Legacy(_)) => Reply::Result(json!({})),
        ("tools/list", _) => Reply::Result(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools(),
        })),
        // A stream: it stays open.
        ("subscriptions/listen", Speaks::Modern) => Reply::Silence,
        _ => unknown,
    }
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true } })
}

fn tools() -> Value {
    let schema = json!({ "type": "object" });
    json!([
        { "name": WRITE, "inputSchema": schema },
        { "name": LOOK, "inputSchema": schema, "annotations": { "readOnlyHint": true } },
        { "name": LISTED, "inputSchema": schema },
    ])
}

/// The result of a call.
pub(crate) fn called(nonce: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": nonce }] })
}
