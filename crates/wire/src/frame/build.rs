//! From parts to bytes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use super::parse::known;
use super::{Frame, Kept, Outcome, Shape, Span};

/// A request. `params` is one value, raw.
pub fn request(id: u64, method: &str, params: Option<&str>) -> Frame {
    let mut text = String::with_capacity(64 + method.len() + params.map_or(0, str::len));
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    let begins = text.len();
    // Writing to memory cannot fail.
    let _ = write!(text, "{id}");
    let id = Span::of(begins, text.len());
    put_method(&mut text, method, params);
    let end = text.len() - 1;
    let params = params.map(|params| Span::of(end - params.len(), end));
    let shape = Shape::Request { id, method: known(method.into()), params };
    Frame { text: text.into(), shape, kept: Kept::default() }
}

/// A notification. `params` is raw JSON.
pub fn notification(method: &str, params: Option<&str>) -> Bytes {
    let mut text = String::with_capacity(48 + method.len() + params.map_or(0, str::len));
    text.push_str(r#"{"jsonrpc":"2.0""#);
    put_method(&mut text, method, params);
    text.into()
}

/// A result for somebody's id. Both are raw JSON.
pub fn reply(id: &str, result: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

/// The same as a frame that need not be read: the result in parts, which are raw JSON together.
pub fn response(id: &str, result: &[&str]) -> Frame {
    let long = result.iter().map(|part| part.len()).sum::<usize>();
    let mut text = String::with_capacity(48 + id.len() + long);
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    let begins = text.len();
    text.push_str(id);
    let id = Some(Span::of(begins, text.len()));
    text.push_str(r#","result":"#);
    let begins = text.len();
    for part in result {
        text.push_str(part);
    }
    let outcome = Some((Outcome::Result, Span::of(begins, text.len())));
    text.push('}');
    Frame { text: text.into(), shape: Shape::Response { id, outcome }, kept: Kept::default() }
}

/// An error for somebody's id. Both are raw JSON.
pub fn error_reply(id: &str, error: &str) -> Bytes {
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

/// The text on one line, as stdio and SSE demand. A raw line break can only stand between two tokens: inside a string
/// JSON has it escaped.
pub fn one_line(text: Bytes) -> Bytes {
    if !has_break(&text) {
        return text;
    }
    text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect()
}

pub(super) fn has_break(text: &[u8]) -> bool {
    memchr::memchr2(b'\r', b'\n', text).is_some()
}

/// `text` as a JSON string.
pub fn respell(text: &str) -> Cow<'_, str> {
    serde_json::to_string(text).map_or(Cow::Borrowed("\"\""), Cow::Owned)
}

pub(super) fn splice(text: &str, range: Range<usize>, with: &str) -> ByteString {
    let mut new = String::with_capacity(text.len() - range.len() + with.len());
    // The parser took the range from valid text, on character boundaries.
    new.push_str(text.get(..range.start).unwrap_or_default());
    new.push_str(with);
    new.push_str(text.get(range.end..).unwrap_or_default());
    new.into()
}

fn put_method(text: &mut String, method: &str, params: Option<&str>) {
    text.push_str(r#","method":"#);
    text.push_str(&respell(method));
    if let Some(params) = params {
        text.push_str(r#","params":"#);
        text.push_str(params);
    }
    text.push('}');
}
