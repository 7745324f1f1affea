//! Any text as a header value, and back.
// MCP 2026-07-28, Streamable HTTP, "Value Encoding".

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// Text above this many bytes is not put into a header: no server takes a header of that size. It then refuses the
/// request for the missing header, which is a proof that it did not run.
pub const VALUE_LIMIT: usize = 16 * 1024;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// The header value for a text; `None` if it is too long for one.
pub fn encode(text: &str) -> Option<HeaderValue> {
    if text.len() > VALUE_LIMIT {
        return None;
    }
    if is_plain(text) {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("{OPEN}{}{CLOSE}", STANDARD.encode(text))).ok()
}

/// The text that a header value stands for; `None` if it is encoded and cannot be decoded.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned),
    }
}

fn is_plain(text: &str) -> bool {
    let safe = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
    let padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let marked = text.starts_with(OPEN) && text.ends_with(CLOSE);
    text.bytes().all(safe) && !padded && !marked
}
