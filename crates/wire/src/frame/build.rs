//! From parts to bytes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};

/// A request. `params` is raw JSON.
pub fn request(id: u64, method: &str, params: Option<&str>) -> Bytes {
    let mut text = BytesMut::with_capacity(64 + method.len() + params.map_or(0, str::len));
    text.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    put_number(&mut text, id);
    put_method(&mut text, method, params);
    text.freeze()
}

/// A notification. `params` is raw JSON.
pub fn notification(method: &str, params: Option<&str>) -> Bytes {
    let mut text = BytesMut::with_capacity(48 + method.len() + params.map_or(0, str::len));
    text.put_slice(b"{\"jsonrpc\":\"2.0\"");
    put_method(&mut text, method, params);
    text.freeze()
}

/// A result for somebody's id. Both are raw JSON.
pub fn reply(id: &str, result: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

/// An error for somebody's id. Both are raw JSON.
pub fn error_reply(id: &str, error: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// The text on one line, as stdio and SSE demand. A raw line break can only stand between two tokens: inside a string
/// JSON has it escaped.
pub fn one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\r', b'\n', &text).is_none() {
        return text;
    }
    text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect()
}

/// `text` as a JSON string.
pub fn respell(text: &str) -> Cow<'_, str> {
    serde_json::to_string(text).map_or(Cow::Borrowed("\"\""), Cow::Owned)
}

pub(super) fn splice(text: &[u8], range: Range<usize>, with: &[u8]) -> Bytes {
    let mut new = BytesMut::with_capacity(text.len() - range.len() + with.len());
    new.put_slice(&text[..range.start]);
    new.put_slice(with);
    new.put_slice(&text[range.end..]);
    new.freeze()
}

fn put_method(text: &mut BytesMut, method: &str, params: Option<&str>) {
    text.put_slice(b",\"method\":");
    text.put_slice(respell(method).as_bytes());
    if let Some(params) = params {
        text.put_slice(b",\"params\":");
        text.put_slice(params.as_bytes());
    }
    text.put_slice(b"}");
}

fn put_number(text: &mut BytesMut, number: u64) {
    use std::fmt::Write as _;
    // Writing to memory cannot fail.
    let _ = write!(text, "{number}");
}
