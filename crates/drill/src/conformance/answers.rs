//! Values that somebody has to make up: a user who answers questions, a model that completes, arguments that fit a tool.

use serde_json::{Map, Value, json};

/// The answer to a question of the server's; none, if it is no question that anybody here can answer.
pub(super) fn answer(method: &str, params: &Value) -> Option<Value> {
    match method {
        "elicitation/create" => {
            Some(json!({ "action": "accept", "content": filled(&params["requestedSchema"]) }))
        }
        "sampling/createMessage" => Some(json!({
            "role": "assistant",
            "content": { "type": "text", "text": "forty-two" },
            "model": "none",
            "stopReason": "endTurn",
        })),
        "roots/list" => Some(json!({ "roots": [] })),
        "ping" => Some(json!({})),
        _ => None,
    }
}

/// An object with a value for each property of its schema: the default, if there is one.
// MCP 2025-11-25, "Elicitation": clients that support defaults SHOULD pre-populate form fields with them.
pub(super) fn filled(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), value(property))).collect()
}

fn value(schema: &Value) -> Value {
    let given = [&schema["default"], &schema["const"], &schema["enum"][0]];
    if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
        return given.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(2),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => Value::Object(filled(schema)),
        Some("null") => Value::Null,
        _ => json!("something"),
    }
}
