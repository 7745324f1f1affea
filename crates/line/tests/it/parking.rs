//! An operator parks a server and wakes it.

use std::time::Duration;

use linetender::{CallErrorKind, Delivery, Event, NextTry, Raw, Refusal, Rig, State};

use crate::kit::{Dir, bad, bad_with, server};
use crate::look::{children, eventually, in_time, kill, lives, policy, speaks};

#[tokio::test]
async fn a_parked_server_is_gone_and_stays_so_until_it_is_woken() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    let budget = bad.line.status().budget;
    let mut events = bad.line.events();
    in_time(bad.line.park()).await;
    let parked = bad.line.status();
    assert!(!lives(pid), "nothing of it is left when park returns");
    assert_eq!((parked.state, parked.budget), (State::Parked, budget), "planned: not charged");
    assert!(parked.is_out_of_service());
    assert_eq!(parked.cause.as_ref().unwrap().text, "parked by an operator");
    assert_eq!(parked.next_try(), Some(NextTry::WhenWoken));

    // Calls, programs that wake idle lines, and a recycle leave it alone.
    let error = bad.call("echo", "{}").await.unwrap_err();
    speaks(&error);
    assert_eq!(error.kind, CallErrorKind::Refused(Refusal::OutOfService));
    assert!(matches!(error.delivery, Delivery::NotExecuted(_)) && error.next_try == NextTry::WhenWoken);
    let model = error.for_model();
    assert!(model.contains("parked by an operator") && model.contains("linetender wake bad"), "{model}");
    assert!(!model.contains("it can be sent again"), "a model must not try again and again: {model}");
    bad.line.wake();
    bad.line.recycle().await;
    assert!(bad.line.ready().await.is_err());
    assert_eq!((bad.line.status().generation, bad.line.pid()), (1, None));

    assert_eq!(in_time(bad.line.unpark()).await.unwrap(), 2);
    bad.works().await;
    let mut states = Vec::new();
    while let Some(Event::State(status)) = in_time(events.next()).await {
        states.push(status.state);
        if status.state == State::Up {
            break;
        }
    }
    assert_eq!(states.first(), Some(&State::Ending), "{states:?}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn calls_in_flight_are_answered_before_it_is_parked() {
    let bad = bad(&[]);
    bad.up().await;
    let line = bad.line.clone();
    let call =
        tokio::task::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"slow","ms":400}"#)).await });
    eventually(|| bad.book.runs().contains_key("slow").then_some(())).await;
    in_time(bad.line.park()).await;
    assert!(in_time(call).await.unwrap().is_ok(), "it had its time");
    assert_eq!(bad.line.status().state, State::Parked);
    assert_eq!(in_time(bad.line.redial()).await.unwrap(), 2, "a redial is an operator's word too");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_that_does_not_end_is_cut_when_the_drain_time_is_over() {
    let short = policy(|settings| settings.close.drain = Duration::from_millis(300));
    let bad = bad_with(&[], |server| server.policy(short));
    bad.up().await;
    let line = bad.line.clone();
    let call = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"h"}"#)).await });
    eventually(|| bad.book.runs().contains_key("h").then_some(())).await;
    in_time(bad.line.park()).await;
    let error = in_time(call).await.unwrap().unwrap_err();
    assert_eq!(error.delivery.name(), "unknown", "{error}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_that_dies_in_the_moment_in_which_it_is_parked_stays_parked() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    kill("-9", pid);
    in_time(bad.line.park()).await;
    let status = bad.line.status();
    assert_eq!((status.state, status.next_try()), (State::Parked, Some(NextTry::WhenWoken)));
    assert!(children().iter().all(|child| *child != pid));
    in_time(bad.line.unpark()).await.unwrap();
    bad.works().await;
    assert_eq!(in_time(bad.line.unpark()).await.unwrap(), bad.line.status().generation, "left alone");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_reload_of_an_unchanged_server_leaves_it_parked() {
    let dir = Dir::new();
    let log = dir.file("book");
    let flags = ["--book", log.to_str().unwrap()];
    let rig = Rig::new();
    rig.set([server(&flags)]);
    let line = rig.line("bad").unwrap();
    in_time(line.ready()).await.unwrap();
    in_time(line.park()).await;
    rig.set([server(&flags)]);
    assert!(rig.line("bad").unwrap().status().is_out_of_service());
    rig.set([server(&[flags[0], flags[1], "--stderr", "new"])]);
    let line = rig.line("bad").unwrap();
    in_time(line.ready()).await.expect("another server is another line, and in service");
    in_time(line.close()).await;
}
