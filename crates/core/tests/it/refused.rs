//! H25: nobody listens at the address of a live line while its server restarts.

use linetender_core::{Effect, Event, Gate, Heard};

use crate::kit::{Line, millis, secs};

fn probes(line: &Line) -> usize {
    line.effects.iter().filter(|(_, effect)| matches!(effect, Effect::Probe { .. })).count()
}

fn holds(line: &Line) -> bool {
    line.machine.gate() == Gate::Hold { patience: secs(5), from: linetender_core::Instant::ORIGIN }
}

#[test]
fn a_refused_connection_holds_the_calls_and_the_tender_alone_tries() {
    let mut line = Line::up();
    for _ in 0..50 {
        assert_eq!(line.event(Event::Refused), Heard::Taken);
    }
    assert_eq!((probes(&line), line.name()), (1, "suspect"));
    assert!(holds(&line), "{:?}", line.machine.gate());
    // Restarted after three seconds: tried all the while, and never in a storm.
    let start = line.now;
    while line.now.since(start) < secs(3) {
        line.event(Event::ProbeRefused);
        line.event(Event::Refused);
        assert!(holds(&line));
        line.pass(millis(10));
    }
    assert!((8..=24).contains(&probes(&line)), "{}", probes(&line));
    while line.event(Event::ProbeAnswered) != Heard::Taken {
        line.pass(millis(10));
    }
    assert_eq!((line.name(), line.tokens(), line.generation().number()), ("up", 5000, 1));
    assert!(matches!(line.machine.gate(), Gate::Go { .. }));
}

#[test]
fn a_server_that_stays_away_ends_its_generation_in_the_time_of_a_silent_one() {
    let mut line = Line::up();
    line.event(Event::Refused);
    let start = line.now;
    while line.generation().number() == 1 {
        line.event(Event::ProbeRefused);
        line.pass(millis(10));
        assert!(line.now.since(start) < secs(12), "{}", line.name());
    }
    assert!(line.now.since(start) >= secs(10));
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn exchanges_that_are_waited_for_run_on_while_nobody_takes_new_ones() {
    let mut line = Line::up();
    line.vitals.in_flight = 1;
    line.event(Event::Refused);
    for _ in 0..3000 {
        line.event(Event::ProbeRefused);
        // What an old connection brings does not mean that somebody takes a new one.
        line.vitals.heard_at = line.now;
        line.pass(millis(10));
        assert!(holds(&line));
    }
    assert_eq!((line.name(), line.generation().number()), ("suspect", 1));
}

#[test]
fn a_probe_that_fails_in_another_way_keeps_no_call_from_the_server() {
    for event in [Event::ProbeFailed, Event::ProbeUnsent] {
        let mut line = Line::up();
        line.event(Event::Refused);
        assert_eq!(line.event(event), Heard::Taken);
        assert!(matches!(line.machine.gate(), Gate::Go { .. }));
    }
}
