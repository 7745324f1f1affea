//! What the suite wants of the client: said in the environment, but for the address.

use linetender::Era;
use serde_json::Value;

use super::Outcome;

/// The revision that is spoken if the suite names none.
const NEWEST: &str = "2026-07-28";

/// One scenario, to be run against one server.
pub(super) struct Task {
    pub(super) url: String,
    pub(super) scenario: String,
    /// The revision of MCP, and the era that it belongs to.
    pub(super) version: String,
    pub(super) era: Era,
    /// Values to use, where a scenario depends on them.
    pub(super) context: Value,
}

impl Task {
    pub(super) fn given(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let url = arguments.last().ok_or("the server's address is missing")?;
        let scenario = variable("SCENARIO").ok_or("MCP_CONFORMANCE_SCENARIO names no scenario")?;
        let version = variable("PROTOCOL_VERSION").unwrap_or_else(|| NEWEST.to_owned());
        // Revisions are dates, so they are ordered as text.
        let era = if version.as_str() < NEWEST { Era::Legacy } else { Era::Modern };
        let context = match variable("CONTEXT") {
            Some(context) => serde_json::from_str(&context)?,
            None => Value::Null,
        };
        Ok(Self { url, scenario, version, era, context })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is how the suite tells a client what to do")]
fn variable(name: &str) -> Option<String> {
    std::env::var(format!("MCP_CONFORMANCE_{name}")).ok()
}
