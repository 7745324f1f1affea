//! Which credentials a server wants, and how it refuses others.

use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};

use super::post::Asked;
use super::reply::{self, Answer};

/// The credentials that it wants. Everything else is refused; whether it has been run before is another question
/// ([`Manners::runs_what_it_refuses`](super::Manners)).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wants {
    /// The values of `Authorization` that it takes, whole; empty if it takes none.
    pub keys: Vec<String>,
    /// Whether a refusal has a challenge, as it should.
    pub challenges: bool,
    /// The JSON-RPC methods for which it wants them (`GET` and `DELETE` are those requests); empty for all.
    pub only: Vec<String>,
    /// A tool that takes a scope which no key has: 403.
    pub scoped_tool: Option<String>,
    /// A tool that is refused whatever the key: 401.
    pub forbidden_tool: Option<String>,
}

impl Wants {
    /// One key, with challenges.
    pub fn key(key: impl Into<String>) -> Self {
        Self { keys: vec![key.into()], challenges: true, ..Self::default() }
    }

    /// The refusal that this request meets, if any.
    pub(super) fn refuse(&self, asked: &Asked, kind: &str) -> Option<Answer> {
        let sent = asked.head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let concerned = self.only.is_empty() || self.only.iter().any(|only| only == kind);
        if concerned && !sent.is_some_and(|sent| self.keys.iter().any(|key| key == sent)) {
            let error = if sent.is_some() { ", error=\"invalid_token\"" } else { "" };
            return Some(self.with_challenge(asked, 401, error));
        }
        let tool = asked.params()["name"].as_str();
        if kind == "tools/call" && tool.is_some() && tool == self.forbidden_tool.as_deref() {
            return Some(self.with_challenge(asked, 401, ", error=\"invalid_token\""));
        }
        if kind == "tools/call" && tool.is_some() && tool == self.scoped_tool.as_deref() {
            return Some(self.with_challenge(
                asked,
                403,
                ", error=\"insufficient_scope\", scope=\"files:write\"",
            ));
        }
        None
    }

    fn with_challenge(&self, asked: &Asked, status: u16, error: &str) -> Answer {
        let mut answer = reply::text(status, "refused for its key");
        let origin = &asked.house.origin;
        let challenge =
            format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource\"{error}");
        if self.challenges
            && let Ok(challenge) = HeaderValue::from_str(&challenge)
        {
            answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        answer
    }
}
