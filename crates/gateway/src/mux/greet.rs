//! What the agent is told of us. Nobody is waited for: what a server turns out not to have, it refuses itself.

use linetender_wire::handshake::{LEGACIES, LEGACY, MODERN};
use serde_json::{Value, json};

use crate::listing::View;

/// The most that is passed on of what one server says about how to use it, in characters.
const INSTRUCTIONS: usize = 8 * 1024;

/// What the servers say about how to use them, each under its name; those that have been heard so far.
fn instructions(view: &View) -> Option<String> {
    let said = view.routes.iter().filter_map(|route| {
        let text: String = route.berth.line.instructions()?.chars().take(INSTRUCTIONS).collect();
        Some(format!("# {}\n{text}", route.berth.name()))
    });
    let said: Vec<_> = said.collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

fn with_instructions(mut greeting: Value, view: &View) -> String {
    if let Some(text) = instructions(view) {
        greeting["instructions"] = text.into();
    }
    greeting.to_string()
}

fn capabilities() -> Value {
    json!({
        "completions": {},
        "logging": {},
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "tools": { "listChanged": true },
    })
}

fn info() -> Value {
    json!({ "name": "linetender", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to a legacy agent's `initialize`.
pub(super) fn initialized(params: Option<&str>, view: &View) -> String {
    let asked = params.and_then(|params| serde_json::from_str::<Value>(params).ok()).unwrap_or_default();
    let version = asked["protocolVersion"].as_str().filter(|version| LEGACIES.contains(version));
    let version = version.unwrap_or(LEGACY);
    let greeting =
        json!({ "protocolVersion": version, "capabilities": capabilities(), "serverInfo": info() });
    with_instructions(greeting, view)
}

/// The answer to a modern agent's `server/discover`.
pub(super) fn discovered(view: &View) -> String {
    let greeting = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": info() },
    });
    with_instructions(greeting, view)
}
