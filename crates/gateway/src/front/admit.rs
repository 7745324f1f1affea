//! What a modern request must say of itself, in its body and in its headers, before anybody is asked.

use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use linetender_wire::frame::{Members, Routing, string};
use linetender_wire::handshake::{CAPABILITIES_IN_META, MODERN, VERSION_IN_META};
use linetender_wire::http::headers::{METHOD, NAME, PROTOCOL_VERSION, ParamHeaders, decode};
use serde_json::value::RawValue;

use super::reply;
use crate::failed::Failed;

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
    routing: &Routing<'a>,
) -> Result<Option<&'a str>, Box<Response>> {
    let bad = |code, words: &str| Err(Box::new(reply::error(StatusCode::BAD_REQUEST, id, code, words)));
    // MCP 2026-07-28, "Request Metadata": both MUST be there.
    let version = routing.meta.version.and_then(string);
    let capabilities = routing.meta.capabilities.is_some_and(|value| value.get().starts_with('{'));
    let Some(version) = version.filter(|_| capabilities) else {
        return bad(-32602, &format!("_meta must contain {VERSION_IN_META} and {CAPABILITIES_IN_META}"));
    };
    // MCP 2026-07-28, Streamable HTTP, "Server Validation": headers MUST say what the body says.
    agree(headers, &PROTOCOL_VERSION, Some(&version), id)?;
    if version != MODERN {
        let failed = Failed::refused(UNSUPPORTED_VERSION, "unsupported protocol version", "never")
            .with("supported", [MODERN].as_slice())
            .with("requested", &*version);
        return Err(Box::new(reply::refused(StatusCode::BAD_REQUEST, id, &failed)));
    }
    agree(headers, &METHOD, Some(method), id)?;
    let named = match method {
        "tools/call" | "prompts/get" => Some(routing.name),
        "resources/read" => Some(routing.uri),
        // The extension wants it there, and its clients came before that: one that says another task is refused.
        method if method.starts_with("tasks/") && headers.contains_key(&NAME) => Some(routing.task),
        _ => None,
    };
    if let Some(named) = named {
        agree(headers, &NAME, named.and_then(string).as_deref(), id)?;
    }
    if REMOVED.contains(&method) {
        let words = format!("{method} does not exist in this protocol version");
        return Err(Box::new(reply::error(StatusCode::NOT_FOUND, id, NO_METHOD, &words)));
    }
    Ok(routing.meta.client.map(RawValue::get))
}

/// Whether the headers that a tool wants its arguments in say what the arguments do.
pub(super) fn mirrors(
    mirrored: &ParamHeaders,
    head: &Parts,
    id: &str,
    params: Option<&str>,
) -> Result<(), Box<Response>> {
    let arguments = params.and_then(|params| Members::of(params)?.get("arguments")).map(RawValue::get);
    match mirrored.disagrees(&head.headers, arguments) {
        None => Ok(()),
        Some(name) => Err(Box::new(mismatch(name, id))),
    }
}

fn mismatch(name: &HeaderName, id: &str) -> Response {
    let words = format!("header {name} does not match the request body");
    reply::error(StatusCode::BAD_REQUEST, id, HEADER_MISMATCH, &words)
}

fn agree(headers: &HeaderMap, name: &HeaderName, said: Option<&str>, id: &str) -> Result<(), Box<Response>> {
    let header = headers.get(name).and_then(|value| value.to_str().ok()).and_then(decode);
    if header.as_deref() == said && headers.get_all(name).iter().count() <= 1 {
        return Ok(());
    }
    Err(Box::new(mismatch(name, id)))
}
