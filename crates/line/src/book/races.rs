//! Register × write × answer × withdraw × seal, in thousands of orders: each call has one outcome, and none is forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use linetender_core::{Delivery, Evidence, Extent, Generation, LossReport, Record, RecordStep, Safety};
use linetender_wire::seam::{Outbox, Outgoing};
use linetender_wire::{frame, queue};
use shuttle::thread;

use crate::basics::clock::Clock;
use crate::book::Ledger;
use crate::book::{Heed, Reply};

const ORDERS: usize = 20_000;

fn ledger() -> (Arc<Ledger>, Outbox, queue::Receiver<Outgoing>) {
    let ledger = Arc::new(Ledger::new(Generation::new(1), Clock::start(), Arc::default()));
    let (outbox, frames) = Outbox::channel(8);
    ledger.open(outbox.clone(), false);
    (ledger, outbox, frames)
}

fn answer_to(id: u64) -> Reply {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into();
    Reply::Answer(frame::parse(&text, frame::Limits { length: 100, depth: 8 }).unwrap())
}

/// What a caller was told by its generation.
#[derive(Debug, Eq, PartialEq)]
enum Told {
    NoSeat,
    Answered,
    Lost(Delivery),
    Withdrawn(Delivery),
}

fn caller(ledger: &Ledger, leaves: bool) -> Told {
    let Ok((entry, mut answer)) =
        ledger.register(Some(Heed::of(None, None, None)), Record::new(Safety::Unsafe), |id| {
            frame::request(id, "m", None)
        })
    else {
        return Told::NoSeat;
    };
    if leaves && let Ok(record) = entry.withdraw(RecordStep::Cancel) {
        ledger.withdrawn(entry.id);
        return Told::Withdrawn(record.delivery().unwrap());
    }
    loop {
        match answer.try_recv() {
            Ok(Reply::Answer(_)) => return Told::Answered,
            Ok(Reply::Lost(lost)) => return Told::Lost(lost.record.delivery().unwrap()),
            Ok(Reply::Unusable(why)) => panic!("{why}"),
            Err(_) => thread::yield_now(),
        }
    }
}

/// Writes what is queued until the seal, and tells the server of it.
fn writer(outbox: &Outbox, frames: &mut queue::Receiver<Outgoing>, ran: &AtomicU32, ledger: &Ledger) {
    let mut start = 0;
    while !outbox.is_sealed() {
        if let Some(frame) = frames.try_recv() {
            let ticket = frame.ticket.unwrap();
            if ticket.writing(Extent { start, len: 10 }) {
                start += 11;
                ran.fetch_add(1, Ordering::Relaxed);
                ticket.flushed();
                ledger.answer(1, answer_to(1));
            }
        }
        thread::yield_now();
    }
}

fn death(ledger: &Ledger) {
    ledger.seal();
    ledger.settle_queued();
    ledger.settle_all(|_| LossReport::Nothing, None);
}

fn one_order(leaves: bool) {
    let (ledger, outbox, mut frames) = ledger();
    let ran = Arc::new(AtomicU32::new(0));
    let call = {
        let ledger = Arc::clone(&ledger);
        thread::spawn(move || caller(&ledger, leaves))
    };
    let write = {
        let (outbox, ran, ledger) = (outbox.clone(), Arc::clone(&ran), Arc::clone(&ledger));
        thread::spawn(move || writer(&outbox, &mut frames, &ran, &ledger))
    };
    let end = {
        let ledger = Arc::clone(&ledger);
        thread::spawn(move || death(&ledger))
    };
    end.join().unwrap();
    write.join().unwrap();
    // A call that was registered is told something, or this never comes back and shuttle says so.
    let told = call.join().unwrap();
    let ran = ran.load(Ordering::Relaxed) > 0;
    match told {
        Told::Answered => assert!(ran),
        Told::NoSeat => assert!(!ran, "it was refused, and ran"),
        Told::Lost(Delivery::NotExecuted(proof)) | Told::Withdrawn(Delivery::NotExecuted(proof)) => {
            assert!(!ran && proof == Evidence::Queued, "called not executed, and ran");
        }
        Told::Lost(_) | Told::Withdrawn(_) => assert!(ran, "nothing was written: that is known"),
    }
    assert_eq!(ledger.vitals().in_flight, 0);
}

#[test]
fn a_call_and_a_death_in_any_order() {
    shuttle::check_random(|| one_order(false), ORDERS);
}

#[test]
fn a_call_whose_caller_leaves_and_a_death_in_any_order() {
    shuttle::check_random(|| one_order(true), ORDERS);
}
