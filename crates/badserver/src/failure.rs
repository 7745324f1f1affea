//! What a caller was told when its call failed, whichever door it stood at: the library's error, or five words in JSON.

use std::fmt;

use serde_json::Value;

/// The five fields of a failed call, as they were told.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Failure {
    /// The server's name.
    pub server: String,
    /// How far the call had got.
    pub phase: String,
    /// What happened.
    pub cause: String,
    /// Whether it ran: `not executed`, `refused`, `unknown` or `answered`.
    pub delivery: String,
    /// When the line is tried next.
    pub next_try: String,
}

impl Failure {
    /// As a door that speaks JSON tells it. What is missing is empty, which the checker finds.
    pub fn of_fields(fields: &Value) -> Self {
        let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
        Self {
            server: text("server"),
            phase: text("phase"),
            cause: text("cause"),
            delivery: text("delivery"),
            next_try: text("nextTry"),
        }
    }

    /// A server's own error, which says nothing about whether the call ran.
    pub fn of_server(words: &str) -> Self {
        Self {
            server: "the server".into(),
            phase: "answered".into(),
            cause: words.to_owned(),
            delivery: "by the server's own word".into(),
            next_try: "now".into(),
        }
    }

    /// Whether the caller was told that the call did not run.
    pub fn not_executed(&self) -> bool {
        self.delivery == "not executed"
    }

    /// Whether the caller was told that the server says that it did not run the call.
    pub fn refused(&self) -> bool {
        self.delivery == "refused"
    }

    /// Whether the caller was told that the server did process the call.
    pub fn answered(&self) -> bool {
        self.delivery == "answered"
    }

    /// Whether one of the five is missing.
    pub fn is_silent(&self) -> bool {
        let Self { server, phase, cause, delivery, next_try } = self;
        [server, phase, cause, delivery, next_try].iter().any(|text| text.trim().is_empty())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, phase, cause, delivery, next_try } = self;
        write!(f, "{server}: {cause} ({phase}; {delivery}; next try: {next_try})")
    }
}
