//! S13–S15, S17, S24: servers that say odd things.

use linetender::CallErrorKind;

use crate::kit::bad;
use crate::look::{eventually, in_time, speaks};

#[tokio::test]
async fn s13_noise_is_skipped_and_counted() {
    let bad = bad(&["--noise"]);
    bad.works().await;
    let answer = bad.call("noise", r#"{"nonce":"a"}"#).await.unwrap();
    assert!(answer.result().contains("nonce"), "a message glued to log text counts");
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

#[tokio::test]
async fn s15_with_several_in_flight_all_are_unknown_with_the_message() {
    let bad = bad(&[]);
    bad.works().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let line = bad.line.clone();
    let other = tokio::task::spawn(async move { line.call_tool("hang", r#"{"nonce":"o"}"#).await });
    eventually(|| bad.book.runs().contains_key("o").then_some(())).await;
    let one = bad.call("no_id", r#"{"nonce":"a"}"#).await.unwrap_err();
    for error in [one, in_time(other).await.unwrap().unwrap_err()] {
        speaks(&error);
        assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"));
        assert!(error.cause.contains("parse error"), "{error}");
    }
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
    let other = tokio::task::spawn(async move { line.call_tool("hang", r#"{"nonce":"o"}"#).await });
    eventually(|| bad.book.runs().contains_key("o").then_some(())).await;
    let line = bad.line.clone();
    let given_up = tokio::task::spawn(async move { line.call_tool("hang", r#"{"nonce":"g"}"#).await });
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
    assert_eq!(bad.call("null", "{}").await.unwrap().result(), "null");
    let glued = bad.call("glued", r#"{"nonce":"a"}"#).await.unwrap();
    assert!(glued.result().contains("nonce"));
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}
