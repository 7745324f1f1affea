//! Calls that need something of the agent before they can go on.
// MCP 2026-07-28, "Multi Round-Trip Requests".

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InputRequiredResult};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::Fixture;
use crate::things::{read, result};

fn elicit(message: &str, member: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": {
        "mode": "form", "message": message,
        "requestedSchema": { "type": "object", "properties": { (member): { "type": kind } }, "required": [member] },
    } })
}

fn sample(text: &str, most: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": most,
    } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn needs(requests: &Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    let mut asks = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        asks["requestState"] = state.into();
    }
    read(asks)
}

/// What the prompt needs.
pub(crate) fn prompt() -> Result<InputRequiredResult, ErrorData> {
    needs(
        &json!({ "user_context": elicit("What context should the prompt use?", "context", "string") }),
        None,
    )
}

fn says(text: &str) -> Result<CallToolResponse, ErrorData> {
    result::<CallToolResult>(json!({ "content": [{ "type": "text", "text": text }] })).map(Into::into)
}

/// A tool whose name says that it needs input; `None` if it is another.
pub(crate) fn call(
    fixture: &Fixture,
    asked: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let answers = serde_json::to_value(&asked.input_responses).unwrap_or_default();
    let state = asked.request_state.as_deref();
    let name = |key: &str| answers[key]["content"]["name"].as_str().map(str::to_owned);
    let wants = |requests: Value| needs(&requests, None).map(Into::into);
    Some(match &*asked.name {
        "test_input_required_result_elicitation" => match name("user_name") {
            Some(name) => says(&format!("Hello, {name}!")),
            None => wants(json!({ "user_name": elicit("What is your name?", "name", "string") })),
        },
        "test_input_required_result_capabilities" => {
            // Nobody is asked for what they did not say that they can do.
            let can = context.client_capabilities().unwrap_or_default();
            let mut asks = json!({});
            if can.elicitation.is_some() {
                asks["user_name"] = elicit("What is your name?", "name", "string");
            }
            if can.sampling.is_some() {
                asks["greeting"] = sample("Generate a greeting", 50);
            }
            if asked.input_responses.is_some() || asks == json!({}) { says("done") } else { wants(asks) }
        }
        "test_input_required_result_sampling" => {
            match answers["capital_question"]["content"]["text"].as_str() {
                Some(text) => says(text),
                None => wants(json!({ "capital_question": sample("What is the capital of France?", 100) })),
            }
        }
        "test_input_required_result_list_roots" => match answers["client_roots"]["roots"].as_array() {
            Some(roots) => says(&format!("roots: {}", json!(roots))),
            None => wants(json!({ "client_roots": roots() })),
        },
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            let ask = json!({ "confirm": elicit("Please confirm", "ok", "boolean") });
            match state {
                None => fixture.keep(1, &ask),
                Some(state) => fixture.known(state).and_then(|()| says("state-ok")),
            }
        }
        "test_input_required_result_multiple_inputs" => match state {
            None => fixture.keep(
                1,
                &json!({
                    "user_name": elicit("What is your name?", "name", "string"),
                    "greeting": sample("Generate a greeting", 50),
                    "client_roots": roots(),
                }),
            ),
            Some(state) => fixture.known(state).and_then(|()| says("all of it is here")),
        },
        "test_input_required_result_multi_round" => {
            match state.map(|state| (state, state.starts_with("1-"))) {
                None => fixture
                    .keep(1, &json!({ "step1": elicit("Step 1: What is your name?", "name", "string") })),
                Some((state, true)) => fixture.known(state).and_then(|()| {
                    fixture.keep(2, &json!({ "step2": elicit("Step 2: What is your favorite color?", "color", "string") }),
                    )
                }),
                Some((state, false)) => fixture.known(state).and_then(|()| says("three rounds")),
            }
        }
        _ => return None,
    })
}

impl Fixture {
    /// Hands out a state that only we can have made: it is kept here.
    fn keep(&self, round: u32, requests: &Value) -> Result<CallToolResponse, ErrorData> {
        let mut states = self.0.states.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let state = format!("{round}-{}", states.len());
        states.push(state.clone());
        needs(requests, Some(&state)).map(Into::into)
    }

    fn known(&self, state: &str) -> Result<(), ErrorData> {
        let states = self.0.states.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if states.iter().any(|known| known == state) {
            Ok(())
        } else {
            Err(ErrorData::invalid_params("this state is not one of ours", None))
        }
    }
}
