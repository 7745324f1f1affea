//! S26: a server that hangs while its callers give up and try again; and those that must not be taken for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender::{CallErrorKind, Health, Policy, Raw, ServerState, Settings, State};
use tokio::sync::Notify;

use crate::kit::{Bad, bad_with};
use crate::look::{eventually, in_time, kill, lives};

/// How long a server may say nothing after it was given up, in these tests.
const ABANDONED: Duration = Duration::from_millis(1200);

fn quick(change: impl FnOnce(&mut Settings)) -> Policy {
    let mut settings = Settings::default();
    settings.probe.timeout = Duration::from_millis(200);
    settings.probe.keepalive = Duration::from_millis(400);
    settings.call.abandoned_after = Duration::from_millis(1200);
    change(&mut settings);
    Policy::new(settings).unwrap()
}

/// A call whose caller goes away after so long.
async fn gives_up(bad: &Bad, tool: &str, nonce: &str, after: Duration) -> bool {
    let arguments = format!(r#"{{"nonce":"{nonce}","ms":60000}}"#);
    tokio::time::timeout(after, bad.line.call_tool(tool, Raw(&arguments))).await.is_err()
}

#[tokio::test]
async fn s26_a_stopped_server_is_replaced_however_often_its_callers_try_again() {
    let bad = bad_with(&[], |server| server.policy(quick(|_| {})));
    let pid = bad.up().await;
    bad.works().await;
    kill("-STOP", pid);
    let (mut first, mut silent) = (None, false);
    for number in 0.. {
        if !gives_up(&bad, "write", &format!("n{number}"), Duration::from_millis(150)).await {
            break;
        }
        first = first.or_else(|| Some(Instant::now()));
        silent |= matches!(bad.line.status().health(), Some(Health::Silent { .. }));
        assert!(first.unwrap().elapsed() < Duration::from_secs(20), "it lives on");
    }
    let took = first.unwrap().elapsed();
    assert!(took >= ABANDONED && took < ABANDONED * 3, "{took:?}");
    assert!(silent, "the status says so meanwhile");
    assert!(!lives(pid));
    let status = bad.back(1).await;
    assert_eq!((status.generation, status.budget, status.health()), (2, 4000, None));
    assert!(bad.book.runs().values().all(|runs| *runs == 1), "{:?}", bad.book.runs());
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s26_calls_past_their_deadline_count_while_others_wait() {
    let bad = bad_with(&[], |server| {
        server.policy(quick(|settings| {
            settings.call.limit = Duration::from_millis(700);
            settings.state = ServerState::None;
        }))
    });
    let pid = bad.up().await;
    kill("-STOP", pid);
    let start = Instant::now();
    let mut said = String::new();
    // Two callers, half a limit apart: somebody always waits.
    let (one, other) = tokio::join!(
        async {
            let error = bad.call("write", r#"{"nonce":"a"}"#).await.unwrap_err();
            said = error.to_string();
            bad.call("write", r#"{"nonce":"c"}"#).await
        },
        async {
            tokio::time::sleep(Duration::from_millis(350)).await;
            let mut last = bad.call("write", r#"{"nonce":"b0"}"#).await;
            for number in 1..20 {
                if last.is_ok() {
                    break;
                }
                last = bad.call("write", &format!(r#"{{"nonce":"b{number}"}}"#)).await;
            }
            last
        }
    );
    drop(one);
    other.unwrap();
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    assert!(said.contains("silent for"), "{said}");
    assert!(!lives(pid));
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s26_a_busy_server_is_not_touched_while_others_give_up_behind_its_call() {
    let bad = bad_with(&["--single-threaded"], |server| server.policy(quick(|_| {})));
    bad.up().await;
    bad.works().await;
    let done = Arc::new(Notify::new());
    let line = bad.line.clone();
    let told = Arc::clone(&done);
    let long = tokio::spawn(async move {
        let answer = line.call_tool("sleep", Raw(r#"{"nonce":"long","ms":4000}"#)).await;
        told.notify_one();
        answer
    });
    eventually(|| bad.book.runs().contains_key("long").then_some(())).await;
    let mut number = 0;
    let give_up = async {
        loop {
            number += 1;
            gives_up(&bad, "sleep", &format!("behind{number}"), Duration::from_millis(150)).await;
        }
    };
    tokio::select! {
        () = give_up => {}
        () = done.notified() => {}
    }
    in_time(long).await.unwrap().unwrap();
    assert!(number > 10);
    let status = bad.line.status();
    assert_eq!((status.generation, status.budget), (1, 5000));
    // It goes on with what was cancelled; nobody waits for that.
    in_time(bad.line.close()).await;
}

#[tokio::test]
async fn s26_a_byte_from_the_server_clears_it() {
    let bad = bad_with(&[], |server| server.policy(quick(|_| {})));
    let pid = bad.up().await;
    kill("-STOP", pid);
    assert!(gives_up(&bad, "echo", "a", Duration::from_millis(100)).await);
    bad.until(State::Suspect).await;
    kill("-CONT", pid);
    bad.until(State::Up).await;
    bad.works().await;
    assert_eq!((bad.line.status().generation, bad.line.status().budget), (1, 5000));
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s26b_a_server_that_answers_pings_and_no_call_is_left_alone_and_told_of() {
    let bad =
        bad_with(&[], |server| server.policy(quick(|settings| settings.call.limit = Duration::from_secs(1))));
    let pid = bad.up().await;
    bad.works().await;
    let start = Instant::now();
    for number in 0.. {
        assert!(gives_up(&bad, "hang", &format!("n{number}"), Duration::from_millis(100)).await);
        if start.elapsed() > ABANDONED * 3 {
            break;
        }
    }
    let status = bad.line.status();
    assert_eq!((status.generation, status.budget), (1, 5000));
    let words = eventually(|| {
        let health = bad.line.status().health();
        matches!(health, Some(Health::NoCallAnswered { .. })).then(|| health.unwrap().advice(bad.line.pid()))
    })
    .await;
    assert!(words.contains("answers pings; no call answered for"), "{words}");
    assert!(words.ends_with(&format!("to restart it: kill -9 {pid}")), "{words}");
    let error = bad.call("hang", r#"{"nonce":"late"}"#).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::TimedOut);
    bad.works().await;
    assert_eq!(bad.line.status().health(), None, "a call was answered");
    bad.leaves_nothing().await;
}

/// A server in one thread gets this call, whose caller gives up; another waits behind it for as long as that takes.
async fn waits_behind(bad: &Bad, tool: &str, ms: u32) {
    let arguments = format!(r#"{{"nonce":"long","ms":{ms}}}"#);
    let given_up =
        tokio::time::timeout(Duration::from_millis(200), bad.line.call_tool(tool, Raw(&arguments))).await;
    assert!(given_up.is_err());
    bad.works().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s54_a_server_that_works_on_a_call_that_was_given_up_is_left_alone() {
    let bad = bad_with(&["--single-threaded"], |server| server.policy(quick(|_| {})));
    bad.up().await;
    waits_behind(&bad, "spin", 4000).await;
    let status = bad.line.status();
    assert_eq!((status.generation, status.budget), (1, 5000));
    assert_eq!(bad.book.runs()["long"], 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s54_a_server_that_does_nothing_is_replaced_if_a_call_waits_and_only_then() {
    let bad = bad_with(&["--single-threaded"], |server| server.policy(quick(|_| {})));
    let pid = bad.up().await;
    assert!(gives_up(&bad, "sleep", "long", Duration::from_millis(200)).await);
    tokio::time::sleep(ABANDONED * 3).await;
    assert!(lives(pid), "nobody waits");
    let start = Instant::now();
    bad.works().await;
    assert!(start.elapsed() < ABANDONED * 3, "{:?}", start.elapsed());
    assert_eq!(bad.line.status().generation, 2);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s51_a_stopped_idle_server_is_left_alone_until_a_call_comes() {
    let bad = bad_with(&[], |server| server.policy(quick(|settings| settings.state = ServerState::None)));
    let pid = bad.up().await;
    bad.works().await;
    kill("-STOP", pid);
    bad.until(State::Suspect).await;
    tokio::time::sleep(ABANDONED * 3).await;
    assert_eq!(bad.line.status().generation, 1);
    kill("-CONT", pid);
    bad.until(State::Up).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1, "it is the same one");
    kill("-STOP", pid);
    bad.until(State::Suspect).await;
    tokio::time::sleep(ABANDONED * 3).await;
    let start = Instant::now();
    bad.works().await;
    assert!(start.elapsed() < ABANDONED * 2, "{:?}", start.elapsed());
    assert!(!lives(pid));
    bad.leaves_nothing().await;
}
