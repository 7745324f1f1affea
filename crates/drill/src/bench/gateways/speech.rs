//! What an agent of either era says.

use http::{HeaderMap, HeaderValue};

/// The era that the agent speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Era {
    /// With sessions.
    Legacy,
    /// Without.
    Modern,
}

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Era {
    /// The first request.
    pub(super) fn hello(self) -> String {
        match self {
            Self::Legacy => self.request(
                0,
                "initialize",
                &format!(
                    r#""protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"bench-gateways","version":"1"}}"#
                ),
            ),
            Self::Modern => self.request(0, "server/discover", ""),
        }
    }

    /// A call whose answer has so many bytes of text.
    pub(super) fn call(self, id: u64, tool: &str, bytes: usize) -> String {
        self.request(id, "tools/call", &format!(r#""name":"{tool}","arguments":{{"bytes":{bytes}}}"#))
    }

    /// Wants to hear of changes.
    pub(super) fn listen(self, id: u64) -> String {
        self.request(id, "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#)
    }

    fn request(self, id: u64, method: &str, params: &str) -> String {
        let meta = match self {
            Self::Legacy => String::new(),
            Self::Modern => {
                let comma = if params.is_empty() { "" } else { "," };
                format!(
                    r#"{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"bench-gateways","version":"1"}}}}"#
                )
            }
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{meta}}}}}"#)
    }

    /// The headers that go with a message.
    pub(super) fn headers(
        self,
        session: Option<&HeaderValue>,
        method: &'static str,
        name: Option<&str>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("application/json, text/event-stream"));
        match self {
            Self::Legacy => {
                if let Some(session) = session {
                    headers.insert("mcp-protocol-version", HeaderValue::from_static(LEGACY));
                    headers.insert("mcp-session-id", session.clone());
                }
            }
            Self::Modern => {
                headers.insert("mcp-protocol-version", HeaderValue::from_static(MODERN));
                headers.insert("mcp-method", HeaderValue::from_static(method));
                if let Some(name) = name.and_then(|name| HeaderValue::from_str(name).ok()) {
                    headers.insert("mcp-name", name);
                }
            }
        }
        headers
    }
}
