//! What a browser has to be told before a page of another origin may read an answer: only pages that the guard lets in hear it.
//!
//! Tokens travel in `Authorization` and never in cookies, so no answer allows credentials.
// Fetch, "CORS protocol": https://fetch.spec.whatwg.org/#http-cors-protocol

use axum::body::Body;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

/// What agents send.
const HEADERS: &str = "content-type, accept, authorization, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, idempotency-key";

/// How other headers of the protocol begin: a tool's parameters may have some of their own.
const OF_MCP: &str = "mcp-";

/// How many of those one request may ask for.
const MORE: usize = 64;

/// What a page may read beside the body.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("mcp-session-id, mcp-protocol-version, www-authenticate, retry-after");

/// Seconds for which a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The answer to a browser that asks what a page may send, if this is such a question and its origin is `allowed`. It comes
/// before authentication: the question carries no credentials.
pub(super) fn preflight<B>(request: &Request<B>, allowed: Option<&HeaderValue>) -> Option<Response> {
    let asked = request.headers();
    if allowed.is_none()
        || request.method() != Method::OPTIONS
        || !asked.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(asked));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(response)
}

/// Lets the page that asked read this answer.
pub(super) fn mark(response: &mut Response, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from(ORIGIN));
}

/// What agents send, and what of the protocol's this request asks for.
fn allowed_headers(asked: &HeaderMap) -> HeaderValue {
    let mut all = HEADERS.to_owned();
    let values = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).into_iter();
    let names = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let known: Vec<_> = HEADERS.split(", ").collect();
    let more = names
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .filter(|name| name.as_str().starts_with(OF_MCP) && !known.contains(&name.as_str()));
    for name in more.take(MORE) {
        all.push_str(", ");
        all.push_str(name.as_str());
    }
    HeaderValue::try_from(all).unwrap_or(HeaderValue::from_static(HEADERS))
}

#[cfg(test)]
mod tests {
    use super::{HEADERS, MORE, preflight};
    use http::{HeaderValue, Method, Request};

    const PAGE: HeaderValue = HeaderValue::from_static("https://app.example.com");

    fn question(headers: &str) -> Request<()> {
        Request::options("/mcp")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", headers)
            .body(())
            .unwrap()
    }

    fn allowed(headers: &str) -> String {
        let answer = preflight(&question(headers), Some(&PAGE)).unwrap();
        answer.headers()["access-control-allow-headers"].to_str().unwrap().to_owned()
    }

    #[test]
    fn a_page_may_send_what_agents_send_and_what_begins_with_mcp() {
        assert_eq!(allowed("content-type, x-evil, cookie, Mcp-Name"), HEADERS);
        assert_eq!(allowed("Mcp-Param-Region,mcp-x, mcp bad"), format!("{HEADERS}, mcp-param-region, mcp-x"));
        let many: Vec<_> = (0..2 * MORE).map(|number| format!("mcp-{number}")).collect();
        assert_eq!(allowed(&many.join(",")).split(", ").count(), HEADERS.split(", ").count() + MORE);
    }

    #[test]
    fn only_a_question_of_a_page_that_is_allowed_is_answered() {
        assert!(preflight(&question(""), None).is_none());
        let mut post = question("");
        *post.method_mut() = Method::POST;
        assert!(preflight(&post, Some(&PAGE)).is_none());
        let mut options = question("");
        options.headers_mut().remove("access-control-request-method");
        assert!(preflight(&options, Some(&PAGE)).is_none());
    }
}
