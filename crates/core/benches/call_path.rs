//! What one call costs the core. `cargo bench -p linetender-core`

use std::hint::black_box;
use std::time::Duration;

use linetender_core::{
    Command, Declared, Event, Extent, Gate, Instant, LossReport, Machine, Method, Policy, Record, RecordStep,
    RetryBudget, Rules, Safety, Vitals,
};

fn main() {
    divan::main();
}

fn up() -> Machine<()> {
    let now = Instant::ORIGIN;
    let mut machine = Machine::new(Policy::default(), 1, now);
    machine.handle_command(now, Command::Open);
    while machine.poll_effect().is_some() {}
    machine.handle_event(now, machine.generation(), Event::Dialled);
    while machine.poll_effect().is_some() {}
    machine
}

fn flushed() -> Record {
    let record = Record::new(Safety::of(black_box(Method::CallTool), false, false));
    let writing = record.step(RecordStep::Write(Extent { start: 1000, len: 100 })).unwrap();
    writing.step(RecordStep::Flush).unwrap()
}

/// The whole decision of a call that goes well: admitted, written, flushed, answered.
#[divan::bench]
fn answered_call(bencher: divan::Bencher) {
    let gate: Gate = up().gate();
    bencher.bench(|| {
        black_box(black_box(gate).admit(black_box(Instant::ORIGIN)));
        black_box(flushed().step(RecordStep::Answer))
    });
}

/// The same for one that is lost, counted as not executed, and sent again.
#[divan::bench]
fn lost_call(bencher: divan::Bencher) {
    let policy = Policy::default();
    let mut budget = RetryBudget::new(policy.settings().retry, Instant::ORIGIN);
    bencher.bench_local(move || {
        let report = LossReport::Consumed { bytes: black_box(1050) };
        let lost = flushed().step(RecordStep::Lose(report)).unwrap();
        let rules = Rules::new(policy.settings(), true, Declared::NotYet);
        black_box(lost.next(rules, || budget.withdraw(policy.settings().retry, 1, Instant::ORIGIN)))
    });
}

/// What the tender pays, however many calls there were: vitals in, next timer out.
#[divan::bench]
fn vitals(bencher: divan::Bencher) {
    let mut machine = up();
    let mut now = Instant::ORIGIN;
    let mut answered = 0;
    bencher.bench_local(move || {
        now = now + Duration::from_millis(1);
        answered += 100;
        let vitals = Vitals { in_flight: 1, answered, heard_at: now, ..Vitals::default() };
        machine.handle_vitals(now, machine.generation(), vitals);
        black_box(machine.poll_effect());
        black_box(machine.poll_timeout())
    });
}
