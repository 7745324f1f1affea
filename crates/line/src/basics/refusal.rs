//! Errors by which a server may say that it was never initialized.
//!
//! MCP has no code for it, so an error only raises the question. Another request that the server must be able to answer
//! settles it: see `generation/session_check.rs`.

use serde::Deserialize;
use serde_json::Value;

/// Codes that servers use: -32002 (not initialized), -32600 (invalid request), -32602 (what the Python SDK 1.x says to whatever it
/// cannot take).
const CODES: [i64; 3] = [-32002, -32600, -32602];

/// What servers with codes of their own say. A session that they do not know is another matter: see `http/meaning.rs`.
const WORD: &str = "initializ";

/// What is longer says something else, and is not worth the memory.
const LONGEST_BYTES: usize = 16 * 1024;

/// An error that a server may send because it was never initialized.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct Refusal {
    code: Value,
    message: String,
    data: Value,
}

impl Refusal {
    /// Reads an error. `None` if it says something else for sure.
    pub(crate) fn of(error: &str) -> Option<Self> {
        if error.len() > LONGEST_BYTES {
            return None;
        }
        let refusal: Self = serde_json::from_str(error).ok()?;
        let has_code = refusal.code.as_i64().is_some_and(|code| CODES.contains(&code));
        let has_word = || refusal.message.to_ascii_lowercase().contains(WORD);
        (has_code || has_word()).then_some(refusal)
    }

    /// True if this answer to `method` says the same as `other` to `other_method`. Some servers quote the method.
    pub(crate) fn is_same(&self, method: &str, other: &Self, other_method: &str) -> bool {
        self.code == other.code
            && self.data == other.data
            && self.message.replace(method, "") == other.message.replace(other_method, "")
    }

    /// The server's words.
    pub(crate) fn words(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    fn of(error: &str) -> Option<Refusal> {
        Refusal::of(error)
    }

    #[test]
    fn only_an_error_that_may_mean_it_raises_the_question() {
        assert!(of(r#"{"code":-32602,"message":"Invalid request parameters","data":""}"#).is_some());
        assert!(of(r#"{"code":-32002,"message":"x"}"#).is_some());
        assert!(of(r#"{"code":-32000,"message":"Bad Request: Server not Initialized"}"#).is_some());
        assert!(of(r#"{"code":-32001,"message":"no such session"}"#).is_none());
        assert!(of(r#"{"code":-32601,"message":"Method not found"}"#).is_none());
        assert!(of(r#"{"code":-32603,"message":"boom"}"#).is_none());
        assert!(of(r#"{"code":"-32602"}"#).is_none());
        assert!(of("no JSON").is_none());
        let long = format!(r#"{{"code":-32602,"message":"{}"}}"#, "x".repeat(super::LONGEST_BYTES));
        assert!(of(&long).is_none());
    }

    #[test]
    fn two_refusals_are_the_same_but_for_the_method_that_they_quote() {
        let call =
            of(r#"{"code":-32600,"message":"method \"tools/call\" is invalid during initialization"}"#);
        let list =
            of(r#"{"code":-32600,"message":"method \"tools/list\" is invalid during initialization"}"#);
        let (call, list) = (call.unwrap(), list.unwrap());
        assert!(call.is_same("tools/call", &list, "tools/list"));
        let other = of(r#"{"code":-32602,"message":"tools/list is invalid"}"#).unwrap();
        assert!(!call.is_same("tools/call", &other, "tools/list"));
        let with_data = Refusal { data: 7.into(), ..list };
        assert!(!call.is_same("tools/call", &with_data, "tools/list"));
    }
}
