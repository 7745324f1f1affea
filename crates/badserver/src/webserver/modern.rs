//! What 2026-07-28 asks of a request: its version and capabilities in `_meta`, and headers that agree with its body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::manners::Manners;
use super::post::Asked;
use super::reply::{self, Refused};

pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Lets a request in, or says why not.
pub(super) fn admit(asked: &Asked, manners: &Manners) -> Result<(), Refused> {
    if asked.message.get("id").is_none() {
        return Ok(());
    }
    if asked.method() == "initialize" {
        return Err(unsupported(asked, manners, &asked.params()["protocolVersion"]));
    }
    let version = asked.meta(VERSION);
    if !version.is_string() || !asked.meta(CAPABILITIES).is_object() {
        return Err(bad(asked, -32602, "the version and the client's capabilities have to be in _meta"));
    }
    agree(asked, "mcp-protocol-version", version)?;
    if !manners.modern_versions.iter().any(|known| version == known) {
        return Err(unsupported(asked, manners, version));
    }
    agree(asked, "mcp-method", &asked.message["method"])?;
    match asked.method() {
        "tools/call" | "prompts/get" => agree(asked, "mcp-name", &asked.params()["name"])?,
        "resources/read" => agree(asked, "mcp-name", &asked.params()["uri"])?,
        _ => {}
    }
    if asked.method() == "tools/call" && asked.params()["name"] == "routed" {
        let header = format!("mcp-param-{}", manners.param_header.to_ascii_lowercase());
        agree(asked, &header, &asked.params()["arguments"]["region"])?;
    }
    Ok(())
}

/// A header has to say what the body says, and nothing where the body says nothing.
fn agree(asked: &Asked, name: &str, said: &Value) -> Result<(), Refused> {
    if asked.header(name).map(plain).as_deref() == said.as_str() {
        return Ok(());
    }
    Err(bad(asked, HEADER_MISMATCH, &format!("the header {name} does not agree with the body")))
}

/// The value behind `=?base64?…?=`, or the value itself.
fn plain(value: &str) -> String {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let decoded =
        wrapped.and_then(|text| STANDARD.decode(text).ok()).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.unwrap_or_else(|| value.to_owned())
}

fn unsupported(asked: &Asked, manners: &Manners, requested: &Value) -> Refused {
    let mut error = reply::error(asked.id(), UNSUPPORTED_VERSION, "unsupported protocol version");
    error["error"]["data"] = json!({ "supported": manners.modern_versions, "requested": requested });
    reply::json(400, &error).into()
}

fn bad(asked: &Asked, code: i64, words: &str) -> Refused {
    reply::json(400, &reply::error(asked.id(), code, words)).into()
}
