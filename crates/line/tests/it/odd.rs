//! S13–S15, S17, S24: servers that say odd things.

use std::time::Duration;

use linetender::{CallErrorKind, Deadline, Options, Raw};
#[cfg(unix)]
use linetender::{Era, Eras, Line, Server};

use crate::kit::{bad, bad_with};
#[cfg(unix)]
use crate::look::badserver;
use crate::look::{eventually, in_time, policy, speaks};

#[tokio::test]
async fn s13_noise_is_skipped_and_counted() {
    let bad = bad(&["--noise"]);
    bad.works().await;
    let answer = bad.call("noise", r#"{"nonce":"a"}"#).await.unwrap();
    assert!(answer.raw().contains("nonce"), "a message glued to log text counts");
    bad.works().await;
    let (odd, first) = bad.line.odd();
    assert!(odd >= 5, "{odd}");
    assert_eq!(first[0], "badserver is listening");
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s14_wrong_double_and_quoted_ids_disturb_nobody() {
    let bad = bad(&[]);
    for tool in ["wrong_id", "twice", "string_id"] {
        bad.call(tool, r#"{"nonce":"a"}"#).await.unwrap();
        bad.works().await;
    }
    assert!(bad.line.odd().0 >= 3);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s15_an_error_without_an_id_answers_the_one_call_in_flight() {
    let bad = bad(&[]);
    bad.works().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let error = bad.call("no_id", r#"{"nonce":"a"}"#).await.unwrap_err();
    speaks(&error);
    assert_eq!(error.kind, CallErrorKind::BadAnswer);
    assert!(error.cause.contains("parse error"), "{error}");
    bad.works().await;
    bad.leaves_nothing().await;
}

/// E04: directly, all others succeed.
#[tokio::test]
async fn e04_an_error_without_an_id_ends_only_the_call_that_is_left_without_an_answer() {
    let bad = bad(&[]);
    bad.works().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let line = bad.line.clone();
    let other =
        tokio::task::spawn(async move { line.call_tool("sleep", Raw(r#"{"ms":1000,"nonce":"o"}"#)).await });
    eventually(|| bad.book.runs().contains_key("o").then_some(())).await;
    let error = bad.call("no_id", r#"{"nonce":"a"}"#).await.unwrap_err();
    assert!(other.is_finished(), "it was answered before it was known which call the error is about");
    in_time(other).await.unwrap().unwrap();
    speaks(&error);
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"));
    assert!(error.cause.contains("parse error"), "{error}");
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1, "the line lives on");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s15_an_error_without_an_id_after_a_cancellation_answers_nobody() {
    // It may be about the cancellation, which was the last thing written: the call in flight is not to blame.
    let bad = bad(&["--scolds"]);
    bad.works().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let line = bad.line.clone();
    let other = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"o"}"#)).await });
    eventually(|| bad.book.runs().contains_key("o").then_some(())).await;
    let line = bad.line.clone();
    let given_up = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"g"}"#)).await });
    eventually(|| bad.book.runs().contains_key("g").then_some(())).await;
    given_up.abort();
    let error = in_time(other).await.unwrap().unwrap_err();
    speaks(&error);
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"), "{error}");
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s17_a_hundred_megabytes_on_stderr_block_nobody() {
    let bad = bad(&[]);
    bad.call("flood_stderr", r#"{"nonce":"a","bytes":100000000}"#).await.unwrap();
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s24_neither_null_and_glued_answers_end_their_calls() {
    let bad = bad(&[]);
    let error = bad.call("neither", "{}").await.unwrap_err();
    speaks(&error);
    assert!(error.cause.contains("neither a result nor an error"), "{error}");
    assert_eq!(bad.call("null", "{}").await.unwrap().raw(), "null");
    let glued = bad.call("glued", r#"{"nonce":"a"}"#).await.unwrap();
    assert!(glued.raw().contains("nonce"));
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

/// Answers lists, and ignores what it does not know. It writes down each ping.
#[cfg(unix)]
const PINGLESS: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "ping":
        open(sys.argv[1], "a").write("ping\n")
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}},
        "tools/list": {"tools": []},
    }.get(asked.get("method"))
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": float(asked["id"]), "result": result}), flush=True)
"#;

/// Its ids are doubles, too, as Gson writes them.
#[cfg(unix)]
#[tokio::test]
async fn a_server_that_ignores_pings_and_answers_lists_lives() {
    let dir = crate::kit::Dir::new();
    let pings = dir.file("pings");
    let argv = ["python3", "-c", PINGLESS, pings.to_str().unwrap()];
    let policy = policy(|settings| {
        settings.probe.keepalive = Duration::from_millis(100);
        settings.probe.timeout = Duration::from_secs(1);
    });
    let line = Line::open(
        Server::stdio("pingless", argv).reaper(badserver()).eras(Eras::Only(Era::Legacy)).policy(policy),
    );
    in_time(line.ready()).await.unwrap();
    let count = || std::fs::read_to_string(&pings).unwrap_or_default().lines().count();
    eventually(|| (count() >= 6).then_some(())).await;
    assert_eq!(line.status().generation, 1);
    in_time(line.close()).await;
}

#[tokio::test]
async fn a_call_waits_for_its_turn_behind_one_that_takes_long() {
    let policy = policy(|settings| {
        settings.limits.in_flight = 1;
        settings.call.limit = Duration::from_millis(200);
    });
    let bad = bad_with(&[], |server| server.policy(policy));
    bad.up().await;
    let agents = || Options::default().deadline(Deadline::Agent);
    let (first, second) = tokio::join!(
        bad.line.request("tools/call", Raw(r#"{"name":"sleep","arguments":{"ms":800}}"#), agents()),
        bad.line.request("tools/call", Raw(r#"{"name":"echo","arguments":{}}"#), agents()),
    );
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
}
