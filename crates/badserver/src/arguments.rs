//! What the tools of our servers say they take.
//!
//! The servers take anything; but whoever stands between an agent and them may pass on only what a tool declares, and then the
//! nonce by which a call is found in the book would be lost on the way.

use serde_json::{Value, json};

/// What any tool takes: its nonce, a message, and padding.
const EVERY: [&str; 3] = ["nonce", "message", "x"];

/// What some take, of which type, and which tools those are.
const SOME: &[(&str, &str, &[&str])] = &[
    ("ms", "integer", &["sleep", "spin", "progress", "drip", "deny"]),
    (
        "bytes",
        "integer",
        &["big", "endless", "endless_no_id", "flood_stderr", "bomb", "log", "endless_body", "endless_event"],
    ),
    ("times", "integer", &["orphan", "progress", "flood_list_changed", "cut_sse_resumable"]),
    ("abrupt", "boolean", &["cut_sse"]),
    ("code", "integer", &["status", "redirect"]),
    ("retry_after", "integer", &["status"]),
    ("with_id", "boolean", &["status"]),
    ("error", "integer", &["status"]),
    ("with_result", "boolean", &["status"]),
    ("to", "string", &["redirect"]),
    (
        "run",
        "boolean",
        &[
            "status",
            "redirect",
            "html",
            "accepted",
            "no_id",
            "no_id_200",
            "reset_before",
            "refused",
            "disowned",
            "deny",
        ],
    ),
    ("what", "string", &["use"]),
    ("seed", "integer", &["any"]),
    ("challenges", "boolean", &["any"]),
    ("silence", "boolean", &["any"]),
];

/// The schema of what this tool takes. Nothing of it is required.
pub fn schema(tool: &str) -> Value {
    let every = EVERY.iter().map(|name| (*name, "string"));
    let some =
        SOME.iter().filter(|(_, _, tools)| tools.contains(&tool)).map(|(name, kind, _)| (*name, *kind));
    let properties =
        every.chain(some).map(|(name, kind)| (name.to_owned(), json!({ "type": kind }))).collect();
    json!({ "type": "object", "properties": Value::Object(properties) })
}
