use std::vec::Vec;

use super::{Extent, Late, Method, Phase, Record, RecordStep, Safety};
use crate::delivery::{Delivery, Doubt, Evidence, LossReport, ServerRefusal};

const EXTENT: Extent = Extent { start: 100, len: 50 };
const UNKNOWN: Delivery = Delivery::Unknown(Doubt::Lost);

fn queued() -> Record {
    Record::new(Safety::Unsafe)
}

fn writing() -> Record {
    queued().step(RecordStep::Write(EXTENT)).unwrap()
}

fn flushed() -> Record {
    writing().step(RecordStep::Flush).unwrap()
}

fn lose(record: Record, report: LossReport) -> Delivery {
    let lost = record.step(RecordStep::Lose(report)).unwrap();
    assert!(matches!(lost.phase(), Phase::Lost(_)));
    lost.delivery().unwrap()
}

#[test]
fn a_call_walks_from_the_queue_to_its_answer() {
    assert_eq!(queued().phase(), Phase::Queued);
    assert_eq!(writing().phase(), Phase::Writing(EXTENT));
    assert_eq!(flushed().phase(), Phase::Flushed(EXTENT));
    assert!([queued(), writing(), flushed()].iter().all(|record| record.delivery().is_none()));
    for record in [writing(), flushed()] {
        let answered = record.step(RecordStep::Answer).unwrap();
        assert_eq!(answered.delivery(), Some(Delivery::Answered));
    }
}

#[test]
fn an_answer_to_what_was_never_sent_is_refused() {
    assert_eq!(queued().step(RecordStep::Answer), Err(Late));
    assert_eq!(queued().step(RecordStep::Flush), Err(Late));
    assert_eq!(flushed().step(RecordStep::Flush), Err(Late));
    assert_eq!(writing().step(RecordStep::Write(EXTENT)), Err(Late));
    assert_eq!(flushed().step(RecordStep::Write(EXTENT)), Err(Late));
}

#[test]
fn the_first_to_take_a_call_wins() {
    let ends =
        [RecordStep::Answer, RecordStep::Expire, RecordStep::Cancel, RecordStep::Lose(LossReport::Nothing)];
    let over: Vec<_> = ends.iter().map(|&end| flushed().step(end).unwrap()).collect();
    for record in over {
        for late in ends.iter().chain(&[RecordStep::Flush, RecordStep::Write(EXTENT)]) {
            assert_eq!(record.step(*late), Err(Late));
        }
    }
}

#[test]
fn withdrawn_while_queued_was_not_executed_but_while_writing_is_unknown() {
    for (step, doubt) in [(RecordStep::Expire, Doubt::Deadline), (RecordStep::Cancel, Doubt::Cancelled)] {
        let verdict = |record: Record| record.step(step).unwrap().phase();
        assert_eq!(verdict(queued()), Phase::Withdrawn(Delivery::NotExecuted(Evidence::Queued)));
        assert_eq!(verdict(writing()), Phase::Withdrawn(Delivery::Unknown(doubt)));
        assert_eq!(verdict(flushed()), Phase::Withdrawn(Delivery::Unknown(doubt)));
    }
}

#[test]
fn lost_without_evidence_is_unknown_unless_still_queued() {
    assert_eq!(lose(queued(), LossReport::Nothing), Delivery::NotExecuted(Evidence::Queued));
    assert_eq!(lose(writing(), LossReport::Nothing), UNKNOWN);
    assert_eq!(lose(flushed(), LossReport::Nothing), UNKNOWN);
}

#[test]
fn a_call_of_which_a_dead_server_had_read_a_byte_may_have_been_executed() {
    for record in [writing(), flushed()] {
        let consumed = |bytes| lose(record, LossReport::Consumed { bytes });
        assert_eq!(consumed(0), Delivery::NotExecuted(Evidence::Residue));
        assert_eq!(consumed(100), Delivery::NotExecuted(Evidence::Residue));
        assert_eq!(consumed(101), UNKNOWN, "some servers begin before they have read all of it");
        assert_eq!(consumed(150), UNKNOWN);
    }
    assert_eq!(
        lose(queued(), LossReport::Consumed { bytes: u64::MAX }),
        Delivery::NotExecuted(Evidence::Queued)
    );
}

#[test]
fn a_count_holds_only_where_it_can_be_true_and_a_refusal_is_the_servers_word() {
    assert_eq!(lose(writing(), LossReport::NoByteWritten), Delivery::NotExecuted(Evidence::NoByteWritten));
    assert_eq!(lose(flushed(), LossReport::NoByteWritten), UNKNOWN, "bytes of it were written");
    for refusal in ServerRefusal::ALL {
        let report = LossReport::Refused(refusal);
        assert_eq!(lose(writing(), report), Delivery::Refused(refusal));
        assert_eq!(lose(flushed(), report), Delivery::Refused(refusal));
        assert_eq!(lose(queued(), report), Delivery::NotExecuted(Evidence::Queued), "no byte of it left us");
    }
    // Still queued, a failed connect is the better word for it: it counts as a try.
    let connect = LossReport::NoByteWritten;
    assert_eq!(lose(queued(), connect), Delivery::NotExecuted(Evidence::NoByteWritten));
}

#[test]
fn only_what_the_protocol_or_the_user_calls_safe_is_safe() {
    for method in [Method::Discover, Method::List, Method::GetTask] {
        assert_eq!(Safety::of(method, false, false), Safety::Protocol);
    }
    for method in [Method::ReadResource, Method::GetPrompt, Method::Complete, Method::TaskResult] {
        assert_eq!(Safety::of(method, true, true), Safety::Read);
    }
    assert_eq!(Safety::of(Method::Other, true, true), Safety::Unsafe);
    assert_eq!(Safety::of(Method::CallTool, false, false), Safety::Unsafe);
    assert_eq!(Safety::of(Method::CallTool, true, false), Safety::Annotated);
    assert_eq!(Safety::of(Method::CallTool, false, true), Safety::Listed);
    assert_eq!(Safety::of(Method::CallTool, true, true), Safety::Listed);
}

#[test]
fn a_record_is_small_enough_for_every_call_to_carry_one() {
    assert!(size_of::<Record>() <= 32, "{}", size_of::<Record>());
    assert_eq!(Extent { start: u64::MAX, len: 1 }.end(), u64::MAX);
}
