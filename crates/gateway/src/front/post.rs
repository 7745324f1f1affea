//! A POST: what it says, in which era, and for which servers.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use linetender::{Code, visible};
use linetender_wire::frame::{self, Bad, Frame, Members, Message};
use linetender_wire::handshake::VERSION_IN_META;
use linetender_wire::http::headers::PROTOCOL_VERSION;

use super::{Front, legacy, modern, reply};
use crate::failed::Failed;
use crate::listing::Endpoint;
use crate::mux::BATCH;

/// The first year of the modern era, as versions spell it.
const MODERN_FROM: &str = "2026";

/// The endpoint that a path leads to, or the answer that there is none.
pub(super) fn endpoint(front: &Front, path: Option<Path<String>>) -> Result<Endpoint, Box<Response>> {
    let Some(Path(name)) = path else { return Ok(Endpoint::All) };
    let listing = front.gateway.seen();
    if listing.berth(&name).is_some() {
        return Ok(Endpoint::One(name.into()));
    }
    let name = visible::cut(&name, 200);
    let words = format!("no server named `{name}`; configured servers: {}", listing.names().join(", "));
    let failed = Failed::unroutable(Code::NotHere.number(), words, &listing.names());
    Err(Box::new(reply::json(StatusCode::NOT_FOUND, failed.error("null"))))
}

/// Answers a POST.
pub(super) async fn post(
    State(front): State<Arc<Front>>,
    path: Option<Path<String>>,
    request: Request,
) -> Response {
    let endpoint = match endpoint(&front, path) {
        Ok(endpoint) => endpoint,
        Err(nowhere) => return *nowhere,
    };
    front.pulse.beat();
    let (head, body) = request.into_parts();
    if let Some(refused) = unacceptable(&head.headers) {
        return refused;
    }
    let limit = front.gateway.settings().message;
    let text = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let words = format!("the message is longer than {limit} bytes");
            return reply::error(StatusCode::PAYLOAD_TOO_LARGE, "null", -32600, &words);
        }
        Err(_) => {
            return reply::error(StatusCode::BAD_REQUEST, "null", -32600, "the request body ended early");
        }
    };
    match frame::parse_at_most(&text, front.gateway.settings().limits(), BATCH) {
        Ok(frames) => answer(front, endpoint, &head, &text, frames).await,
        Err(bad) => {
            let code = if bad == Bad::NotJson { -32700 } else { -32600 };
            reply::error(StatusCode::BAD_REQUEST, "null", code, &format!("the message is {bad}"))
        }
    }
}

async fn answer(
    front: Arc<Front>,
    endpoint: Endpoint,
    head: &Parts,
    text: &Bytes,
    mut frames: Vec<Frame>,
) -> Response {
    let is_batch = text.trim_ascii_start().starts_with(b"[");
    let modern = frames.iter().any(|frame| is_modern(frame, &head.headers));
    match (modern, frames.len(), is_batch) {
        (true, 1, false) => match frames.pop() {
            Some(frame) => modern::answer(front, endpoint, head, frame).await,
            None => reply::accepted(),
        },
        (true, ..) => reply::error(
            StatusCode::BAD_REQUEST,
            "null",
            -32600,
            "batches are not supported in this protocol version",
        ),
        (false, ..) => legacy::post(front, endpoint, &head.headers, frames).await,
    }
}

/// Whether a message belongs to the modern era: by its own word, or by its header's.
fn is_modern(frame: &Frame, headers: &HeaderMap) -> bool {
    let header = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    let newer = header.is_some_and(|version| version >= MODERN_FROM);
    match frame.message() {
        Message::Request { method: "initialize", params, .. } => version(params).is_some(),
        // Where a header says so, nobody needs to look any further.
        Message::Request { method, params, .. } => {
            newer || method == "server/discover" || version(params).is_some()
        }
        Message::Notification { .. } | Message::Response { .. } => newer,
    }
}

/// The version in a request's `_meta`.
pub(super) fn version(params: Option<&str>) -> Option<Cow<'_, str>> {
    let meta = Members::of(params?)?.get("_meta")?.get();
    // Most legacy requests have no such thing in it.
    if !meta.contains(VERSION_IN_META) {
        return None;
    }
    Members::of(meta)?.string(VERSION_IN_META)
}

// MCP, Streamable HTTP: the client MUST accept both JSON and event streams.
fn unacceptable(headers: &HeaderMap) -> Option<Response> {
    let of = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok()).unwrap_or("");
    if !of(CONTENT_TYPE).to_ascii_lowercase().starts_with("application/json") {
        let words = "Content-Type must be application/json";
        return Some(reply::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "null", -32600, words));
    }
    let accept = of(ACCEPT);
    let takes = |kind: &str| accept.contains(kind) || accept.contains("*/*");
    if !takes("application/json") || !takes("text/event-stream") {
        let words = "Accept must include application/json and text/event-stream";
        return Some(reply::error(StatusCode::NOT_ACCEPTABLE, "null", -32600, words));
    }
    None
}
