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
    ear.ledger.tell(frame::notification("n", None));
    let mut answer = call(&ear.ledger);
    // What was written is the notification.
    assert!(frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()));
    ear.hear(said(ERROR));
    // The call lost its place, and is told so: it can be sent again, and no answer is waited for in vain.
    let Ok(Reply::Lost(lost)) = answer.try_recv() else { panic!("it hangs") };
    assert_eq!(lost.record.delivery().unwrap().name(), "not executed");
    assert!(
        !frames.try_recv().unwrap().ticket.unwrap().writing(Extent::default()),
        "and it is not written now"
    );
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
