use crate::budget::Budget;
use crate::ends::Ends;
use std::sync::Arc;
use std::time::Duration;

use linetender_wire::frame::{Frame, Passed};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{KEPT_BYTES, Session, Taken, parsed};
use crate::front::said::Form;
use crate::front::tape::{Tape, There};
use crate::listing::Endpoint;
use crate::principal::Principal;

fn session(room: usize) -> (Session, mpsc::Receiver<Passed>) {
    let (to, taken) = mpsc::channel(room);
    (
        Session::new(
            "s".into(),
            Endpoint::All,
            None,
            to,
            None,
            (&Budget::new(usize::MAX), &Ends::default(), &Principal::user(1)),
        ),
        taken,
    )
}

fn frame(message: &Value) -> Frame {
    parsed(&message.to_string().into()).unwrap()
}

fn call(id: u64) -> Frame {
    frame(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {} }))
}

/// A call whose response has begun, and whose agent hung up on it.
async fn hung_up(session: &Session, id: u64) -> Arc<Tape> {
    let Taken::Tape(tape) = session.take(&[call(id)], &Form::Plain).await else { panic!("it was not taken") };
    session.begins_reading(&tape);
    session.ends_reading();
    tape
}

fn answer(session: &Session, id: u64, weighs: usize) {
    session.hear(&frame(&json!({ "jsonrpc": "2.0", "id": id, "result": "x".repeat(weighs) })));
}

fn is_kept(session: &Session, tape: &Tape) -> bool {
    session.resume(&format!("{}-0", tape.number)).is_some()
}

async fn told(tape: &Tape, behind: u64) -> Option<Value> {
    match tape.behind(behind).await.1 {
        There::Message(text) => serde_json::from_slice(&text).ok(),
        There::Missed(_) | There::End => None,
    }
}

#[tokio::test]
async fn streams_that_are_over_weigh_no_more_than_so_much_and_the_newest_stay() {
    let (session, _taken) = session(16);
    let mut tapes = Vec::new();
    for id in 0..4 {
        tapes.push(hung_up(&session, id).await);
    }
    for id in 0..3 {
        answer(&session, id, KEPT_BYTES / 2 - 100);
    }
    let kept: Vec<_> = tapes.iter().map(|tape| is_kept(&session, tape)).collect();
    assert_eq!(kept, [false, true, true, true], "two that are over, and the one that is not");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_kept_for_whoever_did_not_read_it_and_for_a_while_for_whoever_did() {
    let (session, _taken) = session(16);
    let (read, unread) = (hung_up(&session, 1).await, hung_up(&session, 2).await);
    answer(&session, 1, 1);
    answer(&session, 2, 1);
    assert_eq!(told(&read, 0).await.unwrap()["id"], 1);
    assert_eq!(read.behind(1).await, (1, There::End));
    // Somebody else reads all the time, and the session is used.
    session.begins_reading(&hung_up(&session, 3).await);
    let since = Duration::from_secs(60);
    session.forget_read(since);
    assert!(is_kept(&session, &read));
    tokio::time::advance(since).await;
    session.forget_read(since);
    assert_eq!((is_kept(&session, &read), is_kept(&session, &unread)), (false, true));
}

#[tokio::test]
async fn a_session_that_is_over_takes_nothing_and_has_told_of_what_it_had() {
    let (session, mut taken) = session(16);
    let Taken::Tape(tape) = session.take(&[call(1), call(2)], &Form::Plain).await else {
        panic!("it was not taken")
    };
    session.end();
    let mut ids = Vec::new();
    for behind in 0..2 {
        let told = told(&tape, behind).await.unwrap();
        assert_eq!(told["error"]["data"]["delivery"], "unknown", "{told}");
        ids.extend(told["id"].as_u64());
    }
    ids.sort_unstable();
    assert_eq!((ids, tape.behind(2).await), (vec![1, 2], (2, There::End)));
    while taken.try_recv().is_ok() {}
    assert!(matches!(session.take(&[call(3)], &Form::Plain).await, Taken::Full));
    assert!(taken.try_recv().is_err(), "nobody would hear the answer");
}

#[tokio::test]
async fn a_batch_in_a_session_that_ends_is_answered_as_one_array() {
    let (session, _taken) = session(16);
    let form = Form::Batch { refusals: vec!["0".into()] };
    let Taken::Tape(tape) = session.take(&[call(1), call(2)], &form).await else {
        panic!("it was not taken")
    };
    answer(&session, 1, 1);
    session.end();
    let told: Value = serde_json::from_slice(&tape.whole().unwrap()).unwrap();
    assert_eq!((&told[0], &told[1]["id"], &told[2]["id"]), (&json!(0), &json!(1), &json!(2)), "{told}");
    assert_eq!(told[2]["error"]["data"]["delivery"], "unknown", "{told}");
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_that_is_half_taken_each_request_is_told_of() {
    let (session, mut taken) = session(2);
    let batch: Vec<_> = (1..=3).map(call).collect();
    let Taken::Tape(tape) = session.take(&batch, &Form::Plain).await else { panic!("none of it was taken") };
    assert_eq!(told(&tape, 0).await.unwrap()["error"]["data"]["delivery"], "not executed");
    assert!(!session.is_quiet(), "two are with their server");
    answer(&session, 1, 1);
    answer(&session, 2, 1);
    assert!(session.is_quiet());
    assert_eq!(tape.behind(3).await, (3, There::End));
    // What needs no answer cannot be told of, so all of it is refused.
    while taken.try_recv().is_ok() {}
    let notices = vec![frame(&json!({ "jsonrpc": "2.0", "method": "notifications/a" })); 3];
    assert!(matches!(session.take(&notices, &Form::Plain).await, Taken::Full));
    // And whoever does not wait for room leaves nothing behind.
    let last = [call(9)];
    assert!(tokio::time::timeout(Duration::from_secs(1), session.take(&last, &Form::Plain)).await.is_err());
    assert!(session.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_agent_hung_up_and_stays_away_is_taken_back() {
    const RESUMED: Duration = Duration::from_secs(60);
    let (session, mut taken) = session(16);
    let (gone, there) = (hung_up(&session, 1).await, hung_up(&session, 2).await);
    let _reader = there.reader(0);
    let _said: Vec<_> = std::iter::from_fn(|| taken.try_recv().ok()).collect();
    session.give_up_unread(RESUMED);
    assert!(taken.try_recv().is_err(), "it may come back");
    tokio::time::advance(RESUMED).await;
    session.give_up_unread(RESUMED);
    let said: Value = serde_json::from_slice(taken.try_recv().unwrap().text()).unwrap();
    assert_eq!(
        (&said["method"], &said["params"]["requestId"]),
        (&json!("notifications/linetender/unread"), &json!(1)),
        "nobody has cancelled it"
    );
    assert!(taken.try_recv().is_err() && gone.is_over() && !there.is_over());
}
