//! A row per fault of the catalogue, and per line of what was measured in the field.

mod beside_calls;
mod under_our_id;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use linetender_core::{LossReport, ServerRefusal};

use super::{Call, Exchange, Line, Meaning, Purpose, judge};
use crate::frame::Limits;
use crate::handshake::Era;

const ASK: Purpose = Purpose::Request { id: 7 };
const INIT: Purpose = Purpose::Initialize { id: 7 };
const DISCOVER: Purpose = Purpose::Discover { id: 7 };
const PING: Purpose = Purpose::Ping { id: 7 };

/// In which era, and with a session or without.
#[derive(Clone, Copy, Debug)]
enum On {
    Modern,
    Legacy,
    Session,
}
use On::{Legacy, Modern, Session};

const JSON: &str = "content-type: application/json";
const SSE: &str = "content-type: text/event-stream";
const HTML: &str = "content-type: text/html; charset=utf-8";
const CHALLENGE: &str = r#"www-authenticate: Bearer resource_metadata="https://h/x""#;

const SCOPE: &str = r#"www-authenticate: Bearer error="insufficient_scope", scope="write""#;

fn meaning(on: On, asked: Purpose, status: u16, headers: &[&str], body: &str) -> Meaning {
    let (era, session) = match on {
        Modern => (Era::Modern, false),
        Legacy => (Era::Legacy, false),
        Session => (Era::Legacy, true),
    };
    let headers: HeaderMap = headers
        .iter()
        .map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        })
        .collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let limits = Limits { length: 4096, depth: 16 };
    judge(&Exchange { era, session, asked, status, headers: &headers, body: &body, limits })
}

fn call(call: &Call) -> String {
    match call {
        Call::Answer(frame) => {
            let text = String::from_utf8(frame.text().to_vec()).unwrap();
            assert_eq!(frame.response_number(), Some(7), "{text}");
            format!("answer {}", std::str::from_utf8(&frame.payload().unwrap()).unwrap())
        }
        Call::Stream => "stream".into(),
        Call::Accepted => "accepted".into(),
        Call::OutOfStep => "out of step".into(),
        Call::Unusable(_) => "unusable".into(),
        Call::Lost { report: LossReport::Nothing, .. } => "lost".into(),
        Call::Lost { report: LossReport::Refused(refusal), .. } => format!("refused {refusal:?}"),
        Call::Lost { report, .. } => panic!("{report:?}"),
    }
}

fn line(line: &Line) -> String {
    match line {
        Line::Fine => "fine".into(),
        Line::Trouble { .. } => "trouble".into(),
        Line::SessionGone => "gone".into(),
        Line::SessionDoubted { refusal: Some(_) } => "ping proves".into(),
        Line::SessionDoubted { refusal: None } => "ping".into(),
        Line::Throttled { after, .. } => format!("later {:?}", after.map(|after| after.as_secs())),
        Line::WantsAuth { challenge, .. } if challenge.is_empty() => "auth".into(),
        Line::WantsAuth { .. } => "auth by challenge".into(),
        Line::WantsMore { .. } => "more".into(),
        Line::NotMcp { .. } => "not mcp".into(),
        Line::BadSession { .. } => "bad session".into(),
        Line::OtherEra => "other era".into(),
        Line::OtherVersion { supported } => format!("versions {supported:?}"),
        Line::HeaderMismatch => "headers".into(),
    }
}

type Row<'a> = (&'a str, On, Purpose, u16, &'a [&'a str], &'a str, &'a str, &'a str);

fn check(rows: &[Row<'_>]) {
    for &(name, on, asked, status, headers, body, expected_call, expected_line) in rows {
        let meaning = meaning(on, asked, status, headers, body);
        let got = (call(&meaning.call), line(&meaning.line));
        assert_eq!(
            got,
            (expected_call.to_owned(), expected_line.to_owned()),
            "{name} ({on:?}, {asked:?}, {status})"
        );
    }
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
const WRONG_ID: &str = r#"{"jsonrpc":"2.0","id":"server-error","result":{}}"#;
const ANOTHER: &str = r#"{"jsonrpc":"2.0","id":6,"result":{"of":"another"}}"#;
const ANOTHERS_ERROR: &str = r#"{"jsonrpc":"2.0","id":"6","error":{"code":-32001}}"#;
const BATCH: &str =
    r#"[{"jsonrpc":"2.0","id":6,"result":{"of":"another"}},{"jsonrpc":"2.0","id":7,"result":{}}]"#;
const GARBLED: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}"#;
const OWN_CODE: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32020}}"#;
const MARKED: &str = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
const NOTIFIED: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n\
    data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";
const ERROR: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603}}"#;
const IDLESS: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session ID"},"id":null}"#;
const NO_METHOD: &str = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601}}"#;
const PAGE: &str = "<!doctype html><title>Sign in</title>";

#[test]
fn answers_are_answers() {
    let idless = r#"answer {"code":-32000,"message":"No valid session ID"}"#;
    check(&[
        ("200", Modern, ASK, 200, &[JSON], RESULT, "answer {}", "fine"),
        ("200 without a type", Modern, ASK, 200, &[], RESULT, "answer {}", "fine"),
        ("200 in a session", Session, ASK, 200, &[JSON], RESULT, "answer {}", "fine"),
        ("id as a string", Modern, ASK, 200, &[JSON], r#"{"id":"7","result":1}"#, "answer 1", "fine"),
        ("a batch", Legacy, ASK, 200, &[JSON], r#"[{"method":"x"},{"id":7,"result":1}]"#, "answer 1", "fine"),
        ("events", Modern, ASK, 200, &[SSE], "", "stream", "fine"),
        ("l2: wrong id", Modern, ASK, 200, &[JSON], WRONG_ID, "answer {}", "fine"),
        ("the answer to another", Modern, ASK, 200, &[JSON], ANOTHER, "out of step", "fine"),
        ("the answer to another, 429", Session, ASK, 429, &[JSON], ANOTHER, "out of step", "fine"),
        ("the error of another, 404", Session, ASK, 404, &[JSON], ANOTHERS_ERROR, "out of step", "fine"),
        ("another's among ours", Modern, ASK, 200, &[JSON], BATCH, "answer {}", "fine"),
        ("not JSON, under our id", Session, ASK, 200, &[JSON], GARBLED, "unusable", "fine"),
        ("not JSON, under our id, 429", Session, ASK, 429, &[JSON], GARBLED, "unusable", "fine"),
        (
            "-32020 of a legacy server",
            Session,
            ASK,
            400,
            &[JSON],
            OWN_CODE,
            r#"answer {"code":-32020}"#,
            "ping",
        ),
        ("a mark before it, 429", Session, ASK, 429, &[JSON], MARKED, "answer {}", "fine"),
        ("events before it, 429", Session, ASK, 429, &[SSE], NOTIFIED, "answer {}", "fine"),
        ("events before it, 405", Session, ASK, 405, &[SSE], NOTIFIED, "answer {}", "fine"),
        ("d4: error without id", Legacy, ASK, 200, &[JSON], IDLESS, idless, "fine"),
        (
            "j2, H12: 500 with our id",
            Modern,
            ASK,
            500,
            &[JSON],
            ERROR,
            r#"answer {"code":-32603}"#,
            "trouble",
        ),
        ("503 with our id", Legacy, ASK, 503, &[JSON], ERROR, r#"answer {"code":-32603}"#, "trouble"),
        ("404 + -32601, modern", Modern, ASK, 404, &[JSON], NO_METHOD, r#"answer {"code":-32601}"#, "fine"),
        ("404 + -32601, legacy", Legacy, ASK, 404, &[JSON], NO_METHOD, r#"answer {"code":-32601}"#, "fine"),
        (
            "400 + -32602, modern",
            Modern,
            ASK,
            400,
            &[JSON],
            r#"{"id":7,"error":{"code":-32602}}"#,
            r#"answer {"code":-32602}"#,
            "fine",
        ),
        (
            "an error as an event",
            Legacy,
            ASK,
            400,
            &[SSE],
            "data: {\"error\":{\"code\":1}}\n\n",
            r#"answer {"code":1}"#,
            "fine",
        ),
        ("409 with an error", Modern, ASK, 409, &[JSON], ERROR, r#"answer {"code":-32603}"#, "trouble"),
        ("202 to a notification", Session, Purpose::Notification, 202, &[], "", "accepted", "fine"),
        ("200 to a notification", Modern, Purpose::Notification, 200, &[JSON], "{}", "accepted", "fine"),
    ]);
}

#[test]
fn what_is_no_answer_never_hangs_a_call() {
    check(&[
        ("l2: 202 to a request", Modern, ASK, 202, &[], "", "unusable", "fine"),
        ("204 to a request", Modern, ASK, 204, &[], "", "unusable", "trouble"),
        ("empty 200", Modern, ASK, 200, &[JSON], "", "unusable", "trouble"),
        ("l: JSON, not RPC", Modern, ASK, 200, &[JSON], "{\"ok\":true}", "unusable", "trouble"),
        ("S24: neither", Modern, ASK, 200, &[JSON], r#"{"id":7}"#, "unusable", "trouble"),
        ("its own request", Modern, ASK, 200, &[JSON], r#"{"id":1,"method":"x"}"#, "unusable", "trouble"),
        (
            "two strangers",
            Modern,
            ASK,
            200,
            &[JSON],
            r#"[{"id":1,"result":1},{"id":2,"result":2}]"#,
            "unusable",
            "trouble",
        ),
        ("too deep", Modern, ASK, 200, &[JSON], &"[".repeat(100), "unusable", "trouble"),
        ("H12: 500", Modern, ASK, 500, &[], "oops", "lost", "trouble"),
        ("H12: 500, error without id", Modern, ASK, 500, &[JSON], IDLESS, "lost", "trouble"),
        ("H12: 500, wrong id", Modern, ASK, 500, &[JSON], WRONG_ID, "lost", "trouble"),
        ("j: 502 html", Session, ASK, 502, &[HTML], PAGE, "lost", "trouble"),
        ("H12: 504", Modern, ASK, 504, &[HTML], PAGE, "lost", "trouble"),
        ("408", Modern, ASK, 408, &[], "", "lost", "trouble"),
        ("k: 302 without a place", Modern, ASK, 302, &[], "", "lost", "trouble"),
        ("600", Modern, ASK, 600, &[], "", "lost", "trouble"),
    ]);
}

#[test]
fn a_session_that_may_be_lost_is_pinged() {
    let unknown = r#"{"id":7,"error":{"code":-32600}}"#;
    let ours = r#"answer {"code":-32600}"#;
    check(&[
        ("d, H08, H09: 404", Session, ASK, 404, &[], "", "lost", "ping proves"),
        (
            "404 with a body",
            Session,
            ASK,
            404,
            &[JSON],
            r#"{"id":null,"error":{"code":-32001}}"#,
            "lost",
            "ping proves",
        ),
        ("404 html", Session, ASK, 404, &[HTML], PAGE, "lost", "ping proves"),
        ("404 to a ping", Session, PING, 404, &[], "", "lost", "ping proves"),
        ("404 to a notification", Session, Purpose::Notification, 404, &[], "", "lost", "ping proves"),
        (
            "404 + -32601 under our id",
            Session,
            ASK,
            404,
            &[JSON],
            NO_METHOD,
            r#"answer {"code":-32601}"#,
            "fine",
        ),
        ("c, d4: 400 without id", Session, ASK, 400, &[JSON], IDLESS, "lost", "ping proves"),
        ("400 text", Session, ASK, 400, &[], "Invalid session", "lost", "ping proves"),
        (
            "400 to a notification",
            Session,
            Purpose::Notification,
            400,
            &[JSON],
            IDLESS,
            "lost",
            "ping proves",
        ),
        ("400 under our id", Session, ASK, 400, &[JSON], ERROR, r#"answer {"code":-32603}"#, "ping"),
        (
            "400 without such a method",
            Session,
            PING,
            400,
            &[JSON],
            NO_METHOD,
            r#"answer {"code":-32601}"#,
            "fine",
        ),
        ("400 -32600 under our id", Session, ASK, 400, &[JSON], unknown, ours, "ping"),
        ("200 -32600", Session, ASK, 200, &[JSON], unknown, ours, "ping"),
        (
            "200 -32001",
            Session,
            ASK,
            200,
            &[JSON],
            r#"{"error":{"code":-32001}}"#,
            r#"answer {"code":-32001}"#,
            "ping",
        ),
        (
            "200 +32600",
            Session,
            ASK,
            200,
            &[JSON],
            r#"{"error":{"code":32600}}"#,
            r#"answer {"code":32600}"#,
            "ping",
        ),
        (
            "200 -32015",
            Session,
            ASK,
            200,
            &[JSON],
            r#"{"error":{"code":-32015}}"#,
            r#"answer {"code":-32015}"#,
            "ping",
        ),
        ("200 -32600 without a session", Legacy, ASK, 200, &[JSON], unknown, ours, "fine"),
        ("i2: 401 plain", Session, ASK, 401, &[], "", "lost", "ping"),
        ("503 plain", Session, ASK, 503, &[], "", "lost", "ping"),
        ("404 without a session", Legacy, ASK, 404, &[], "", "lost", "trouble"),
    ]);
}

#[test]
fn what_a_server_refuses_is_its_word() {
    let mismatch = r#"{"id":7,"error":{"code":-32020}}"#;
    let capability = r#"{"id":7,"error":{"code":-32021}}"#;
    let version = r#"{"id":7,"error":{"code":-32022,"data":{"supported":["2027-01-01",7,"a"]}}}"#;
    check(&[
        ("H10: -32020", Modern, ASK, 400, &[JSON], mismatch, "refused HeaderMismatch", "headers"),
        ("-32021", Modern, ASK, 400, &[JSON], capability, "refused MissingCapability", "fine"),
        (
            "H10: -32022",
            Modern,
            ASK,
            400,
            &[JSON],
            version,
            "refused UnsupportedVersion",
            r#"versions ["2027-01-01", "a"]"#,
        ),
        ("405", Session, ASK, 405, &[], "", "refused MethodNotAllowed", "trouble"),
        ("413", Modern, ASK, 413, &[HTML], PAGE, "refused TooLarge", "fine"),
        ("H11, j: 429", Modern, ASK, 429, &["retry-after: 7"], "", "refused RateLimited", "later Some(7)"),
        ("429 plain", Session, ASK, 429, &[], "", "refused RateLimited", "later None"),
        ("H11, j: 503", Session, ASK, 503, &["retry-after: 3"], "", "lost", "later Some(3)"),
        ("503 plain, modern", Modern, ASK, 503, &[], "", "lost", "trouble"),
        ("i: 401 with a challenge", Session, ASK, 401, &[CHALLENGE], "", "refused Auth", "auth by challenge"),
        ("401 plain", Modern, ASK, 401, &[], "", "lost", "auth"),
        ("401 to initialize", Legacy, INIT, 401, &[], "", "lost", "auth"),
        ("401 to initialize with an error", Legacy, INIT, 401, &[JSON], ERROR, "lost", "auth"),
        ("403 with a challenge", Modern, ASK, 403, &[CHALLENGE], "", "lost", "more"),
        ("403 that wants a scope", Modern, ASK, 403, &[SCOPE], "", "refused Auth", "more"),
        ("i3: 403 to a handshake", Modern, DISCOVER, 403, &[CHALLENGE], "", "lost", "auth by challenge"),
        ("403 plain", Modern, ASK, 403, &[], "", "lost", "trouble"),
        ("403 with an error", Modern, ASK, 403, &[JSON], ERROR, r#"answer {"code":-32603}"#, "trouble"),
    ]);
}

#[test]
fn a_session_is_taken_from_initialize_only_and_only_if_it_can_be_sent_back() {
    let with = |asked, id: &str| {
        meaning(Legacy, asked, 200, &[JSON, &format!("mcp-session-id: {id}")], RESULT).session
    };
    assert_eq!(with(INIT, "abc").unwrap().as_str(), "abc");
    assert_eq!(with(INIT, ""), None);
    assert_eq!(with(ASK, "abc"), None);
}

#[test]
fn h29_a_session_id_that_cannot_be_sent_back_is_what_the_handshake_fails_for() {
    let long = "x".repeat(9000);
    for (id, why) in [("a b", "visible ASCII"), (long.as_str(), "9000 bytes")] {
        for (kind, body) in [(JSON, RESULT), (SSE, "")] {
            let Meaning { call, line, session } =
                meaning(Legacy, INIT, 200, &[kind, &format!("mcp-session-id: {id}")], body);
            let seen = line.seen().unwrap();
            assert!(seen.to_string().contains(why) && seen.name() == "bad-session", "{seen}");
            assert!(matches!(call, Call::Lost { .. }) && session.is_none(), "{call:?}");
        }
    }
}

#[test]
fn a_refusal_keeps_what_the_server_said_and_shows_no_secret() {
    let body = r#"{"id":null,"error":{"code":-32021,"message":"need token sk-1234567890abcdef"}}"#;
    let Call::Lost { report, words, said } = meaning(Modern, ASK, 400, &[JSON], body).call else { panic!() };
    assert_eq!(report, LossReport::Refused(ServerRefusal::MissingCapability));
    assert_eq!(words.as_str(), "HTTP 400: need token [redacted] (-32021)");
    assert_eq!(said.unwrap().response_number(), Some(7));
    let meaning = meaning(Session, ASK, 502, &[HTML], PAGE);
    let seen = meaning.line.seen().unwrap();
    assert_eq!(seen.to_string(), format!("the server returned HTTP 502: {PAGE}"));
}
