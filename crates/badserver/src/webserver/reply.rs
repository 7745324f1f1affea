//! Answers, and the words in them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::Out;

pub(super) type Answer = Response<Out>;
/// An answer to a request that was not let in.
pub(super) type Refused = Box<Answer>;

pub(super) fn answer(status: u16, kind: &'static str, body: Out) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn text(status: u16, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain", Out::whole(text))
}

pub(super) fn json(status: u16, message: &Value) -> Answer {
    answer(status, "application/json", Out::whole(message.to_string()))
}

pub(super) fn events(body: Out) -> Answer {
    answer(200, "text/event-stream", body)
}

/// 202, as for a notification.
pub(super) fn accepted() -> Answer {
    let mut answer = Response::new(Out::whole(Bytes::new()));
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer
}

pub(super) fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// An event with one line of data, and perhaps an id.
pub(super) fn event(id: Option<&str>, data: &str) -> String {
    id.map_or_else(|| format!("data: {data}\n\n"), |id| format!("id: {id}\ndata: {data}\n\n"))
}

/// The hint how long to wait before a stream is opened again.
pub(super) fn retry(ms: Option<u64>) -> String {
    ms.map(|ms| format!("retry: {ms}\n\n")).unwrap_or_default()
}
