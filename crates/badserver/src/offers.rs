//! What a server has besides its tools: prompts, resources, completion. Nothing here misbehaves; it is there so that a
//! bridge between the eras can be held against all of it.

use serde_json::{Value, json};

/// What a server that has all of it says of itself, in either era.
pub(crate) fn capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "logging": {},
        "completions": {},
    })
}

/// The result of a request, if it is about one of these.
pub(crate) fn answer(method: &str, params: &Value) -> Option<Value> {
    Some(match method {
        "prompts/list" => json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "who" }] }] }),
        "prompts/get" => {
            let text = format!("hello {}", params["arguments"]["who"].as_str().unwrap_or("you"));
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": text } }] })
        }
        "resources/list" => json!({ "resources": [{ "uri": "note://a", "name": "a" }] }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "note://{name}", "name": "note" }] })
        }
        "resources/read" => json!({ "contents": [{ "uri": params["uri"], "text": "a note" }] }),
        "tasks/get" => json!({ "taskId": params["taskId"], "status": "completed" }),
        "tasks/list" => json!({ "tasks": [] }),
        "completion/complete" => json!({ "completion": { "values": ["world"], "hasMore": false } }),
        _ => return None,
    })
}

/// A result as the modern era wants it.
pub(crate) fn modern(method: &str, mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    if method.ends_with("/list") || method == "resources/read" {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    result
}

/// What a modern server says that needs the agent's roots before it can go on; nothing, once it was told.
// MCP 2026-07-28, "Multi Round-Trip Requests".
pub(crate) fn question(params: &Value) -> Option<Value> {
    params.get("inputResponses").is_none().then(|| {
        json!({
            "resultType": "input_required",
            "inputRequests": { "roots": { "method": "roots/list" } },
            "requestState": "so far",
        })
    })
}

/// Whether a request says that it is one of the modern era.
pub(crate) fn is_modern(params: &Value) -> bool {
    params["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some()
}

/// The notification that a resource changed, for whoever said what.
pub(crate) fn updated(uri: &str, subscription: Option<&Value>) -> Value {
    notification("notifications/resources/updated", json!({ "uri": uri }), subscription)
}

/// A notification, tagged if it belongs to a subscription of the modern era.
pub(crate) fn notification(method: &str, mut params: Value, subscription: Option<&Value>) -> Value {
    if let Some(id) = subscription {
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    }
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A log message, as the tool `log` says it, with so many bytes more. Whose it is can be told by the nonce alone.
pub(crate) fn log(level: &str, bytes: usize, nonce: &str) -> Value {
    let of = if nonce == "-" { String::new() } else { format!(" of {nonce} ") };
    let data = format!("a log message{of}{}", "x".repeat(bytes));
    notification("notifications/message", json!({ "level": level, "logger": "bad", "data": data }), None)
}
