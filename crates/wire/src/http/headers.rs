//! The headers of our requests, in both eras.
//!
//! Modern servers and the proxies before them read the method, the name and some arguments from headers, and refuse a
//! request whose headers and body disagree. So all of them are taken from the very text that is sent. What a server
//! hands us to send back (a session, an event id, a version) is hostile until it was looked at.

mod params;
mod session;
#[cfg(test)]
mod tests;
mod value;

pub use params::{Invalid, NAME_LIMIT, PARAMS_MOST, ParamHeaders};
pub use session::{SESSION_LIMIT, SessionId};
pub use value::{VALUE_LIMIT, decode, encode};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::frame::Members;
use crate::handshake::Era;

/// The protocol version of a request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The legacy session, in requests and in the answer to `initialize`.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The method of a modern request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// What a modern request is about.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Behind which event a legacy stream is resumed.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The longest protocol version that is worth sending.
const VERSION_LIMIT: usize = 64;

/// A message about to be posted.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The server's era.
    pub era: Era,
    /// The version that was agreed on; none in a legacy `initialize`.
    pub version: Option<&'a str>,
    /// The method.
    pub method: &'a str,
    /// As they are in the body.
    pub params: Option<&'a Members<'a>>,
    /// The legacy session, if there is one.
    pub session: Option<&'a SessionId>,
    /// What the tool that is called wants to see in headers.
    pub param_headers: Option<&'a ParamHeaders>,
}

/// The headers of a POST.
pub fn headers(ask: &Ask<'_>) -> HeaderMap {
    // With room for those of the connection: a map that grows is hashed anew.
    let mut map = HeaderMap::with_capacity(12);
    map.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    put_version(&mut map, ask.version);
    match ask.era {
        Era::Legacy => put_session(&mut map, ask.session),
        Era::Modern => put_metadata(&mut map, ask),
    }
    map
}

/// The headers of a legacy GET: the server's own stream, or a stream that is resumed behind `last_id`.
// MCP 2025-11-25, "Resumability and Redelivery".
pub fn stream_headers(
    version: Option<&str>,
    session: Option<&SessionId>,
    last_id: Option<&str>,
) -> HeaderMap {
    let mut map = delete_headers(version, session);
    map.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(id) = last_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
        map.insert(LAST_EVENT_ID, id);
    }
    map
}

/// The headers of a legacy DELETE, which ends a session.
pub fn delete_headers(version: Option<&str>, session: Option<&SessionId>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(4);
    put_version(&mut map, version);
    put_session(&mut map, session);
    map
}

fn put_version(map: &mut HeaderMap, version: Option<&str>) {
    let shown = version.filter(|version| version.len() <= VERSION_LIMIT && is_visible(version));
    if let Some(value) = shown.and_then(|version| HeaderValue::from_str(version).ok()) {
        map.insert(PROTOCOL_VERSION, value);
    }
}

fn put_session(map: &mut HeaderMap, session: Option<&SessionId>) {
    if let Some(session) = session {
        map.insert(SESSION_ID, session.header());
    }
}

// MCP 2026-07-28, Streamable HTTP, "Standard Request Headers" and "Client Behavior".
fn put_metadata(map: &mut HeaderMap, ask: &Ask<'_>) {
    // No encoding is defined for a method; one that needs it is refused by the server in words of its own.
    if is_visible(ask.method)
        && let Ok(method) = HeaderValue::from_str(ask.method)
    {
        map.insert(METHOD, method);
    }
    let source = match ask.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        method if method.starts_with("tasks/") => "taskId",
        _ => return,
    };
    let Some(params) = ask.params else { return };
    if let Some(name) = params.string(source).and_then(|name| encode(&name)) {
        map.insert(NAME, name);
    }
    if ask.method == "tools/call"
        && let (Some(wanted), Some(arguments)) = (ask.param_headers, params.get("arguments"))
    {
        wanted.put(map, arguments.get());
    }
}

/// Visible ASCII, without spaces, and not empty.
fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
