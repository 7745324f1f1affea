//! Who waits, for what, how long; and the clocks of a dial.

use std::time::Duration;

use linetender_core::{
    Admission, Class, Command, CommandOutcome, Conclusion, Detail, Effect, Event, Gate, Heard, Instant,
    NextTry, Refusal,
};

use crate::kit::{Line, millis, secs};

fn held(line: &mut Line) -> Duration {
    match line.call() {
        Admission::Hold(held) => held.until.since(line.now),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_call_dials_and_waits_as_long_as_a_server_may_take_to_start() {
    let mut line = Line::new();
    assert_eq!(line.machine.gate(), Gate::Knock);
    assert_eq!(held(&mut line), secs(60));
    assert_eq!((line.name(), line.dials()), ("dialing", 1));
    assert_eq!(held(&mut line), secs(60));
    assert_eq!(line.dials(), 1);
}

#[test]
fn later_dials_are_waited_for_a_little() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    assert_eq!(line.name(), "dialing");
    assert_eq!(held(&mut line), secs(5));
}

#[test]
fn a_call_is_not_kept_waiting_for_a_dial_it_would_not_live_to_see() {
    let mut line = Line::new();
    line.open();
    let cause = linetender_core::Cause::failed(Class::Overload, "503").with_retry_after(secs(20));
    line.event(Event::Lost(cause));
    assert_eq!(line.name(), "waiting");
    let next = line.now + secs(20);
    assert_eq!(line.call(), Admission::Refuse { why: Refusal::Waiting, next: NextTry::At(next) });
    line.pass(millis(15_001));
    assert_eq!(held(&mut line), secs(5));
}

#[test]
fn waiting_for_the_dial_limit_is_neither_start_time_nor_failure() {
    let mut line = Line::new();
    line.open();
    assert_eq!(line.machine.poll_timeout(), None);
    line.pass(secs(3600));
    assert_eq!(line.name(), "dialing");
    line.event(Event::Started);
    assert_eq!(line.machine.poll_timeout(), Some(line.now + secs(60)));
}

#[test]
fn a_server_that_says_nothing_has_the_start_limit_and_one_that_talks_the_handshake_limit() {
    let mut line = Line::new();
    line.open();
    line.event(Event::Started);
    line.obedient = false;
    line.pass(secs(59));
    assert_eq!(line.name(), "dialing");
    line.pass(secs(1));
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::StartTimeout));

    let mut line = Line::new();
    line.open();
    line.event(Event::Started);
    line.pass(secs(45));
    assert_eq!(line.event(Event::FirstByte), Heard::Taken);
    assert_eq!(line.event(Event::FirstByte), Heard::OutOfPlace);
    line.obedient = false;
    line.pass(secs(29));
    assert_eq!(line.name(), "dialing");
    line.pass(secs(1));
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::HandshakeTimeout));
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn a_draining_line_takes_no_new_calls_and_ends_when_the_old_ones_have() {
    let mut line = Line::up();
    line.in_flight(2);
    assert_eq!(line.command(Command::Recycle), CommandOutcome::Started);
    assert_eq!(line.name(), "draining");
    assert_eq!(held(&mut line), secs(5));
    line.in_flight(1);
    assert_eq!(line.name(), "draining");
    line.pass(millis(200));
    line.answer(1);
    line.in_flight(0);
    assert_eq!((line.name(), line.tokens()), ("dialing", 5000));
}

#[test]
fn a_drain_is_bounded() {
    let mut line = Line::up();
    line.in_flight(1);
    line.command(Command::Recycle);
    for event in [Event::Trouble, Event::Overdue] {
        assert_eq!(line.event(event), Heard::Taken);
    }
    assert_eq!(line.count(|effect| matches!(effect, Effect::Probe { .. })), 0, "its end is near anyway");
    line.pass(millis(29_999));
    assert_eq!(line.name(), "draining");
    line.pass(millis(1));
    assert_ne!(line.name(), "draining");
}

#[test]
fn an_idle_line_has_nothing_to_drain() {
    let mut line = Line::up();
    line.pass(secs(1));
    line.answer(1);
    line.command(Command::Recycle);
    assert_eq!(line.name(), "dialing");
}

#[test]
fn an_idle_stop_stays_down_until_somebody_calls() {
    let mut line = Line::up();
    line.answer(1);
    line.pass(secs(1));
    line.command(Command::IdleStop);
    assert_eq!((line.name(), line.machine.poll_timeout()), ("idle", None));
    assert_eq!(held(&mut line), secs(5));
    assert_eq!(line.name(), "dialing");
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let mut line = Line::up();
    let deadline = line.machine.poll_timeout().unwrap();
    line.machine.handle_timeout(Instant::ORIGIN);
    line.machine.handle_event(Instant::ORIGIN, line.generation(), Event::ProbeAnswered);
    assert_eq!(line.machine.poll_timeout(), Some(deadline));
}

#[test]
fn a_timer_that_fires_early_does_nothing() {
    let mut line = Line::up();
    let before = line.machine.clone();
    line.machine.handle_timeout(line.now);
    assert_eq!(line.machine, before);
}

#[test]
fn a_timer_that_fires_late_still_does_its_work() {
    let mut line = Line::up();
    line.now = line.now + secs(300);
    line.machine.handle_timeout(line.now);
    line.run();
    assert_eq!(line.count(|effect| matches!(effect, Effect::Probe { .. })), 1);
}

#[test]
fn an_idle_line_is_about_a_kilobyte() {
    let size = size_of::<linetender_core::Machine<std::sync::Arc<str>>>();
    assert!(size <= 1024, "{size}");
}
