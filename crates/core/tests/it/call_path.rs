//! Nothing on the call path allocates: gate, record, verdict, re-send.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use linetender_core::{
    Declared, Extent, Generation, Instant, LossReport, Method, Next, Policy, Record, RecordStep, RetryBudget,
    Rules, Safety, Vitals,
};

use crate::kit::Line;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// The one place in this crate's tests that needs it: a global allocator is an unsafe trait.
#[expect(unsafe_code, reason = "GlobalAlloc can only be implemented so; every call is passed on as it came")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps `alloc`'s contract, and it is the same one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
}

#[test]
fn a_call_is_admitted_sent_answered_lost_and_sent_again_without_an_allocation() {
    let policy = Policy::default();
    let mut line = Line::up();
    let gate = line.machine.gate();
    let mut budget = RetryBudget::new(policy.settings().retry, Instant::ORIGIN);
    let count = allocations(|| {
        for call in 0..1000_u64 {
            let now = Instant::ORIGIN + Duration::from_millis(call);
            black_box(gate.admit(now));
            let extent = Extent { start: call * 100, len: 100 };
            let record = Record::new(Safety::of(Method::CallTool, true, false));
            let flushed = record.step(RecordStep::Write(extent)).unwrap().step(RecordStep::Flush).unwrap();
            black_box(flushed.step(RecordStep::Answer).unwrap());
            black_box(flushed.step(RecordStep::Expire).unwrap());
            for bytes in [0, u64::MAX] {
                let lost = flushed.step(RecordStep::Lose(LossReport::Consumed { bytes })).unwrap();
                let rules = Rules::new(policy.settings(), true, Declared::Safe);
                let next = lost.next(rules, || budget.withdraw(policy.settings().retry, call, now));
                assert!(matches!(next, Some(Next::Again { .. } | Next::Settle(_))));
            }
        }
    });
    assert_eq!(count, 0);

    // The tender's side is free of it as well.
    let generation = Generation::new(1);
    let vitals = Vitals { in_flight: 1, answered: 7, heard_at: line.now, ..Vitals::default() };
    let count = allocations(|| {
        line.machine.handle_vitals(line.now, generation, vitals);
        line.machine.handle_timeout(line.now + Duration::from_secs(31));
        while black_box(line.machine.poll_effect()).is_some() {}
    });
    assert_eq!(count, 0);
}
