//! The three documents that the product grew out of, as regressions.
//!
//! 1. livekit-agents 6298: notice death, fail loudly.
//! 2. hermes-agent 32111: a budget that tells planned from unplanned.
//! 3. nemo-agent-toolkit 1935: one owner of the transport.

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Detail, Effect, Event, Gate, Heard, Leaf, NoteKind,
    Plan, State,
};

use crate::kit::{Line, millis, secs};

// Document 1.

#[test]
fn a_death_flips_the_state_and_fails_callers_with_a_cause() {
    let mut line = Line::up();
    line.obedient = false;
    line.in_flight(3);
    line.event(Event::Lost(Cause::failed(Class::Exit, "signal 9")));
    assert_eq!(line.name(), "ending");
    assert_eq!(line.cause().headline().detail, Detail::Seen("signal 9"));
    assert!(matches!(line.call(), Admission::Hold(_)), "nobody is sent into the dead generation");
    let generation = line.generation();
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    let settled =
        line.count(|effect| matches!(effect, Effect::Settle { generation: of, .. } if *of == generation));
    assert_eq!(settled, 2, "every call of it gets its verdict");
}

#[test]
fn a_tool_error_is_an_answer_and_flips_nothing() {
    let mut line = Line::up();
    line.in_flight(1);
    // To the machine a tool error is what any answer is: one more caller served.
    let effects = line.effects.len();
    line.answer(1);
    line.in_flight(0);
    assert_eq!(line.name(), "up");
    assert_eq!(line.effects.len(), effects);
}

// Document 2.

#[test]
fn a_thousand_planned_teardowns_keep_the_full_budget() {
    let mut line = Line::up();
    for _ in 0..1000 {
        line.answer(1);
        line.pass(secs(1));
        assert_eq!(line.command(Command::Recycle), CommandOutcome::Started);
        line.until_dial();
        line.connect();
    }
    assert_eq!(line.tokens(), 5000);
    assert_eq!(line.dials(), 1001);
}

#[test]
fn a_planned_teardown_that_errors_keeps_the_budget_too() {
    let mut line = Line::up();
    for _ in 0..1000 {
        line.answer(1);
        line.pass(secs(1));
        line.obedient = false;
        line.command(Command::Recycle);
        line.event(Event::Drained);
        // The transport raises while it is torn down: a cleanup artefact, and the exit that we caused.
        line.event(Event::Lost(Cause::failed(Class::Transport, "lock not held")));
        line.event(Event::Gone(Some("exit status 143")));
        line.obedient = true;
        line.until_dial();
        line.connect();
    }
    assert_eq!(line.tokens(), 5000);
}

#[test]
fn budget_plus_one_real_failures_park() {
    let mut line = Line::up();
    for failure in 1..=5 {
        line.lose(Class::Transport);
        line.until_dial();
        line.connect();
        assert_eq!(line.tokens(), 5000 - failure * 1000);
    }
    line.lose(Class::Transport);
    assert_eq!(line.name(), "parked");
    assert_eq!(line.dials(), 6);
}

#[test]
fn a_mixed_end_is_charged() {
    let mut line = Line::up();
    line.in_flight(1);
    line.command(Command::Recycle);
    assert_eq!(line.name(), "draining");
    line.obedient = false;
    line.lose(Class::Exit);
    assert_eq!(line.tokens(), 4000);
    let leaves = line.cause().leaves();
    assert!(leaves.has(Leaf::Planned(Plan::Recycle)) && leaves.has(Leaf::Failed(Class::Exit)), "{leaves:?}");

    // The same when the wire saw both at once.
    let mut line = Line::up();
    let both = Cause::planned(Plan::Recycle).join(Cause::failed(Class::Transport, "refused"));
    line.event(Event::Lost(both));
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn a_crash_is_charged_also_when_somebody_asked_for_a_redial_a_moment_before() {
    for command in [Command::Redial, Command::Recycle] {
        let mut line = Line::up();
        line.obedient = false;
        line.command(command);
        assert_eq!((line.name(), line.tokens()), ("ending", 5000));
        line.event(Event::Lost(Cause::failed(Class::Exit, "segmentation fault")));
        assert_eq!(line.tokens(), 4000);
        assert_eq!(line.cause().headline().detail, Detail::Seen("segmentation fault"));
        line.event(Event::Drained);
        assert_eq!(
            line.count(|effect| matches!(effect, Effect::Kill { .. })),
            1,
            "and killed, not asked to go"
        );
        // From then on it dies of what we did.
        line.event(Event::Lost(Cause::failed(Class::Exit, "signal 9")));
        assert_eq!((line.tokens(), line.cause().notes().count()), (4000, 2));
    }
}

#[test]
fn closing_stays_closing_when_the_server_crashes_meanwhile() {
    let mut line = Line::up();
    line.obedient = false;
    line.command(Command::Close);
    line.event(Event::Lost(Cause::failed(Class::Exit, "crash")));
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert_eq!(line.name(), "closed");
}

#[test]
fn the_free_path_cannot_spin() {
    // A planned end right after the handshake, for ever: nothing was proven.
    let mut line = Line::up();
    let start = line.now;
    let mut last_dial = start;
    for _ in 0..40 {
        line.redial();
        line.until_dial();
        assert!(line.now.since(last_dial) >= millis(100), "two dials keep their distance");
        last_dial = line.now;
        line.connect();
    }
    assert!(line.now.since(start) > secs(60), "and the distance grows: {:?}", line.now.since(start));
    assert_eq!(line.tokens(), 5000);
}

#[test]
fn the_free_path_through_an_idle_stop_cannot_spin_either() {
    let mut line = Line::up();
    let start = line.now;
    let mut last_dial = start;
    for _ in 0..40 {
        line.command(Command::IdleStop);
        assert_eq!(line.name(), "idle");
        line.call();
        line.until_dial();
        assert!(line.now.since(last_dial) >= millis(100));
        last_dial = line.now;
        line.connect();
    }
    assert!(line.now.since(start) > secs(60), "{:?}", line.now.since(start));
}

#[test]
fn a_proven_generation_is_replaced_at_once_and_the_distance_forgotten() {
    let mut line = Line::up();
    for _ in 0..10 {
        line.redial();
        line.until_dial();
        line.connect();
    }
    line.pass(secs(1));
    line.answer(1);
    line.redial();
    assert_eq!(line.name(), "dialing", "no wait after service");
    // Also while tokens are missing: a planned end of a proven generation has nothing to do with them.
    line.connect();
    for _ in 0..3 {
        line.lose(Class::Exit);
        line.until_dial();
        line.connect();
    }
    line.pass(secs(1));
    line.answer(1);
    line.redial();
    assert_eq!(line.name(), "dialing");
}

// Document 3.

#[test]
fn reconnects_asked_from_many_tasks_are_one_dial_run_by_the_owner() {
    let mut line = Line::up();
    line.answer(1);
    line.pass(secs(1));
    let seen = line.generation();
    let asked: Vec<_> = (0..50).map(|_| line.redial_if(seen)).collect();
    assert_eq!(asked.iter().filter(|&&asked| asked == CommandOutcome::Started).count(), 1);
    assert_eq!(asked.iter().filter(|&&asked| asked == CommandOutcome::Joined).count(), 49);
    assert_eq!(line.dials(), 2);
    line.connect();
    // The slow ones, who saw the old generation fail, do not tear down the fresh one.
    assert_eq!(line.redial_if(seen), CommandOutcome::Joined);
    assert_eq!(line.name(), "up");
    assert_eq!(line.dials(), 2);
}

#[test]
fn redials_asked_while_a_generation_ends_are_not_heard_twice() {
    let mut line = Line::up();
    line.pass(secs(1));
    line.obedient = false;
    let seen = line.generation();
    line.lose(Class::Exit);
    line.effects.clear();
    for _ in 0..50 {
        assert_eq!(line.redial_if(seen), CommandOutcome::Joined);
        assert_eq!(line.redial(), CommandOutcome::Joined, "the dial comes as soon as it can");
    }
    assert_eq!(line.effects.len(), 0, "nothing changed, so nobody is told");
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert_eq!(line.dials(), 1);
}

#[test]
fn callers_that_ask_for_a_redial_on_every_death_cannot_outrun_the_budget() {
    let mut line = Line::up();
    let mut lives = 1;
    while line.name() != "parked" {
        let seen = line.generation();
        line.lose(Class::Exit);
        line.redial_if(seen);
        if line.name() != "parked" {
            line.until_dial();
            line.connect();
        }
        lives += 1;
        assert!(lives < 20);
    }
    assert_eq!(line.redial_if(line.generation()), CommandOutcome::Joined);
    assert_eq!(line.name(), "parked");
}

#[test]
fn everything_of_the_old_generation_is_forgotten_before_the_new_one_is_dialled() {
    let mut line = Line::up();
    line.answer(1);
    line.pass(secs(1));
    let old = line.generation();
    line.redial();
    let order: Vec<_> = line.effects.iter().map(|(_, effect)| *effect).collect();
    let forget = order.iter().position(|effect| *effect == Effect::Forget { generation: old }).unwrap();
    let dial = order.iter().position(|effect| *effect == Effect::Dial { generation: old.next() }).unwrap();
    assert!(forget < dial);
}

#[test]
fn the_late_event_of_an_old_generation_changes_nothing() {
    let mut line = Line::up();
    let old = line.generation();
    line.lose(Class::Exit);
    line.until_dial();
    line.connect();
    let before = line.machine.clone();
    for event in [
        Event::Lost(Cause::failed(Class::Exit, "late")),
        Event::Dialled,
        Event::Trouble,
        Event::ProbeFailed,
        Event::ProbeAnswered,
        Event::Overdue,
        Event::Drained,
        Event::NoReader,
        Event::Gone(Some("late")),
    ] {
        assert_eq!(line.machine.handle_event(line.now, old, event), Heard::Stale);
    }
    assert_eq!(line.machine.handle_vitals(line.now, old, line.vitals), Heard::Stale);
    assert_eq!(line.machine, before);
    assert!(matches!(line.machine.gate(), Gate::Go { .. }));
}

#[test]
fn fifty_callers_of_one_death_are_one_dial() {
    let mut line = Line::up();
    let seen = line.generation();
    line.in_flight(50);
    line.lose(Class::Exit);
    for _ in 0..50 {
        assert_eq!(line.redial_if(seen), CommandOutcome::Joined);
        assert!(matches!(line.call(), Admission::Hold(_)));
    }
    assert_eq!(line.dials(), 2);
}

#[test]
fn a_cleanup_error_never_masks_the_cause() {
    let mut line = Line::up();
    line.obedient = false;
    line.event(Event::Lost(Cause::failed(Class::Exit, "segmentation fault")));
    line.event(Event::Lost(Cause::failed(Class::Transport, "broken pipe")));
    line.event(Event::Drained);
    line.event(Event::Gone(Some("could not unlink the socket")));
    let State::Dialing(dialing) = line.machine.state() else { panic!("{}", line.name()) };
    let cause = dialing.last.as_ref().unwrap();
    assert_eq!(cause.headline().detail, Detail::Seen("segmentation fault"));
    assert_eq!(cause.headline().kind, NoteKind::Leaf(Leaf::Failed(Class::Exit)));
    assert_eq!(cause.leaves().iter().count(), 1, "what follows a death is no second reason for it");
    assert!(cause.notes().all(|note| note.kind == NoteKind::Teardown));
    assert_eq!(cause.notes().count(), 2);
    assert_eq!(line.tokens(), 4000, "and it is charged once");
}
