use core::time::Duration;
use std::cell::Cell;
use std::vec;
use std::vec::Vec;

use super::{Declared, Next, Obstacle, Rules};
use crate::delivery::{Delivery, Doubt, Evidence, Proof, Repair};
use crate::policy::{ServerState, Settings};
use crate::record::{Extent, Phase, Record, RecordStep, Safety};

const UNKNOWN: Delivery = Delivery::Unknown(Doubt::Lost);

fn rules() -> Rules {
    Rules::new(&Settings::default(), true, Declared::NotYet)
}

fn sent(record: Record) -> Record {
    record.step(RecordStep::Write(Extent { start: 0, len: 9 })).unwrap().step(RecordStep::Flush).unwrap()
}

fn lost_with(record: Record, proof: Proof) -> Record {
    let evidence = match proof {
        Proof::Residue => Evidence::Consumed { bytes: 0 },
        other => Evidence::Shown(other),
    };
    let record = if matches!(proof, Proof::Queued | Proof::NoByteWritten) { record } else { sent(record) };
    record.step(RecordStep::Lose(evidence)).unwrap()
}

fn unknown(safety: Safety) -> Record {
    sent(Record::new(safety)).step(RecordStep::Lose(Evidence::Nothing)).unwrap()
}

fn always() -> bool {
    true
}

fn untouched() -> bool {
    panic!("the retry budget is not for this")
}

#[test]
fn a_call_without_a_verdict_goes_on() {
    assert_eq!(Record::new(Safety::Unsafe).next(rules(), untouched), None);
    assert_eq!(sent(Record::new(Safety::Unsafe)).next(rules(), untouched), None);
}

#[test]
fn what_was_answered_or_withdrawn_is_never_sent_again() {
    for step in [RecordStep::Answer, RecordStep::Expire, RecordStep::Cancel] {
        let over = sent(Record::new(Safety::Protocol)).step(step).unwrap();
        assert_eq!(over.next(rules(), untouched), Some(Next::Settle(over.delivery().unwrap())));
    }
    let gone = Record::new(Safety::Protocol).step(RecordStep::Cancel).unwrap();
    assert_eq!(gone.next(rules(), untouched), Some(Next::Settle(Delivery::NotExecuted(Proof::Queued))));
}

#[test]
fn a_queued_call_binds_to_the_next_generation_as_often_as_needed() {
    let mut record = Record::new(Safety::Unsafe);
    for _ in 0..10 {
        let Some(Next::Bind(bound)) = lost_with(record, Proof::Queued).next(rules(), untouched) else {
            panic!()
        };
        assert_eq!(bound, record);
        record = bound;
    }
}

/// The table of proofs, row by row: what happens the first time, and how often.
#[test]
fn each_proof_has_its_row() {
    let once = |after| (true, after);
    for proof in Proof::ALL {
        let (again, after) = match proof {
            Proof::Queued => continue,
            Proof::Residue | Proof::NoByteWritten | Proof::RefusedStream | Proof::SessionRefused => {
                once(None)
            }
            Proof::Challenged => once(Some(Repair::Token)),
            Proof::HeaderMismatch => once(Some(Repair::Relist)),
            Proof::VersionRefused => once(Some(Repair::Version)),
            Proof::Throttled => once(Some(Repair::Wait)),
            Proof::MissingCapability | Proof::MethodNotAllowed | Proof::TooLarge => (false, None),
        };
        let first = lost_with(Record::new(Safety::Unsafe), proof).next(rules(), untouched);
        if !again {
            assert_eq!(first, Some(Next::Settle(Delivery::NotExecuted(proof))));
            continue;
        }
        let Some(Next::Again { mut record, after: mended, pause }) = first else {
            panic!("{proof:?}: {first:?}")
        };
        assert_eq!((mended, record.phase(), pause), (after, Phase::Queued, Duration::ZERO), "{proof:?}");
        if after.is_none() {
            record = tried_again(record, proof);
        }
        let second = lost_with(record, proof).next(rules(), untouched);
        assert_eq!(second, Some(Next::Settle(Delivery::NotExecuted(proof))), "{proof:?}");
    }
}

/// All re-sends but the first, up to the last: each after a longer wait.
fn tried_again(mut record: Record, proof: Proof) -> Record {
    for millis in [20, 40, 80, 160, 320, 500, 500, 500, 500, 500] {
        let next = lost_with(record, proof).next(rules(), untouched);
        let Some(Next::Again { record: again, after: None, pause }) = next else { panic!("{next:?}") };
        assert_eq!(pause, Duration::from_millis(millis), "{proof:?}");
        record = again;
    }
    record
}

#[test]
fn what_kept_a_call_from_its_server_decides_when_it_is_tried_again() {
    let lost = lost_with(Record::new(Safety::Unsafe), Proof::NoByteWritten);
    let with = |obstacle| lost.next(rules().kept_by(obstacle), untouched);
    assert!(matches!(with(Obstacle::Passing), Some(Next::Again { pause: Duration::ZERO, .. })));
    let Some(Next::Again { pause, .. }) = with(Obstacle::NobodyListens) else { panic!() };
    assert_eq!(pause, Duration::from_millis(20));
    assert_eq!(
        with(Obstacle::Lasting),
        Some(Next::Settle(Delivery::NotExecuted(Proof::NoByteWritten))),
        "no such name, a bad certificate: the next try would meet the same"
    );
}

#[test]
fn a_repair_and_a_proof_are_counted_apart() {
    let first = lost_with(Record::new(Safety::Unsafe), Proof::Challenged).next(rules(), untouched);
    let Some(Next::Again { record, .. }) = first else { panic!() };
    let second = lost_with(record, Proof::Residue).next(rules(), untouched);
    assert!(matches!(second, Some(Next::Again { after: None, .. })));
}

#[test]
fn an_unsafe_call_of_unknown_outcome_is_never_sent_again() {
    for declared in [Declared::NotYet, Declared::Safe, Declared::Unsafe] {
        for crosses in [false, true] {
            let rules = Rules { crosses, declared, ..rules() };
            assert_eq!(unknown(Safety::Unsafe).next(rules, untouched), Some(Next::Settle(UNKNOWN)));
        }
    }
}

#[test]
fn what_is_safe_is_sent_again_within_the_budget() {
    for safety in [Safety::Protocol, Safety::Listed] {
        let Some(Next::Again { record, after: None, .. }) = unknown(safety).next(rules(), always) else {
            panic!()
        };
        assert_eq!(record.phase(), Phase::Queued);
        assert_eq!(unknown(safety).next(rules(), || false), Some(Next::Settle(UNKNOWN)));
    }
}

#[test]
fn one_call_is_retried_so_often_and_no_more() {
    let mut record = Record::new(Safety::Protocol);
    let asked = Cell::new(0);
    let mut tries = Vec::new();
    loop {
        let lost = sent(record).step(RecordStep::Lose(Evidence::Nothing)).unwrap();
        match lost.next(rules(), || asked.replace(asked.get() + 1) < 99) {
            Some(Next::Again { record: again, .. }) => record = again,
            other => break tries.push(other),
        }
    }
    assert_eq!(tries, vec![Some(Next::Settle(UNKNOWN))]);
    assert_eq!(asked.get(), 2, "the budget is not asked for what the call may not have");
}

#[test]
fn a_retry_that_was_not_executed_does_not_make_up_for_the_try_that_may_have_been() {
    let Some(Next::Again { record, .. }) = unknown(Safety::Protocol).next(rules(), always) else { panic!() };
    let refused = lost_with(record, Proof::TooLarge);
    assert_eq!(refused.delivery(), Some(Delivery::NotExecuted(Proof::TooLarge)));
    assert_eq!(refused.next(rules(), untouched), Some(Next::Settle(UNKNOWN)));
    let left = record.step(RecordStep::Cancel).unwrap();
    assert_eq!(left.verdict(), Some(UNKNOWN));
}

#[test]
fn a_trusted_tool_is_judged_by_the_new_generation() {
    let with = |declared| unknown(Safety::Annotated).next(Rules { declared, ..rules() }, always);
    assert_eq!(with(Declared::NotYet), Some(Next::AskNewGeneration));
    assert!(matches!(with(Declared::Safe), Some(Next::Again { .. })));
    assert_eq!(with(Declared::Unsafe), Some(Next::Settle(UNKNOWN)));
    // Nobody waits for a list that cannot help.
    let no_retries = Rules { retries_per_call: 0, ..rules() };
    assert_eq!(unknown(Safety::Annotated).next(no_retries, untouched), Some(Next::Settle(UNKNOWN)));
}

#[test]
fn nothing_crosses_a_generation_of_a_stateful_process() {
    let stateful = Rules { state: ServerState::Process, ..rules() };
    let queued = lost_with(Record::new(Safety::Protocol), Proof::Queued);
    assert_eq!(queued.next(stateful, untouched), Some(Next::Settle(Delivery::NotExecuted(Proof::Queued))));
    let residue = lost_with(Record::new(Safety::Protocol), Proof::Residue);
    assert_eq!(residue.next(stateful, untouched), Some(Next::Settle(Delivery::NotExecuted(Proof::Residue))));
    assert_eq!(unknown(Safety::Protocol).next(stateful, untouched), Some(Next::Settle(UNKNOWN)));
    // Within one generation the state is still there.
    let same = Rules { crosses: false, ..stateful };
    assert!(matches!(residue.next(same, untouched), Some(Next::Again { .. })));
}
