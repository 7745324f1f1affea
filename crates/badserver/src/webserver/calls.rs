//! One call of a tool.

use serde_json::Value;

use super::body::Gone;
use super::manners::{Answers, Manners};
use super::post::{Asked, Era};
use super::reply::{self, Answer};
use super::{answers, faults, tools};

/// A call of a tool, or a fault that a method meets as if it were one.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) asked: Asked,
    pub(super) era: Era,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Answers a call, well or badly.
pub(super) async fn answer(call: Call, manners: &Manners) -> Result<Answer, Gone> {
    if let Some(answer) = faults::run(&call).await {
        return answer;
    }
    if !tools::known(&call.name, call.asked.house.tools_version(), manners.contexts) {
        let refused = reply::error(call.asked.id(), -32602, "no such tool");
        return Ok(reply::json(200, &refused));
    }
    // Only a stream can carry more than the answer.
    let how = match manners.answers {
        Answers::Json if matches!(call.name.as_str(), "progress" | "log" | "question") => Answers::Sse,
        how => how,
    };
    let asked = call.asked.clone();
    Ok(answers::respond(&asked, how, manners, |teller| async move { tools::run(&call, &teller).await }).await)
}

impl Call {
    pub(super) fn new(asked: Asked, era: Era, name: String, arguments: Value) -> Self {
        Self { asked, era, name, arguments }
    }

    /// Writes down that the tool ran, if it does: the argument `run` decides against the tool's habit.
    pub(super) fn runs(&self, by_habit: bool) {
        if self.arguments["run"].as_bool().unwrap_or(by_habit) {
            self.asked.runs();
        }
    }

    /// Writes down that the server refuses it, for a reason that `retry_on` names: it promises that it did not run the call.
    pub(super) fn refuses(&self, reason: &str) {
        self.asked.house.refuses(reason, self.asked.nonce());
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.arguments[name].as_u64()
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.arguments[name].as_bool().unwrap_or(false)
    }

    /// The whole message that answers the call as it should be.
    pub(super) fn echo(&self) -> Value {
        let text = self.arguments.to_string();
        self.said(&text)
    }

    /// The whole message that answers the call with this text.
    pub(super) fn said(&self, text: &str) -> Value {
        let mut result = serde_json::json!({ "content": [{ "type": "text", "text": text }] });
        if self.era == Era::Modern {
            result["resultType"] = "complete".into();
        }
        reply::result(self.asked.id(), &result)
    }
}
