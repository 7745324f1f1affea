//! Who we say we are.

use serde_json::{Value, json};

/// The legacy revisions, newest first.
pub const LEGACIES: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The newest of them.
pub const LEGACY: &str = LEGACIES[0];
/// The modern revision.
pub const MODERN: &str = "2026-07-28";

/// Where in its `_meta` a modern request says its version.
pub const VERSION_IN_META: &str = "io.modelcontextprotocol/protocolVersion";

/// Where a modern request says what its sender is able to do.
pub const CAPABILITIES_IN_META: &str = "io.modelcontextprotocol/clientCapabilities";

/// Where it says who that is.
pub const CLIENT_IN_META: &str = "io.modelcontextprotocol/clientInfo";

/// The member of `_meta` by which a notification finds its listening request.
pub const SUBSCRIPTION_IN_META: &str = "io.modelcontextprotocol/subscriptionId";

/// Who speaks to the server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Hello {
    /// We do, for whoever calls.
    Ours {
        /// Name and version, as shown to the server.
        name: String,
        /// The version.
        version: String,
    },
    /// One agent does, and these are the params of its `initialize`, as it spelt them.
    Agent(Box<str>),
}

impl Hello {
    pub(super) fn initialize(&self) -> String {
        match self {
            Self::Ours { name, version } => json!({
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": { "name": name, "version": version },
            })
            .to_string(),
            Self::Agent(params) => params.to_string(),
        }
    }

    pub(super) fn discover(&self) -> String {
        json!({ "_meta": self.meta() }).to_string()
    }

    /// What a modern server wants to see on every request.
    // MCP 2026-07-28, basic, "_meta": protocolVersion and clientCapabilities MUST, clientInfo SHOULD.
    pub fn meta(&self) -> Value {
        let (capabilities, info) = match self {
            Self::Ours { name, version } => (json!({}), json!({ "name": name, "version": version })),
            Self::Agent(params) => {
                let params: Value = serde_json::from_str(params).unwrap_or_default();
                (params["capabilities"].clone(), params["clientInfo"].clone())
            }
        };
        json!({
            VERSION_IN_META: MODERN,
            CAPABILITIES_IN_META: if capabilities.is_object() { capabilities } else { json!({}) },
            CLIENT_IN_META: info,
        })
    }
}
