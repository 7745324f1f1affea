use core::time::Duration;
use std::cell::Cell;
use std::vec;
use std::vec::Vec;

use super::{Declared, Next, Obstacle, Rules};
use crate::delivery::{Delivery, Doubt, Evidence, LossReport, Repair, ServerRefusal};
use crate::policy::Settings;
use crate::record::{Extent, Phase, Record, RecordStep, Safety};
use crate::retry::{RetryOn, RetryReason};

const UNKNOWN: Delivery = Delivery::Unknown(Doubt::Lost);

fn rules() -> Rules {
    Rules::new(&Settings::default(), false, Declared::NotYet)
}

fn sent(record: Record) -> Record {
    record.step(RecordStep::Write(Extent { start: 0, len: 9 })).unwrap().step(RecordStep::Flush).unwrap()
}

fn lost_with(record: Record, evidence: Evidence) -> Record {
    let lost = match evidence {
        Evidence::Queued => record.step(RecordStep::Lose(LossReport::Nothing)),
        Evidence::Residue => sent(record).step(RecordStep::Lose(LossReport::Consumed { bytes: 0 })),
        Evidence::NoByteWritten => record.step(RecordStep::Lose(LossReport::NoByteWritten)),
    };
    lost.unwrap()
}

fn refused_with(record: Record, refusal: ServerRefusal) -> Record {
    sent(record).step(RecordStep::Lose(LossReport::Refused(refusal))).unwrap()
}

/// The new record, what permitted it, and what has to be mended first.
fn again(next: Option<Next>) -> (Record, RetryReason, Option<Repair>) {
    match next {
        Some(Next::Again { record, reason, after, .. }) => (record, reason, after),
        other => panic!("not sent again: {other:?}"),
    }
}

fn unknown(safety: Safety) -> Record {
    sent(Record::new(safety)).step(RecordStep::Lose(LossReport::Nothing)).unwrap()
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
    assert_eq!(gone.next(rules(), untouched), Some(Next::Settle(Delivery::NotExecuted(Evidence::Queued))));
}

#[test]
fn a_queued_call_binds_to_the_next_generation_as_often_as_needed() {
    let mut record = Record::new(Safety::Unsafe);
    for _ in 0..10 {
        let Some(Next::Bind(bound)) = lost_with(record, Evidence::Queued).next(rules(), untouched) else {
            panic!()
        };
        assert_eq!(bound, record);
        record = bound;
    }
}

/// What linetender counted is sent again up to a number of tries, each after a longer wait.
#[test]
fn what_was_counted_as_not_executed_is_sent_again() {
    for evidence in [Evidence::Residue, Evidence::NoByteWritten] {
        let mut record = Record::new(Safety::Unsafe);
        for millis in [0, 20, 40, 80, 160, 320, 500, 500, 500, 500, 500] {
            let next = lost_with(record, evidence).next(rules(), untouched);
            let Some(Next::Again { record: next, reason: RetryReason::NotExecuted, after: None, pause }) =
                next
            else {
                panic!("{next:?}")
            };
            assert_eq!((pause, next.phase()), (Duration::from_millis(millis), Phase::Queued), "{evidence:?}");
            record = next;
        }
        let last = lost_with(record, evidence).next(rules(), untouched);
        assert_eq!(last, Some(Next::Settle(Delivery::NotExecuted(evidence))));
        let never = Rules { retry_on: RetryOn::NOTHING, ..rules() };
        let told = lost_with(Record::new(Safety::Unsafe), evidence).next(never, untouched);
        assert_eq!(told, Some(Next::Settle(Delivery::NotExecuted(evidence))));
    }
}

/// The table of refusals, row by row: by default, with everything permitted, and with nothing but what is counted.
#[test]
fn each_refusal_is_sent_again_once_if_retry_on_names_it() {
    let everything = Rules { retry_on: RetryReason::SETTABLE.into_iter().collect(), ..rules() };
    let counted = Rules { retry_on: RetryOn::NOT_EXECUTED, ..rules() };
    for refusal in ServerRefusal::ALL {
        let told = Some(Next::Settle(Delivery::Refused(refusal)));
        let row = match refusal {
            ServerRefusal::SessionLost => Some((true, RetryReason::SessionLost, None)),
            ServerRefusal::Goaway => Some((true, RetryReason::Goaway, None)),
            ServerRefusal::Auth => Some((true, RetryReason::Auth, Some(Repair::Token))),
            ServerRefusal::HeaderMismatch => Some((true, RetryReason::Protocol, Some(Repair::Relist))),
            ServerRefusal::UnsupportedVersion => Some((true, RetryReason::Protocol, Some(Repair::Version))),
            ServerRefusal::RateLimited => Some((false, RetryReason::RateLimited, Some(Repair::Wait))),
            ServerRefusal::RefusedStream => Some((false, RetryReason::RefusedStream, None)),
            ServerRefusal::MissingCapability | ServerRefusal::MethodNotAllowed | ServerRefusal::TooLarge => {
                None
            }
        };
        let lost = || refused_with(Record::new(Safety::Unsafe), refusal);
        assert_eq!(lost().next(counted, untouched), told, "{refusal:?}: the server's word is not counted");
        let Some((by_default, reason, repair)) = row else {
            assert_eq!(lost().next(everything, untouched), told, "{refusal:?}: the answer would be the same");
            continue;
        };
        if by_default {
            assert_eq!(again(lost().next(rules(), untouched)).1, reason);
        } else {
            assert_eq!(lost().next(rules(), untouched), told, "{refusal:?}");
        }
        let (record, by, after) = again(lost().next(everything, untouched));
        assert_eq!((by, after, record.phase()), (reason, repair, Phase::Queued), "{refusal:?}");
        assert_eq!(refused_with(record, refusal).next(everything, untouched), told, "{refusal:?}: once");
    }
}

#[test]
fn a_call_that_was_refused_once_is_never_called_not_executed() {
    let refused = refused_with(Record::new(Safety::Unsafe), ServerRefusal::Auth);
    let (record, ..) = again(refused.next(rules(), untouched));
    let gone = lost_with(record, Evidence::NoByteWritten)
        .next(Rules { retry_on: RetryOn::NOTHING, ..rules() }, untouched);
    assert_eq!(gone, Some(Next::Settle(Delivery::Refused(ServerRefusal::Auth))));
    let left = record.step(RecordStep::Cancel).unwrap();
    assert_eq!(left.verdict(), Some(Delivery::Refused(ServerRefusal::Auth)));
    assert_eq!(sent(record).step(RecordStep::Answer).unwrap().verdict(), Some(Delivery::Answered));
}

#[test]
fn a_safe_call_is_sent_again_after_a_refusal_that_retry_on_does_not_name() {
    let never = Rules { retry_on: RetryOn::NOTHING, ..rules() };
    let limited = refused_with(Record::new(Safety::Listed), ServerRefusal::RateLimited);
    let (record, reason, after) = again(limited.next(never, always));
    assert_eq!((reason, after), (RetryReason::SafeTool, Some(Repair::Wait)));
    let told = Some(Next::Settle(Delivery::Refused(ServerRefusal::RateLimited)));
    assert_eq!(refused_with(record, ServerRefusal::RateLimited).next(never, untouched), told);
    assert_eq!(limited.next(never, || false), told);
    let large = refused_with(Record::new(Safety::Listed), ServerRefusal::TooLarge);
    assert_eq!(large.next(never, untouched), Some(Next::Settle(Delivery::Refused(ServerRefusal::TooLarge))));
}

#[test]
fn reading_is_repeated_only_if_retry_on_says_so() {
    let told = Some(Next::Settle(UNKNOWN));
    assert_eq!(unknown(Safety::Read).next(rules(), untouched), told, "a read may empty a queue");
    let reads = Rules { retry_on: RetryOn::default().with(RetryReason::Reads), ..rules() };
    assert_eq!(again(unknown(Safety::Read).next(reads, always)).1, RetryReason::Reads);
}

#[test]
fn what_kept_a_call_from_its_server_decides_when_it_is_tried_again() {
    let lost = lost_with(Record::new(Safety::Unsafe), Evidence::NoByteWritten);
    let with = |obstacle| lost.next(rules().kept_by(obstacle), untouched);
    assert!(matches!(with(Obstacle::Passing), Some(Next::Again { pause: Duration::ZERO, .. })));
    let Some(Next::Again { pause, .. }) = with(Obstacle::NobodyListens) else { panic!() };
    assert_eq!(pause, Duration::from_millis(20));
    assert_eq!(
        with(Obstacle::Lasting),
        Some(Next::Settle(Delivery::NotExecuted(Evidence::NoByteWritten))),
        "no such name, a bad certificate: the next try would meet the same"
    );
}

#[test]
fn a_refusal_and_a_count_have_a_number_of_tries_each() {
    let refused = refused_with(Record::new(Safety::Unsafe), ServerRefusal::Auth);
    let (record, ..) = again(refused.next(rules(), untouched));
    let (record, reason, _) = again(lost_with(record, Evidence::Residue).next(rules(), untouched));
    assert_eq!(reason, RetryReason::NotExecuted);
    let (_, reason, _) = again(refused_with(record, ServerRefusal::SessionLost).next(rules(), untouched));
    assert_eq!(reason, RetryReason::SessionLost);
}

#[test]
fn an_unsafe_call_of_unknown_outcome_is_never_sent_again() {
    for declared in [Declared::NotYet, Declared::Safe, Declared::Unsafe] {
        for is_bound in [false, true] {
            let rules = Rules { is_bound, declared, ..rules() };
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
        let lost = sent(record).step(RecordStep::Lose(LossReport::Nothing)).unwrap();
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
    let refused = refused_with(record, ServerRefusal::TooLarge);
    assert_eq!(refused.delivery(), Some(Delivery::Refused(ServerRefusal::TooLarge)));
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
fn a_call_that_is_bound_to_its_context_is_not_sent_again() {
    let bound = Rules { is_bound: true, ..rules() };
    let queued = lost_with(Record::new(Safety::Protocol), Evidence::Queued);
    assert_eq!(queued.next(bound, untouched), Some(Next::Settle(Delivery::NotExecuted(Evidence::Queued))));
    let residue = lost_with(Record::new(Safety::Protocol), Evidence::Residue);
    assert_eq!(residue.next(bound, untouched), Some(Next::Settle(Delivery::NotExecuted(Evidence::Residue))));
    assert_eq!(unknown(Safety::Protocol).next(bound, untouched), Some(Next::Settle(UNKNOWN)));
    // Within one context the state is still there.
    assert!(matches!(residue.next(rules(), untouched), Some(Next::Again { .. })));
}
