//! Web pages: what their browser is told before they may call, and what they may read.

use crate::kit::{Answer, House, text};
use http::{HeaderMap, Method};
use serde_json::json;

const PAGES: &str = r#"
[gateway]
allowed_origins = ["https://app.example.com", "http://localhost:*"]
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
"#;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// What of a response is for browsers.
fn told(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_ours = |name: &str| name.starts_with("access-control-") || name == "vary";
    let mut told: Vec<_> = headers
        .iter()
        .filter(|(name, _)| is_ours(name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    told.sort();
    told
}

/// What every answer to a page says.
fn readable(origin: &str) -> Vec<(String, String)> {
    let exposed = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";
    [("access-control-allow-origin", origin), ("access-control-expose-headers", exposed), ("vary", "origin")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

async fn asks(house: &House, origin: &str, wanted: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", wanted),
    ];
    house.send(Method::OPTIONS, "/mcp", &headers, String::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_is_told_what_a_page_that_is_allowed_may_send() {
    let house = House::up(PAGES).await;
    for origin in ["https://app.example.com", "http://localhost:6274", "HTTPS://App.Example.com"] {
        let answer = asks(&house, origin, "content-type,mcp-param-x,x-other").await;
        assert_eq!(answer.status, 204);
        let headers = &answer.headers;
        assert_eq!(headers["access-control-allow-origin"], origin);
        assert_eq!(headers["access-control-allow-methods"], "GET, POST, DELETE, OPTIONS");
        assert_eq!(headers["access-control-max-age"], "600");
        assert_eq!(headers["vary"], "origin");
        let allowed = headers["access-control-allow-headers"].to_str().unwrap();
        let names: Vec<_> = allowed.split(", ").collect();
        assert!(names.contains(&"authorization") && names.contains(&"mcp-param-x"), "{allowed}");
        assert!(!names.contains(&"x-other") && !names.contains(&"*"), "{allowed}");
        assert!(!headers.contains_key("access-control-allow-credentials"));
        assert!(!headers.contains_key("connection"), "the browser's next request comes on this connection");
    }
    for origin in
        ["https://evil.example.com", "null", "http://app.example.com", "https://app.example.com:8443"]
    {
        let refused = asks(&house, origin, "content-type").await;
        assert_eq!((refused.status.as_u16(), told(&refused.headers)), (403, Vec::new()), "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_allowed_may_read_every_answer_and_others_none() {
    let house = House::up(PAGES).await;
    let page = "https://app.example.com";
    let hello = house.send(Method::POST, "/mcp", &[("origin", page)], HELLO.to_owned()).await;
    assert_eq!((hello.status.as_u16(), told(&hello.headers)), (200, readable(page)));
    let session = hello.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "bad__echo", "arguments": { "text": "hi" } } });
    let headers = [("origin", page), ("mcp-session-id", session.as_str())];
    let called = house.send(Method::POST, "/mcp", &headers, call.to_string()).await;
    assert_eq!(told(&called.headers), readable(page), "also of a stream");
    assert!(text(&called.last().await).contains("hi"));
    for (method, path, body, is) in [
        (Method::POST, "/mcp", "{", 400),
        (Method::PUT, "/mcp", "", 405),
        (Method::OPTIONS, "/mcp", "", 405),
        (Method::GET, "/nowhere", "", 404),
        (Method::GET, "/readyz", "", 200),
    ] {
        let what = format!("{method} {path}");
        let failed = house.send(method, path, &[("origin", page)], body.to_owned()).await;
        assert_eq!((failed.status.as_u16(), told(&failed.headers)), (is, readable(page)), "{what}");
    }
    let evil = house.send(Method::POST, "/mcp", &[("origin", "https://evil.com")], HELLO.to_owned()).await;
    assert_eq!((evil.status.as_u16(), told(&evil.headers)), (403, Vec::new()));
    let agent = house.send(Method::POST, "/mcp", &[], HELLO.to_owned()).await;
    assert_eq!((agent.status.as_u16(), told(&agent.headers)), (200, Vec::new()), "no page, nothing to tell");
}
