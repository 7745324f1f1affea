//! An agent of `OpenAPI` routes: a POST for each tool, a status for what came of it, and no MCP at all.
//!
//! There is no session that could be lost, and no id: whatever an agent is told about its call, it is told in the body.

use std::net::SocketAddr;

use http::Method;
use linetender_badserver::agent::{self, Reply};
use serde_json::{Map, Value};

use super::Outcome;
use super::web::address;

/// Where the routes are.
pub(crate) struct Routes {
    to: SocketAddr,
    base: String,
}

impl Routes {
    /// Below this address, which is plain HTTP on this machine.
    pub(crate) fn at(url: &str) -> Result<Self, String> {
        let (to, path) = address(url)?;
        Ok(Self { to, base: path.trim_end_matches('/').to_owned() })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.to
    }

    /// A call of a tool. `own` are words by which an error of the server's own is known.
    pub(crate) async fn call(&self, tool: &str, args: &Map<String, Value>, own: &[String]) -> Outcome {
        match self.exchange(Method::POST, tool, Value::from(args.clone()).to_string()).await {
            Some((200, text)) => Outcome::Answered(text.unwrap_or_default()),
            Some((status, None)) => Outcome::Error(format!("HTTP {status}")),
            Some((_, Some(text))) => Outcome::of_error(&said(text), own),
            None => Outcome::Closed,
        }
    }

    /// What is offered, as it was spelt.
    pub(crate) async fn list(&self) -> Option<String> {
        match self.exchange(Method::GET, "openapi.json", String::new()).await {
            Some((200, text)) => text,
            Some(_) | None => None,
        }
    }

    /// The status and the body, if there is one; nothing if the connection ended before.
    async fn exchange(&self, method: Method, route: &str, body: String) -> Option<(u16, Option<String>)> {
        let path = format!("{}/{route}", self.base);
        let mut reply: Reply = agent::send(self.to, method, &path, &[], body).await.ok()?;
        let text = reply.next_text().await.ok()?;
        Some((reply.status.as_u16(), text.map(|text| String::from_utf8_lossy(&text).into_owned())))
    }
}

/// The words of a refusal: every text in its JSON, whatever its shape, or all of it.
fn said(text: String) -> String {
    fn words(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) if !text.trim().is_empty() => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| words(value, found)),
            Value::Object(fields) => fields.values().for_each(|value| words(value, found)),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let Ok(body) = serde_json::from_str::<Value>(&text) else { return text };
    let mut found = Vec::new();
    words(&body, &mut found);
    found.join(": ")
}

#[cfg(test)]
mod tests {
    use super::{Outcome, said};

    fn of(body: &str) -> Outcome {
        Outcome::of_error(&said(body.to_owned()), &["on purpose".to_owned()])
    }

    #[test]
    fn a_refusal_says_what_its_body_says() {
        let told = [
            r#"{"detail":{"message":"Connection closed"}}"#,
            r#"{"detail":"Connection closed"}"#,
            "Connection closed",
        ];
        for body in told {
            assert!(matches!(of(body), Outcome::Error(said) if said == "Connection closed"), "{body}");
        }
        assert!(matches!(of(r#"{"detail":{"message":"refused on purpose"}}"#), Outcome::Own(_)));
    }

    #[test]
    fn a_body_without_words_is_an_error_without_text() {
        assert!(matches!(of(r#"{"detail":{"message":"","data":null}}"#), Outcome::Empty));
    }
}
