//! Requests that may take several rounds: a modern server that needs to know more says so in its result, and is asked
//! again with the answers.
// MCP 2026-07-28, "Multi Round-Trip Requests".

use linetender::{Line, Options};
use serde_json::{Map, Value};

use super::Outcome;
use super::answers::answer;

/// More rounds than any honest server needs.
const MOST_ROUNDS: usize = 8;

/// Makes a request, and answers what the server asks until the result is complete.
pub(super) async fn request(line: &Line, method: &str, params: Map<String, Value>) -> Outcome<Value> {
    let mut asked = params.clone();
    for _ in 0..MOST_ROUNDS {
        let answer = line.request(method, &asked, Options::default()).await?;
        let result: Value = answer.parse()?;
        // A result that does not say what it is, is complete.
        if result["resultType"] != "input_required" {
            return Ok(result);
        }
        asked = again(params.clone(), &result)?;
    }
    Err(format!("{method} was not complete after {MOST_ROUNDS} rounds").into())
}

/// The same request with answers. The state goes back exactly as it came, and only if it came.
fn again(mut params: Map<String, Value>, result: &Value) -> Outcome<Map<String, Value>> {
    let questions = result["inputRequests"].as_object().into_iter().flatten();
    let answers = questions.map(|(key, question)| {
        let method = question["method"].as_str().unwrap_or_default();
        let answer =
            answer(method, &question["params"]).ok_or_else(|| format!("nobody can answer {question}"))?;
        Ok((key.clone(), answer))
    });
    params.insert("inputResponses".into(), Value::Object(answers.collect::<Outcome<_>>()?));
    if let Some(state) = result.get("requestState") {
        params.insert("requestState".into(), state.clone());
    }
    Ok(params)
}
