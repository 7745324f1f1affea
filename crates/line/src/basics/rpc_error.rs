//! A JSON-RPC error, as the server spelt it.

use std::fmt;

use serde::Deserialize;

/// A JSON-RPC error that a server answered with.
#[derive(Clone, Debug)]
pub struct RpcError {
    code: Option<i64>,
    message: String,
    raw: Box<str>,
}

impl RpcError {
    /// `raw` is the error's own object. What it lacks is left out: the server is not always right.
    pub(crate) fn of(raw: &str) -> Self {
        #[derive(Default, Deserialize)]
        struct Parts {
            code: Option<i64>,
            message: Option<String>,
        }
        let Parts { code, message } = serde_json::from_str(raw).unwrap_or_default();
        Self { code, message: message.unwrap_or_default(), raw: raw.into() }
    }

    /// Its code; `None` if it has none that is a whole number.
    pub const fn code(&self) -> Option<i64> {
        self.code
    }

    /// Its message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// All of it, as JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{} (JSON-RPC error {code})", self.message),
            None => write!(f, "{} (JSON-RPC error)", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RpcError;

    #[test]
    fn what_a_server_left_out_is_left_out() {
        let whole = RpcError::of(r#"{"code":-32602,"message":"no such tool","data":{"a":1}}"#);
        assert_eq!((whole.code(), whole.message()), (Some(-32602), "no such tool"));
        assert!(whole.raw().contains("data") && whole.to_string().contains("-32602"));
        let odd = RpcError::of(r#"{"code":"x"}"#);
        assert_eq!((odd.code(), odd.message(), odd.raw()), (None, "", r#"{"code":"x"}"#));
    }
}
