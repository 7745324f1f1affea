//! Odd words of a server, and whose they are.

use std::sync::Arc;

use linetender_core::{Extent, Generation, Record, Safety};
use linetender_wire::seam::{Listener as _, Outbox};
use linetender_wire::{About, Item, frame};

use super::Ear;
use crate::basics::clock::Clock;
use crate::book::{Heed, Ledger, Reply};

const LIMITS: frame::Limits = frame::Limits { length: 1000, depth: 8 };

fn ear() -> (Ear, linetender_wire::queue::Receiver<linetender_wire::seam::Outgoing>) {
    let ledger = Arc::new(Ledger::new(Generation::new(1), Clock::start(), Arc::default()));
    let (outbox, frames) = Outbox::channel(8);
    ledger.open(outbox, false);
    (Ear::new(ledger, Arc::default()), frames)
}

fn said(text: &str) -> Item {
    Item::Frame(frame::parse(&text.to_owned().into(), LIMITS).unwrap())
}

fn call(ledger: &Ledger) -> tokio::sync::oneshot::Receiver<Reply> {
    let heed = Some(Heed::of(None, None, None));
    let text = |id| frame::request(id, "tools/call", None);
    ledger.register(heed, Record::new(Safety::Unsafe), text).unwrap().1
}

const ERROR: &str = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;

#[tokio::test]
async fn an_error_without_an_id_is_not_about_a_call_that_was_not_written() {
    let (ear, mut frames) = ear();
    ear.ledger.tell(frame::notification("n", None)).unwrap();
    let mut answer = call(&ear.ledger);
    // What was written is the notification.
    assert!(frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()));
    ear.hear(said(ERROR));
    assert!(answer.try_recv().is_err() && ear.take_stray().is_none(), "the call goes on");
    assert!(frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()), "and is written");
}

#[tokio::test]
async fn an_error_without_an_id_is_about_the_only_call_that_was_written_last() {
    let (ear, mut frames) = ear();
    let mut answer = call(&ear.ledger);
    assert!(frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()));
    ear.hear(said(ERROR));
    assert!(matches!(answer.try_recv(), Ok(Reply::Unusable(_))));
}

#[tokio::test]
async fn a_question_that_cannot_be_read_answers_no_call() {
    let (ear, mut frames) = ear();
    let mut answer = call(&ear.ledger);
    assert!(frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()));
    let bad = frame::Bad::NotJson;
    ear.hear(Item::Unreadable { about: About::Question(Some("1".into())), bad, seen: 9 });
    assert!(answer.try_recv().is_err(), "it still waits");
    let told = frames.try_recv().unwrap().bytes().clone();
    assert!(String::from_utf8_lossy(&told).contains("-32700"), "the server is told");
    ear.hear(said(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert!(matches!(answer.try_recv(), Ok(Reply::Answer(_))));
}

/// S42: a server that never ends its handshake keeps no more than so much waiting.
#[tokio::test]
async fn s42_what_comes_before_the_end_of_the_handshake_waits_in_order_and_is_bounded() {
    let (ear, mut frames) = ear();
    let ask = |id: usize| said(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#));
    let mut told = || frames.try_recv().map(|told| String::from_utf8_lossy(told.bytes()).contains("-32600"));
    (0..256).for_each(|id| ear.hear(ask(id)));
    assert_eq!(told(), None, "they wait");
    ear.hear(ask(256));
    assert_eq!(told(), Some(true), "one too many");
    ear.refuse_early();
    assert!((0..8).all(|_| told() == Some(true)), "as many as the way down takes");
    ear.hear(ask(257));
    ear.open();
    assert!(ear.is_open());
    while told().is_some() {}
    ear.hear(ask(258));
    assert_eq!(told(), Some(false), "nobody is there to answer: it is told so at once");
}

/// E04: none of them ends now.
#[tokio::test]
async fn e04_an_error_without_an_id_is_looked_at_later_if_it_may_be_about_several_calls() {
    let (ear, mut frames) = ear();
    let mut answers = [call(&ear.ledger), call(&ear.ledger)];
    while let Some(frame) = frames.try_recv() {
        assert!(frame.ticket.unwrap().writing(Extent::default()));
    }
    ear.hear(said(ERROR));
    ear.hear(said(ERROR));
    assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()));
    assert_eq!(ear.take_stray().unwrap().about.len(), 2);
    assert!(ear.take_stray().is_none(), "one at a time");
}
