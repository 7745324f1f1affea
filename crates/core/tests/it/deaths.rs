//! The order of a death, and what may not happen out of order.

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Effect, Event, Gate, Generation, Heard, NextTry, Plan,
    Refusal, Settle, Walk,
};

use crate::kit::{Line, millis, secs};

fn held_up() -> Line {
    let mut line = Line::up();
    line.obedient = false;
    line.in_flight(2);
    line.effects.clear();
    line
}

fn names(line: &Line) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Notice(_) => "notice",
        Effect::Dial { .. } => "dial",
        Effect::Probe { .. } => "probe",
        Effect::Seal { .. } => "seal",
        Effect::Drain { .. } => "drain",
        Effect::Settle { settle: Settle::Certain, .. } => "settle certain",
        Effect::Settle { settle: Settle::Residue, .. } => "settle by residue",
        Effect::Settle { settle: Settle::Unknown, .. } => "settle as unknown",
        Effect::Settle { settle: Settle::Own, .. } => "leave the rest",
        Effect::Kill { .. } => "kill",
        Effect::LetGo { .. } => "let go",
        Effect::Close { .. } => "close",
        Effect::Forget { .. } => "forget",
    };
    line.effects.iter().map(|(_, effect)| name(effect)).collect()
}

#[test]
fn an_unplanned_death_is_sealed_told_drained_settled_killed_settled_forgotten_dialled() {
    let mut line = held_up();
    line.lose(Class::Exit);
    assert_eq!(names(&line), ["seal", "notice", "drain"]);
    assert_eq!(line.event(Event::Drained), Heard::Taken);
    assert_eq!(names(&line)[3..], ["settle certain", "kill"]);
    assert_eq!(line.event(Event::NoReader), Heard::Taken);
    assert_eq!(names(&line)[5..], ["settle by residue"]);
    assert_eq!(line.event(Event::Gone(None)), Heard::Taken);
    assert_eq!(names(&line)[6..], ["forget", "notice", "dial"]);
}

#[test]
fn calls_with_exchanges_of_their_own_outlive_a_lost_session() {
    for (exchanges, class, ends, settles) in [
        (true, Class::SessionLost, "let go", "leave the rest"),
        (true, Class::Exit, "kill", "settle as unknown"),
        (false, Class::SessionLost, "kill", "settle as unknown"),
    ] {
        let mut line = held_up();
        line.vitals.exchanges = exchanges;
        line.in_flight(2);
        line.lose(class);
        line.event(Event::Drained);
        assert_eq!(names(&line)[3..], ["settle certain", ends], "{class:?}");
        line.pass(millis(31));
        assert_eq!(names(&line)[5..6], [settles], "{class:?}");
    }
}

#[test]
fn whoever_has_an_exchange_of_its_own_is_left_it_however_long_the_end_takes() {
    let mut line = held_up();
    line.vitals.exchanges = true;
    line.in_flight(2);
    line.lose(Class::SessionLost);
    line.event(Event::Drained);
    line.pass(secs(20));
    let after = &names(&line)[4..];
    assert!(after.contains(&"let go") && !after.contains(&"kill"), "{after:?}");
}

#[test]
fn a_session_that_is_lost_while_something_else_fails_takes_its_calls_along() {
    let mut line = held_up();
    line.vitals.exchanges = true;
    line.in_flight(2);
    line.command(Command::Recycle);
    line.lose(Class::SessionLost);
    line.event(Event::Drained);
    assert_eq!(names(&line).last(), Some(&"kill"), "{:?}", names(&line));
}

#[test]
fn a_planned_end_is_closed_politely() {
    let mut line = held_up();
    line.redial();
    line.event(Event::Drained);
    assert_eq!(names(&line), ["seal", "notice", "drain", "settle certain", "close"]);
}

#[test]
fn a_mixed_end_is_killed_at_once() {
    let mut line = held_up();
    line.command(Command::Recycle);
    line.lose(Class::Exit);
    line.event(Event::Drained);
    assert_eq!(names(&line)[1..], ["seal", "notice", "drain", "settle certain", "kill"]);
}

#[test]
fn the_wait_for_proof_is_bounded() {
    let mut line = held_up();
    line.lose(Class::Transport);
    line.event(Event::Drained);
    let death = line.now;
    line.jump();
    assert_eq!(line.now.since(death), millis(30));
    assert_eq!(names(&line).last(), Some(&"settle as unknown"));
    // A proof that comes later is too late; the tree's end is not.
    assert_eq!(line.event(Event::NoReader), Heard::OutOfPlace);
    assert_eq!(line.event(Event::Gone(None)), Heard::Taken);
    assert_eq!(line.name(), "dialing");
}

#[test]
fn the_wait_for_the_drain_is_bounded_too() {
    let mut line = held_up();
    line.lose(Class::Transport);
    line.pass(millis(29));
    assert_eq!(names(&line), ["seal", "notice", "drain"]);
    line.pass(millis(1));
    assert_eq!(names(&line)[3..], ["settle certain", "kill", "settle as unknown"]);
    assert_eq!(line.event(Event::Drained), Heard::OutOfPlace);
}

#[test]
fn a_tree_that_goes_while_the_rest_is_settled_is_gone() {
    let mut line = held_up();
    line.lose(Class::Exit);
    line.event(Event::Drained);
    assert_eq!(line.event(Event::Gone(None)), Heard::Taken);
    assert_eq!(names(&line)[5..], ["settle by residue", "forget", "notice", "dial"]);

    // Both events before the driver asks what to do.
    let mut line = held_up();
    line.lose(Class::Exit);
    line.event(Event::Drained);
    let (now, generation) = (line.now, line.generation());
    line.machine.handle_event(now, generation, Event::NoReader);
    assert_eq!(line.machine.handle_event(now, generation, Event::Gone(None)), Heard::Taken);
    line.run();
    assert_eq!(names(&line)[5..], ["settle by residue", "forget", "notice", "dial"]);
}

#[test]
fn no_dial_before_the_old_tree_is_gone_however_long_that_takes() {
    let mut line = held_up();
    line.lose(Class::Exit);
    line.event(Event::Drained);
    line.event(Event::NoReader);
    let fell = line.now;
    line.pass(secs(7));
    assert!(matches!(line.call(), Admission::Hold(_)));
    line.pass(secs(1));
    assert_eq!(line.now.since(fell), secs(8));
    assert_eq!(names(&line)[6..], ["notice", "kill"], "it is killed again, and people are told");
    let stuck = Admission::Refuse { why: Refusal::Stuck, next: NextTry::WhenGone };
    assert_eq!(line.call(), stuck);
    line.pass(secs(60));
    assert_eq!(line.count(|effect| matches!(effect, Effect::Kill { .. })), 9);
    assert_eq!(line.count(|effect| matches!(effect, Effect::Notice(_))), 2, "told once");
    assert_eq!(line.count(|effect| matches!(effect, Effect::Dial { .. })), 0);
    line.event(Event::Gone(None));
    assert_eq!(line.name(), "dialing");
}

#[test]
fn a_polite_end_has_its_whole_ladder_before_it_counts_as_stuck() {
    let mut line = held_up();
    line.redial();
    line.event(Event::Drained);
    line.event(Event::NoReader);
    line.pass(millis(11_999));
    assert_eq!(line.count(|effect| matches!(effect, Effect::Kill { .. })), 0);
    line.pass(millis(1));
    assert_eq!(line.count(|effect| matches!(effect, Effect::Kill { .. })), 1);
    line.pass(secs(8));
    assert_eq!(line.count(|effect| matches!(effect, Effect::Kill { .. })), 2);
}

#[test]
fn acknowledgements_before_their_turn_are_out_of_place() {
    let mut line = Line::up();
    for event in [Event::Drained, Event::NoReader, Event::Gone(Some("x")), Event::Started, Event::Dialled] {
        assert_eq!(line.event(event), Heard::OutOfPlace);
    }
    line.obedient = false;
    line.lose(Class::Exit);
    for event in [Event::NoReader, Event::Gone(Some("early")), Event::Trouble, Event::Overdue] {
        assert_eq!(line.event(event), Heard::OutOfPlace);
    }
    assert_eq!(line.cause().notes().count(), 0, "a refused event leaves no note");
    line.event(Event::Drained);
    assert_eq!(line.event(Event::Drained), Heard::OutOfPlace);
}

#[test]
fn a_dial_that_fails_dies_in_the_same_order() {
    let mut line = Line::new();
    line.open();
    line.effects.clear();
    line.lose(Class::Handshake);
    let expected = [
        "seal",
        "notice",
        "drain",
        "settle certain",
        "kill",
        "settle by residue",
        "forget",
        "notice",
        "dial",
    ];
    assert_eq!(names(&line), expected);
}

#[test]
fn closing_ends_the_generation_and_nothing_wakes_the_line_again() {
    let mut line = held_up();
    assert_eq!(line.command(Command::Close), CommandOutcome::Started);
    assert_eq!(line.command(Command::Close), CommandOutcome::Closed);
    assert_eq!(line.redial(), CommandOutcome::Closed);
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert_eq!(line.name(), "closed");
    assert_eq!(line.machine.poll_timeout(), None);
    assert_eq!(line.call(), Admission::Refuse { why: Refusal::Closed, next: NextTry::Never });
    assert_eq!(line.command(Command::Open), CommandOutcome::Closed);
}

#[test]
fn what_comes_after_a_death_can_be_changed_while_it_lasts() {
    let mut line = held_up();
    line.event(Event::Lost(Cause::planned(Plan::IdleStop)));
    assert_eq!(line.machine.gate(), Gate::Knock);
    assert!(matches!(line.call(), Admission::Hold(_)), "somebody needs it after all");
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert_eq!(line.name(), "waiting", "a stop a moment after the dial: the free path keeps its distance");
    line.until_dial();
}

/// Runs the effects of a good death, but with two of them swapped: the walk must notice.
#[test]
fn a_driver_that_runs_effects_out_of_order_is_noticed() {
    let mut line = held_up();
    let first = line.generation();
    line.lose(Class::Exit);
    for event in [Event::Drained, Event::NoReader, Event::Gone(None)] {
        line.event(event);
    }
    let good: Vec<_> = line.effects.iter().map(|(_, effect)| *effect).collect();
    let walk = |order: &[Effect]| {
        let mut walk = Walk::default();
        walk.done(Effect::Dial { generation: first }).unwrap();
        order.iter().try_for_each(|&effect| walk.done(effect))
    };
    assert_eq!(walk(&good), Ok(()));
    for at in 0..good.len() - 1 {
        let mut swapped = good.clone();
        swapped.swap(at, at + 1);
        // News of the next state may be told a little early or late.
        let pair = (good[at], good[at + 1]);
        let harmless = matches!(
            pair,
            (Effect::Forget { .. }, Effect::Notice(_)) | (Effect::Notice(_), Effect::Dial { .. })
        );
        assert_eq!(walk(&swapped).is_ok(), harmless, "{:?}", good[at]);
    }
    for left_out in 0..good.len() - 1 {
        let mut without = good.clone();
        let gone = without.remove(left_out);
        // The last notice is of the new state, not of the death.
        let optional = matches!(gone, Effect::Notice(_)) && left_out > 1;
        assert_eq!(walk(&without).is_ok(), optional, "{gone:?}");
    }
    let stale = Effect::Seal { generation: Generation::NONE };
    let misstep = walk(&[stale]).unwrap_err();
    assert_eq!((misstep.after.0, misstep.ran), (first, stale));
}

#[test]
fn a_live_line_may_be_probed_and_a_dead_one_not() {
    let generation = Generation::NONE.next();
    let mut walk = Walk::new();
    assert!(walk.done(Effect::Probe { generation }).is_err());
    walk.done(Effect::Notice(Gate::Knock)).unwrap();
    walk.done(Effect::Dial { generation }).unwrap();
    walk.done(Effect::Probe { generation }).unwrap();
    walk.done(Effect::Seal { generation }).unwrap();
    assert!(walk.done(Effect::Probe { generation }).is_err());
}
