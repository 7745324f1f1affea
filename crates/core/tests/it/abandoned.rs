//! A hung server whose callers give up and try again (S26), and the busy one that must not be taken for it.

use std::time::Duration;

use linetender_core::{Admission, Class, Conclusion, Detail, Effect, Event, Instant};

use crate::kit::{Line, millis, secs};

fn probes(line: &Line) -> Vec<Instant> {
    let probe = |(at, effect): &(Instant, Effect)| matches!(effect, Effect::Probe { .. }).then_some(*at);
    line.effects.iter().filter_map(probe).collect()
}

/// The agent calls, gives up after `patience`, and calls again `pause` later, until the line ends or `most` has passed.
/// Returns how long after the first give-up the line ended.
fn keeps_trying(
    line: &mut Line,
    patience: Duration,
    pause: Duration,
    cancels: bool,
    most: Duration,
) -> Option<Duration> {
    line.obedient = false;
    let mut first = None;
    let end = line.now + most;
    while line.now < end {
        let goes = matches!(line.call(), Admission::Go { .. });
        line.in_flight(u32::from(goes));
        line.pass(patience);
        if line.name() == "ending" {
            break;
        }
        first = first.or(Some(line.now));
        if goes {
            line.give_up(cancels);
        }
        line.pass(pause);
        if line.name() == "ending" {
            break;
        }
    }
    let ended = line.effects.iter().find(|(_, effect)| matches!(effect, Effect::Seal { .. }));
    ended.map(|(at, _)| at.since(first.expect("it was given up first")))
}

#[test]
fn a_hung_server_is_replaced_sixty_seconds_after_the_first_give_up_or_with_the_next_call() {
    for (patience, pause) in
        [(secs(3), secs(2)), (secs(60), secs(2)), (secs(1), millis(1)), (secs(7), secs(29))]
    {
        for cancels in [true, false] {
            let mut line = Line::up();
            let took = keeps_trying(&mut line, patience, pause, cancels, secs(1700));
            let took = took.unwrap_or_else(|| panic!("{patience:?} {cancels}: it lives on"));
            // If nobody waits at that time, the next call is held for two probes.
            assert!(
                took >= secs(60) && took <= secs(70) + pause,
                "{patience:?} {pause:?} {cancels}: {took:?}"
            );
            assert_eq!(line.tokens(), 4000, "a hang is charged");
        }
    }
}

#[test]
fn our_deadline_counts_like_a_cancellation_while_others_wait() {
    let mut line = Line::up();
    line.obedient = false;
    line.in_flight(2);
    line.pass(secs(300));
    line.give_up(false);
    let at = line.now;
    while line.name() != "ending" {
        line.jump();
    }
    assert_eq!(line.now.since(at), secs(60));
}

#[test]
fn the_line_is_suspect_and_probed_at_once_and_the_last_probes_end_with_it() {
    let mut line = Line::up();
    line.obedient = false;
    line.in_flight(2);
    line.pass(secs(3));
    let at = line.now;
    line.give_up(true);
    assert_eq!((line.name(), probes(&line)), ("up", vec![at]));
    line.pass(secs(5));
    assert_eq!(line.name(), "suspect", "the first probe went unanswered");
    // Callers that go on giving up must not put off the last probes.
    for _ in 0..51 {
        line.pass(secs(1));
        line.event(Event::Overdue);
        line.event(Event::Trouble);
    }
    assert_eq!(line.name(), "suspect");
    line.pass(millis(3999));
    assert_eq!(line.name(), "suspect");
    line.pass(millis(1));
    assert_eq!((line.name(), line.now), ("ending", at + secs(60)));
    let asked = probes(&line);
    assert_eq!(asked[asked.len() - 2..], [at + secs(50), at + secs(55)]);
}

#[test]
fn a_byte_from_the_server_clears_it() {
    let mut line = Line::up();
    line.in_flight(2);
    line.pass(secs(3));
    line.give_up(true);
    line.pass(secs(59));
    assert_eq!(line.name(), "suspect");
    line.hear();
    assert_eq!((line.name(), line.tokens()), ("up", 5000));
    line.pass(secs(1700));
    assert_eq!(line.name(), "up", "somebody waits, and nobody has given up since");
    line.in_flight(2);
    let again = line.now;
    line.give_up(true);
    line.obedient = false;
    while line.name() != "ending" {
        line.jump();
    }
    assert_eq!(line.now.since(again), secs(60), "counted from the next give-up");
}

#[test]
fn a_server_that_answers_pings_and_no_call_is_neither_ended_nor_charged() {
    let mut line = Line::up();
    line.lively = true;
    let took = keeps_trying(&mut line, secs(3), secs(2), true, secs(3600));
    assert_eq!((took, line.name(), line.tokens()), (None, "up", 5000));
}

#[test]
fn a_busy_server_is_not_touched_while_others_give_up_behind_the_call_it_works_on() {
    let mut line = Line::up();
    // A waits for ninety seconds; B gives up on calls behind it. The ledger shows no give-up of those.
    line.in_flight(2);
    for _ in 0..18 {
        line.pass(secs(5));
        line.in_flight(1);
        line.event(Event::Overdue);
        line.in_flight(2);
    }
    assert!(matches!(line.name(), "up" | "suspect"));
    assert_eq!(line.tokens(), 5000);
    line.answer(1);
    assert_eq!((line.name(), line.generation().number()), ("up", 1));
}

#[test]
fn a_cancelled_call_is_owed_for_a_minute_and_not_for_ever() {
    let mut line = Line::up();
    line.in_flight(1);
    line.pass(secs(10));
    let at = line.now;
    line.give_up(true);
    line.pass(secs(59));
    assert_eq!(line.name(), "suspect", "the caller pressed escape; the server may work on");
    line.obedient = false;
    line.in_flight(1);
    line.pass(secs(1));
    assert_eq!((line.name(), line.now.since(at)), ("ending", secs(60)));
}

#[test]
fn s54_what_works_or_keeps_nobody_waiting_is_left_alone_and_not_for_ever() {
    // Nobody waits.
    let mut line = Line::up();
    line.in_flight(1);
    line.give_up(true);
    line.pass(secs(3600));
    assert_eq!((line.name(), line.generation().number()), ("suspect", 1));
    // It works on what was given up, and somebody waits behind that.
    let mut line = Line::up();
    line.obedient = false;
    line.vitals.works = true;
    line.in_flight(1);
    line.pass(secs(60));
    line.give_up(true);
    let at = line.now;
    line.in_flight(1);
    line.pass(secs(1799));
    assert_eq!(line.name(), "suspect");
    line.pass(secs(46));
    assert_eq!(line.name(), "ending", "the limit for hangs holds for it too");
    assert!(line.now.since(at) <= secs(1845));
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::Hung));
}

#[test]
fn over_http_a_call_that_was_given_up_owes_nothing() {
    let mut line = Line::up();
    line.obedient = false;
    line.vitals.exchanges = true;
    line.in_flight(2);
    line.pass(secs(20));
    let at = line.now;
    line.give_up(true);
    line.pass(secs(5));
    assert_eq!(line.name(), "suspect");
    line.pass(secs(5));
    assert_eq!((line.name(), line.now.since(at)), ("ending", secs(10)), "two probes, and no more");
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::Abandoned));
    // Without a give-up, calls in flight still keep it from ending.
    let mut line = Line::up();
    line.vitals.exchanges = true;
    line.in_flight(2);
    line.event(Event::Trouble);
    line.pass(secs(600));
    assert_eq!(line.name(), "suspect");
}

#[test]
fn with_time_for_one_pair_of_probes_alone_those_end_with_the_line() {
    let mut line = Line::with(|settings| settings.call.abandoned_after = secs(15));
    line.open();
    line.connect();
    line.in_flight(1);
    line.pass(secs(3));
    let at = line.now;
    let took = keeps_trying(&mut line, secs(3), secs(2), true, secs(100));
    assert_eq!(took, Some(secs(15)));
    let asked: Vec<_> = probes(&line).into_iter().map(|probe| probe.since(at)).collect();
    assert_eq!(asked, [secs(3 + 5), secs(3 + 10)]);
}

#[test]
fn a_limit_shorter_than_the_probes_take_is_as_long_as_they_take() {
    let mut line = Line::with(|settings| settings.call.abandoned_after = secs(1));
    line.open();
    line.connect();
    line.obedient = false;
    line.in_flight(2);
    let at = line.now;
    line.give_up(true);
    while line.name() != "ending" {
        line.jump();
    }
    assert_eq!(line.now.since(at), secs(10));
}

#[test]
fn a_probe_that_could_not_be_sent_does_not_end_an_abandoned_line() {
    let mut line = Line::up();
    line.in_flight(2);
    line.give_up(true);
    for _ in 0..20 {
        line.event(Event::ProbeUnsent);
        line.pass(secs(30));
    }
    assert_eq!((line.name(), line.tokens()), ("suspect", 5000));
}

#[test]
fn after_sleep_an_abandoned_line_gets_its_probes_before_it_ends() {
    let mut line = Line::up();
    line.obedient = false;
    line.in_flight(2);
    line.give_up(true);
    line.pass(secs(2));
    line.now = line.now + secs(8 * 3600);
    line.machine.handle_sleep(line.now);
    line.run();
    let (woke, before) = (line.now, probes(&line).len());
    line.pass(secs(39));
    assert_eq!(probes(&line).len(), before + 2);
    line.pass(secs(1));
    assert_eq!(line.name(), "ending");
    assert!(line.now.since(woke) <= secs(40));
}

#[test]
fn a_line_that_drains_is_ended_by_its_drain() {
    let mut line = Line::up();
    line.in_flight(2);
    line.command(linetender_core::Command::Recycle);
    line.give_up(true);
    assert_eq!(line.name(), "draining");
    line.pass(secs(30));
    assert_ne!(line.name(), "draining");
    assert!(!line.cause().leaves().failures().any(|class| class == Class::Silent));
}
