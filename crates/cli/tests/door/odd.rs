//! S13–S15, S21, S24: servers that say odd things, and callers that go away.

use linetender::Era;
use serde_json::{Value, json};

use crate::kit::{Door, in_both_eras};
use crate::look::eventually;
use crate::told::told;

#[test]
fn s13_noise_on_stdout_is_skipped_and_never_reaches_the_agent() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--noise"]);
        door.works();
        let answer = door.answers("a", "noise", json!({}));
        assert_eq!(answer["result"]["nonce"], "a", "a message glued to log text counts: {answer}");
        for number in 0..20 {
            door.answers(&format!("n{number}"), "noise", json!({}));
        }
        door.works();
        assert_eq!(door.generations(), 1, "a line that still answers is never parked for it");
        door.closes();
    });
}

#[test]
fn s14_wrong_double_and_quoted_ids_disturb_nobody() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        door.begin("other", "sleep", json!({ "ms": 300 }));
        let answer = door.answers("twice", "twice", json!({}));
        assert!(answer["result"]["second"].is_null(), "the first answer wins: {answer}");
        door.answers("wrong_id", "wrong_id", json!({}));
        door.answers("string_id", "string_id", json!({}));
        assert!(told(&door.answer("other")).is_ok());
        door.works();
        assert_eq!(door.generations(), 1);
        door.closes();
    });
}

#[test]
fn s15_an_error_without_an_id_answers_the_one_call_in_flight() {
    let mut door = Door::bad(Era::Legacy, &[]);
    door.works();
    let answer = door.call("a", "no_id", json!({}));
    assert!(answer.to_string().contains("parse error"), "{answer}");
    assert!(crate::told::assert_full(&answer).answered(), "{answer}");
    door.works();
    assert_eq!(door.generations(), 1);
    door.closes();
}

#[test]
fn e04_with_several_in_flight_an_error_without_an_id_ends_only_the_call_that_is_left() {
    let mut door = Door::bad(Era::Legacy, &[]);
    door.works();
    door.begin("other", "sleep", json!({ "ms": 1000 }));
    door.running("other");
    door.begin("a", "no_id", json!({}));
    let other = door.answer("other");
    assert!(other.get("error").is_none() && other["result"]["isError"] != true, "{other}");
    let failure = door.failed("a");
    assert_eq!(failure.delivery, "unknown", "{failure}");
    assert!(failure.cause.contains("parse error"), "{failure}");
    door.works();
    assert_eq!(door.generations(), 1, "the line lives on");
    door.closes();
}

#[test]
fn s15_an_error_without_an_id_after_a_cancellation_answers_nobody() {
    // It may be about the cancellation, which was the last thing written: the call in flight is not to blame.
    let mut door = Door::bad(Era::Legacy, &["--scolds"]);
    door.works();
    door.begin("other", "hang", json!({}));
    door.begin("given up", "hang", json!({}));
    door.running("other");
    door.running("given up");
    door.cancel("given up");
    let failure = door.failed("other");
    assert_eq!(failure.delivery, "unknown", "{failure}");
    door.works();
    door.closes();
}

#[test]
fn s21_a_call_that_is_taken_back_is_cancelled_at_the_server_and_never_answered() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        door.begin("a", "sleep", json!({ "ms": 300 }));
        door.running("a");
        door.cancel("a");
        let told = |name: &String| name.starts_with("cancelled:");
        eventually("a cancellation", || door.book.runs().keys().any(told).then_some(()));
        // Longer than the other: its late answer would have come by now.
        door.answers("after", "sleep", json!({ "ms": 500 }));
        door.works();
        assert_eq!(door.generations(), 1);
        door.closes();
    });
}

#[test]
fn s24_neither_null_and_glued_answers_end_their_calls() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        let failure = door.fails("neither", "neither", json!({}));
        assert!(failure.cause.contains("neither a result nor an error") && failure.answered(), "{failure}");
        let answer = door.answers("null", "null", json!({}));
        assert_eq!(answer.get("result"), Some(&Value::Null), "it passes unchanged");
        let answer = door.answers("glued", "glued", json!({}));
        assert_eq!(answer["result"]["nonce"], "glued");
        door.works();
        assert_eq!(door.generations(), 1);
        door.closes();
    });
}
