//! The suite's tools.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateMessageRequestParams,
    ElicitRequestParams, ErrorData,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::things::{PICTURE, read, result};
use crate::{Changed, Fixture, rounds};

/// Half a second of nothing, but a sound.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

const PAUSE: Duration = Duration::from_millis(50);

const NAMES: [&str; 25] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// All tools.
pub(crate) fn list(one_more: bool) -> Vec<Value> {
    let extra = one_more.then_some("one_more");
    let tool = |name: &str| {
        let properties = match name {
            "test_sampling" => json!({ "prompt": { "type": "string" } }),
            "test_elicitation" => json!({ "message": { "type": "string" } }),
            _ => json!({}),
        };
        let schema = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "description": "a tool of the suite's", "inputSchema": schema })
    };
    NAMES.into_iter().chain(extra).map(tool).collect()
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Calls one.
pub(crate) async fn call(
    fixture: &Fixture,
    asked: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(answer) = rounds::call(fixture, &asked, &context) {
        return answer;
    }
    let arguments = serde_json::to_value(&asked.arguments).unwrap_or_default();
    let picture = json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" });
    let resource = |uri: &str, kind: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } });
    let answer = match &*asked.name {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => json!({ "content": [picture] }),
        "test_audio_content" => {
            json!({ "content": [{ "type": "audio", "data": SOUND, "mimeType": "audio/wav" }] })
        }
        "test_embedded_resource" => {
            json!({ "content": [resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")] })
        }
        "test_multiple_content_types" => json!({ "content": [
            { "type": "text", "text": "Multiple content types test:" },
            picture,
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ] }),
        "test_error_handling" => {
            let mut result = text("This tool intentionally returns an error for testing");
            result["isError"] = true.into();
            result
        }
        "test_tool_with_logging" | "test_logging_tool" => logs(&context).await?,
        "test_tool_with_progress" => progresses(&context).await?,
        "test_sampling" => samples(&context, &arguments).await?,
        "test_elicitation" => {
            let fields = json!({
                "username": { "type": "string", "description": "User's response" },
                "email": { "type": "string", "description": "User's email address" },
            });
            let message = arguments["message"].as_str().unwrap_or_default();
            elicits(&context, message, &fields, json!(["username", "email"]), "User response").await?
        }
        "test_elicitation_sep1034_defaults" => {
            elicits(&context, "with defaults", &defaults(), json!([]), "Elicitation completed").await?
        }
        "test_elicitation_sep1330_enums" => {
            elicits(&context, "with choices", &choices(), json!([]), "Elicitation completed").await?
        }
        "test_missing_capability" => {
            if context.client_capabilities().is_none_or(|capabilities| capabilities.sampling.is_none()) {
                let required: ClientCapabilities = read(json!({ "sampling": {} }))?;
                return Err(ErrorData::missing_required_client_capability(required));
            }
            text("the agent can be asked")
        }
        "test_streaming_elicitation" => text("nothing was asked on the stream"),
        "test_trigger_tool_change" => {
            fixture.0.tool.fetch_xor(true, Ordering::Relaxed);
            let _ = fixture.0.changes.send(Changed::Tools);
            text("there is a tool more or less")
        }
        "test_trigger_prompt_change" => {
            fixture.0.prompt.fetch_xor(true, Ordering::Relaxed);
            let _ = fixture.0.changes.send(Changed::Prompts);
            text("there is a prompt more or less")
        }
        other => return Err(ErrorData::invalid_params(format!("no such tool: {other}"), None)),
    };
    result::<CallToolResult>(answer).map(Into::into)
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.to_string().as_str() >= "2026")
}

async fn logs(context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        // A modern agent says with each request whether it wants to see any.
        if !is_modern(context) || context.meta.log_level().is_some() {
            let said = read(json!({ "level": "info", "data": words }))?;
            let _ = context.peer.notify_logging_message(said).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("it was logged"))
}

async fn progresses(context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    for done in [0, 50, 100] {
        if let Some(token) = context.meta.get_progress_token() {
            let said = read(json!({ "progressToken": token, "progress": done, "total": 100 }))?;
            let _ = context.peer.notify_progress(said).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("it went on"))
}

async fn samples(context: &RequestContext<RoleServer>, arguments: &Value) -> Result<Value, ErrorData> {
    let params: CreateMessageRequestParams = read(json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": arguments["prompt"] } }], "maxTokens": 100,
    }))?;
    let answer = context.peer.create_message(params).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let said = answer["content"]["text"].as_str().unwrap_or_default();
    Ok(text(&format!("LLM response: {said}")))
}

async fn elicits(
    context: &RequestContext<RoleServer>,
    message: &str,
    fields: &Value,
    required: Value,
    words: &str,
) -> Result<Value, ErrorData> {
    let params: ElicitRequestParams = read(json!({
        "mode": "form", "message": message,
        "requestedSchema": { "type": "object", "properties": fields, "required": required },
    }))?;
    let answer = context.peer.create_elicitation(params).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text(&format!("{words}: action={action}, content={}", answer["content"])))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "description": "a name", "default": "John Doe" },
        "age": { "type": "integer", "description": "an age", "default": 30 },
        "score": { "type": "number", "description": "a score", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "description": "whether", "default": true },
    })
}

fn choices() -> Value {
    let options = ["option1", "option2", "option3"];
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}
