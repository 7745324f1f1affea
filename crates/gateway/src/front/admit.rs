//! What a modern request must say of itself, in its body and in its headers, before anybody is asked.

use axum::response::Response;
use http::{HeaderMap, HeaderName, StatusCode};
use linetender_wire::frame::Members;
use linetender_wire::handshake::{MODERN, VERSION_IN_META};
use linetender_wire::http::headers::{METHOD, NAME, PROTOCOL_VERSION, decode};
use serde_json::value::RawValue;

use super::reply;
use crate::failed::Failed;

/// What a request has to say of its client.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What it may say of who that is.
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// Methods that the modern era has no more.
const REMOVED: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

pub(super) const HEADER_MISMATCH: i32 = -32020;
pub(super) const MISSING_CAPABILITY: i32 = -32021;
pub(super) const UNSUPPORTED_VERSION: i32 = -32022;
pub(super) const NO_METHOD: i32 = -32601;

/// Lets a request in, or says why not; and what its client calls itself.
pub(super) fn admit<'a>(
    headers: &HeaderMap,
    id: &str,
    method: &str,
    params: Option<&'a str>,
) -> Result<Option<&'a str>, Box<Response>> {
    let bad = |code, words: &str| Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, code, words)));
    // MCP 2026-07-28, "Request Metadata": both MUST be there.
    let params = params.and_then(Members::of);
    let meta = params.as_ref().and_then(|params| Members::of(params.get("_meta")?.get()));
    let version = meta.as_ref().and_then(|meta| meta.string(VERSION_IN_META));
    let client = meta.as_ref().and_then(|meta| meta.get(CLIENT)).map(RawValue::get);
    let capabilities = meta.and_then(|meta| meta.get(CAPABILITIES));
    let capabilities = capabilities.is_some_and(|value| value.get().starts_with('{'));
    let Some(version) = version.filter(|_| capabilities) else {
        return bad(-32602, &format!("_meta must contain {VERSION_IN_META} and {CAPABILITIES}"));
    };
    // MCP 2026-07-28, Streamable HTTP, "Server Validation": headers MUST say what the body says.
    agree(headers, &PROTOCOL_VERSION, Some(&version), id)?;
    if version != MODERN {
        let failed = Failed::refused(UNSUPPORTED_VERSION, "unsupported protocol version", "never")
            .with("supported", [MODERN].as_slice())
            .with("requested", &*version);
        return Err(Box::new(reply::json(StatusCode::BAD_REQUEST, failed.error(id))));
    }
    agree(headers, &METHOD, Some(method), id)?;
    let named = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    };
    if let Some(member) = named {
        let name = params.and_then(|params| params.string(member));
        agree(headers, &NAME, name.as_deref(), id)?;
    }
    if REMOVED.contains(&method) {
        let words = format!("{method} does not exist in this protocol version");
        return Err(Box::new(reply::error(StatusCode::NOT_FOUND, id, NO_METHOD, &words)));
    }
    Ok(client)
}

fn agree(headers: &HeaderMap, name: &HeaderName, said: Option<&str>, id: &str) -> Result<(), Box<Response>> {
    let header = headers.get(name).and_then(|value| value.to_str().ok()).and_then(decode);
    if header.as_deref() == said && headers.get_all(name).iter().count() <= 1 {
        return Ok(());
    }
    let words = format!("header {name} does not match the request body");
    Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, HEADER_MISMATCH, &words)))
}
