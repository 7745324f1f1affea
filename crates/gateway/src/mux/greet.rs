//! What the agent is told of us. Nobody is waited for: what a server turns out not to have, it refuses itself.

use linetender_wire::handshake::{LEGACY, MODERN};
use serde_json::{Value, json};

/// Legacy revisions that an agent may speak.
const LEGACIES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

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
pub(super) fn initialized(params: Option<&str>) -> String {
    let asked = params.and_then(|params| serde_json::from_str::<Value>(params).ok()).unwrap_or_default();
    let version = asked["protocolVersion"].as_str().filter(|version| LEGACIES.contains(version));
    let version = version.unwrap_or(LEGACY);
    json!({ "protocolVersion": version, "capabilities": capabilities(), "serverInfo": info() }).to_string()
}

/// The answer to a modern agent's `server/discover`.
pub(super) fn discovered() -> String {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": info() },
    })
    .to_string()
}
