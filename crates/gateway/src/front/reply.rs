//! Responses that are whole from the beginning.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use linetender::Code;
use linetender::session::Text;

use super::body;
use super::quota::Over;
use super::sent::Counted;
use crate::failed::{Failed, Full};
use crate::listing::Endpoint;
use crate::mux::NoAgent;

/// JSON.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response {
    of(status, Body::from(text.into()))
}

/// An answer.
pub(super) fn answer(status: StatusCode, text: Text) -> Response {
    match text {
        Text::Whole(text) => json(status, text.into_text()),
        Text::Pieces { pieces, .. } | Text::Parts(pieces) => of(status, body::pieces(pieces)),
    }
}

fn of(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What a response says that no server was asked, for whoever counts such requests: the code of the error.
#[derive(Clone, Copy)]
struct Refused(i32);

/// A request that is not taken.
pub(super) fn refused(status: StatusCode, id: &str, failed: &Failed) -> Response {
    let mut response = json(status, failed.error(id));
    response.extensions_mut().insert(Refused(failed.code()));
    response
}

/// The code of a response that says so.
pub(super) fn code_of_refused(response: &Response) -> Option<i32> {
    response.extensions().get().map(|Refused(code)| *code)
}

/// The same response to a request that was counted already.
pub(super) fn counted(mut response: Response) -> Response {
    response.extensions_mut().remove::<Refused>();
    response
}

/// A request that cannot be taken as it is.
pub(super) fn error(status: StatusCode, id: &str, code: i32, words: &str) -> Response {
    refused(status, id, &Failed::refused(code, words, "never"))
}

/// Taken note of.
pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// There is no room now.
pub(super) fn busy(id: &str, full: Full, endpoint: &Endpoint) -> Response {
    let failed = Failed::full(full).of(endpoint.server());
    let mut response = refused(StatusCode::SERVICE_UNAVAILABLE, id, &failed);
    if let Some(seconds) = full.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Its principal asks too much at once.
pub(super) fn over_quota(over: Over) -> Response {
    let (words, after) = match over {
        Over::AtOnce => {
            ("too many requests of this principal are in progress (gateway.principal_requests)", 1)
        }
        Over::Rate(wait) => {
            ("too many requests of this principal (gateway.principal_rate)", wait.as_secs() + 1)
        }
    };
    let failed = Failed::refused(Code::Overloaded.number(), words, "later").with("retryAfter", after);
    let mut response = json(StatusCode::TOO_MANY_REQUESTS, failed.error("null"));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after));
    response
}

/// What it was handed to is over.
pub(super) fn ended(id: &str, failed: Failed, endpoint: &Endpoint) -> Response {
    json(StatusCode::INTERNAL_SERVER_ERROR, failed.of(endpoint.server()).error(id))
}

/// Nobody can be an agent here, or not now.
pub(super) fn no_agent(id: &str, why: NoAgent, endpoint: &Endpoint) -> Response {
    match why {
        NoAgent::Nowhere => refused(StatusCode::NOT_FOUND, id, &Failed::nowhere().of(endpoint.server())),
        NoAgent::Full => busy(id, Full::Lines, endpoint),
    }
}

/// There is nothing for this method here.
pub(super) fn not_allowed(words: &str) -> Response {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "null", -32600, words);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

/// An event stream.
pub(super) fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    response.extensions_mut().insert(Counted);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Some proxies keep a response until it is whole, unless they are told.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
