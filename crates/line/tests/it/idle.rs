//! A server that nobody uses is stopped, and the next call starts it.

use std::time::Duration;

use linetender::{Kind, Line, Options, Raw, State};

use crate::kit::bad_with;
use crate::look::{eventually, in_time, lives};

const SOON: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_server_that_nobody_uses_is_stopped_and_the_next_call_starts_it() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    let pid = bad.up().await;
    bad.works().await;
    let tools = |line: &Line| line.catalogues().borrow().list(Kind::Tools).count();
    let (budget, listed) = (bad.line.status().budget, tools(&bad.line));
    assert!(listed > 0);
    let stopped = bad.until(State::Idle).await;
    assert!(!lives(pid), "nothing of it is left");
    assert_eq!(stopped.budget, budget, "planned: not charged");
    assert_eq!(tools(&bad.line), listed, "its lists stay");
    bad.works().await;
    assert_eq!(bad.line.status().generation, 2);
    // And so on.
    bad.until(State::Idle).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 3);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_under_way_is_use_however_long_it_takes() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    bad.up().await;
    let slow = bad.call("sleep", r#"{"nonce":"slow","ms":1500}"#).await;
    assert!(slow.is_ok(), "{slow:?}");
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn whoever_wants_to_hear_of_a_resource_uses_its_server() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    let pid = bad.up().await;
    let wish = bad.line.request("resources/subscribe", Raw(r#"{"uri":"test://one"}"#), Options::default());
    in_time(wish).await.unwrap();
    tokio::time::sleep(SOON * 4).await;
    assert!(lives(pid), "it is watched");
    in_time(bad.line.request("resources/unsubscribe", Raw(r#"{"uri":"test://one"}"#), Options::default()))
        .await
        .unwrap();
    eventually(|| (!lives(pid)).then_some(())).await;
    bad.leaves_nothing().await;
}
