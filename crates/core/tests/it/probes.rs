//! When a line is probed, and what silence means.

use linetender_core::{Admission, Class, Conclusion, Detail, Effect, Event, Gate, Heard};

use crate::kit::{Line, millis, secs};

fn probes(line: &Line) -> usize {
    line.count(|effect| matches!(effect, Effect::Probe { .. }))
}

#[test]
fn s51_an_idle_server_that_says_nothing_is_replaced_when_a_call_comes() {
    let mut line = Line::up();
    let up = line.now;
    line.pass(secs(30));
    assert_eq!((probes(&line), line.name()), (1, "up"));
    line.pass(secs(5));
    assert_eq!((probes(&line), line.name()), (2, "suspect"));
    assert!(matches!(line.machine.gate(), Gate::Go { .. }), "suspect still admits");
    line.obedient = false;
    // It may compute, or wait for a network: nobody knows, and nobody waits.
    while line.now.since(up) < secs(120) {
        assert!(matches!(line.machine.gate(), Gate::Go { .. }));
        line.jump();
    }
    let asked = probes(&line);
    line.pass(secs(3600));
    assert!(probes(&line) <= asked + 2, "the pipe of a server that does not read must not fill");
    assert_eq!(line.name(), "suspect");
    let called = line.now;
    assert!(matches!(line.call(), Admission::Hold(_)), "the call is held");
    line.pass(secs(9));
    assert_eq!(line.name(), "suspect");
    line.pass(secs(1));
    assert_eq!((line.name(), line.now.since(called)), ("ending", secs(10)));
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::ProbesUnanswered));
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn s51_a_silent_server_that_works_or_speaks_again_keeps_its_calls() {
    let mut line = Line::up();
    line.vitals.works = true;
    line.pass(secs(3600));
    assert!(
        matches!(line.call(), Admission::Go { .. }),
        "an index is being built: the call waits in the pipe"
    );
    assert_eq!((line.name(), line.generation().number()), ("suspect", 1));
    line.vitals.works = false;
    line.pass(secs(60));
    assert!(matches!(line.call(), Admission::Hold(_)));
    line.hear();
    assert_eq!(line.name(), "up");
    assert!(matches!(line.call(), Admission::Go { .. }));
}

#[test]
fn a_line_that_talks_is_not_probed() {
    let mut line = Line::up();
    for _ in 0..100 {
        line.pass(secs(29));
        line.answer(1);
    }
    assert_eq!(probes(&line), 0);
    line.pass(secs(30));
    assert_eq!(probes(&line), 1, "keepalive counts from the last sign of life");
}

#[test]
fn any_sign_of_life_answers_a_probe() {
    for sign in [true, false] {
        let mut line = Line::up();
        line.pass(secs(36));
        assert_eq!(line.name(), "suspect");
        if sign {
            assert_eq!(line.event(Event::ProbeAnswered), Heard::Taken);
        } else {
            line.vitals.heard_at = line.now;
            line.pass(millis(0));
        }
        assert_eq!(line.name(), "up");
        line.pass(secs(29));
        assert_eq!(probes(&line), 2);
        line.pass(secs(1));
        assert_eq!((probes(&line), line.name()), (3, "up"), "and the count of misses starts anew");
    }
}

#[test]
fn an_answer_while_a_probe_is_out_answers_it() {
    let mut line = Line::up();
    line.pass(secs(30));
    line.now = line.now + secs(1);
    line.answer(1);
    assert_eq!(line.machine.poll_timeout(), Some(line.now + secs(30)), "nothing is missed any more");
}

#[test]
fn a_sign_of_life_from_the_future_is_one_from_now() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    line.until_dial();
    line.connect();
    line.vitals.heard_at = line.now + secs(3600);
    line.pass(millis(0));
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn what_was_heard_before_the_probe_does_not_answer_it() {
    let mut line = Line::up();
    line.pass(secs(36));
    line.vitals.heard_at = Line::new().now + secs(34);
    line.pass(millis(0));
    assert_eq!(line.name(), "suspect");
}

#[test]
fn a_busy_line_is_never_probed_just_for_being_quiet() {
    let mut line = Line::up();
    line.in_flight(1);
    line.pass(secs(3600));
    assert_eq!((probes(&line), line.name()), (0, "up"));
}

#[test]
fn a_busy_single_threaded_server_is_never_killed_for_not_answering_a_probe() {
    let mut line = Line::up();
    line.in_flight(1);
    line.pass(secs(300));
    // The quiet limit: the agent owns the deadline, so the call stays in flight.
    line.event(Event::Overdue);
    assert_eq!((probes(&line), line.name()), (1, "up"));
    line.pass(secs(10));
    assert_eq!((probes(&line), line.name()), (2, "suspect"), "two probes unanswered, and it lives");
    line.pass(secs(1200));
    assert_eq!((line.name(), line.tokens()), ("suspect", 5000));
    assert!(matches!(line.machine.gate(), Gate::Go { .. }));
    line.answer(1);
    assert_eq!(line.name(), "up");
}

#[test]
fn silence_as_long_as_the_hang_limit_ends_even_a_busy_line() {
    let mut line = Line::up();
    line.in_flight(1);
    let heard = line.now;
    line.pass(secs(300));
    line.event(Event::Overdue);
    line.obedient = false;
    while line.name() != "ending" {
        line.jump();
    }
    let silent = line.now.since(heard);
    assert!(silent >= secs(1800) && silent <= secs(1800 + 30 + 5), "{silent:?}");
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::Hung));
}

#[test]
fn a_timed_out_call_is_not_a_death_but_unanswered_probes_after_it_are_once_a_call_comes() {
    let mut line = Line::up();
    line.in_flight(1);
    line.pass(secs(300));
    // The library owns the deadline: the call is withdrawn, and the line is idle again.
    line.in_flight(0);
    line.event(Event::Overdue);
    assert_eq!(line.name(), "up");
    line.pass(secs(5));
    assert_eq!(line.name(), "suspect");
    line.obedient = false;
    line.pass(secs(5));
    assert_eq!(line.name(), "suspect", "nobody waits");
    assert!(matches!(line.call(), Admission::Hold(_)));
    line.pass(secs(10));
    assert_eq!(line.name(), "ending");

    // The same with a server that was merely slow.
    let mut line = Line::up();
    line.lively = true;
    line.in_flight(1);
    line.pass(secs(300));
    line.in_flight(0);
    line.event(Event::Overdue);
    assert_eq!(line.name(), "up");
    assert_eq!(line.machine.poll_timeout(), Some(line.now + secs(30)));
}

#[test]
fn an_overdue_call_asks_for_one_probe_not_one_each() {
    let mut line = Line::up();
    line.in_flight(50);
    for _ in 0..50 {
        assert_eq!(line.event(Event::Overdue), Heard::Taken);
    }
    assert_eq!(probes(&line), 1);
}

#[test]
fn trouble_makes_a_line_suspect_with_one_probe_now() {
    let mut line = Line::up();
    for _ in 0..10 {
        assert_eq!(line.event(Event::Trouble), Heard::Taken);
    }
    assert_eq!((probes(&line), line.name()), (1, "suspect"));
    assert!(matches!(line.machine.gate(), Gate::Go { .. }));
    line.event(Event::ProbeAnswered);
    assert_eq!(line.name(), "up");
}

#[test]
fn trouble_during_a_probe_does_not_start_another() {
    let mut line = Line::up();
    line.pass(secs(30));
    line.event(Event::Trouble);
    assert_eq!((probes(&line), line.name()), (1, "suspect"));
}

#[test]
fn a_probe_that_is_refused_at_once_ends_nothing_sooner_than_silence_would() {
    let mut line = Line::up();
    line.vitals.exchanges = true;
    line.event(Event::Trouble);
    assert_eq!(line.event(Event::ProbeFailed), Heard::Taken);
    assert_eq!(line.event(Event::ProbeFailed), Heard::OutOfPlace);
    let start = line.now;
    line.pass(millis(4999));
    assert_eq!(probes(&line), 1);
    line.pass(millis(1));
    assert_eq!(probes(&line), 2);
    // A server that restarted in the meantime answers the second.
    line.event(Event::ProbeAnswered);
    assert_eq!((line.name(), line.tokens()), ("up", 5000));

    line.event(Event::Trouble);
    line.event(Event::ProbeFailed);
    line.pass(secs(5));
    line.event(Event::ProbeFailed);
    line.obedient = false;
    line.pass(secs(5));
    assert_eq!(line.name(), "ending");
    assert!(line.now.since(start) >= secs(15));
}

#[test]
fn a_keepalive_probe_that_is_refused_makes_the_line_suspect() {
    let mut line = Line::up();
    line.pass(secs(30));
    line.event(Event::ProbeFailed);
    assert_eq!(line.name(), "suspect");
}

#[test]
fn a_probe_that_could_not_be_sent_is_held_against_nobody() {
    for busy in [false, true] {
        let mut line = Line::up();
        if busy {
            line.vitals.in_flight = 1;
        }
        line.event(Event::Trouble);
        // Far more often than a silent server is asked.
        for _ in 0..10 {
            assert_eq!(line.event(Event::ProbeUnsent), Heard::Taken);
            assert_eq!(line.event(Event::ProbeUnsent), Heard::OutOfPlace, "it was told of");
            assert_eq!((line.name(), line.tokens()), ("suspect", 5000));
            line.pass(secs(30));
        }
        assert_eq!(probes(&line), 11, "and it is tried again");
        line.event(Event::ProbeAnswered);
        assert_eq!((line.name(), line.tokens()), ("up", 5000));
    }
}

#[test]
fn silence_earns_nothing() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    line.until_dial();
    line.connect();
    line.in_flight(1);
    line.pass(secs(600));
    assert_eq!(line.tokens(), 4000);
    line.answer(1);
    assert_eq!(line.tokens(), 5000, "it was up all the time, as it turns out");
}

#[test]
fn trouble_on_a_suspect_line_probes_again_now() {
    let mut line = Line::up();
    line.in_flight(1);
    line.event(Event::Trouble);
    line.pass(secs(11));
    assert_eq!((probes(&line), line.name()), (2, "suspect"));
    line.event(Event::Trouble);
    assert_eq!(probes(&line), 3);
}

#[test]
fn after_sleep_a_busy_line_admits_calls_again_even_if_probes_go_unanswered() {
    let mut line = Line::up();
    line.in_flight(1);
    line.machine.handle_sleep(line.now);
    line.run();
    line.call();
    line.pass(secs(11));
    assert_eq!(line.name(), "suspect");
    assert!(matches!(line.call(), Admission::Go { .. }));
}

#[test]
fn after_sleep_an_answer_is_as_good_as_a_probe() {
    let mut line = Line::up();
    line.in_flight(1);
    line.machine.handle_sleep(line.now);
    line.run();
    line.now = line.now + millis(10);
    line.answer(1);
    assert!(matches!(line.call(), Admission::Go { .. }));
}

#[test]
fn after_sleep_the_first_call_waits_for_one_probe() {
    let mut line = Line::up();
    line.machine.handle_sleep(line.now);
    line.run();
    assert_eq!(line.machine.gate(), Gate::Knock);
    assert_eq!(probes(&line), 0, "no herd: nobody needed it yet");
    let Admission::Hold(held) = line.call() else { panic!() };
    assert_eq!(held.until, line.now + secs(15), "two probes and a dial");
    assert!(matches!(line.call(), Admission::Hold(_)));
    assert_eq!(probes(&line), 1);
    line.event(Event::ProbeAnswered);
    assert!(matches!(line.call(), Admission::Go { .. }));
}

#[test]
fn after_sleep_lines_look_by_themselves_but_not_all_at_once() {
    let mut at = Vec::new();
    for seed in 0..100 {
        let mut line = Line::up();
        line.machine = {
            let mut machine =
                linetender_core::Machine::new(linetender_core::Policy::default(), seed, line.now);
            machine.handle_command(line.now, linetender_core::Command::Open);
            while machine.poll_effect().is_some() {}
            machine.handle_event(line.now, machine.generation(), Event::Dialled);
            machine
        };
        line.machine.handle_sleep(line.now);
        let wait = line.machine.poll_timeout().unwrap().since(line.now);
        assert!(wait <= secs(30));
        at.push(wait.as_millis() / 3000);
    }
    for tenth in 0..10 {
        let lines = at.iter().filter(|&&t| t == tenth).count();
        assert!((2..=25).contains(&lines), "{at:?}");
    }
}

#[test]
fn after_sleep_cut_streams_make_no_storm_of_probes() {
    let mut line = Line::up();
    line.machine.handle_sleep(line.now);
    line.run();
    assert_eq!(line.event(Event::Trouble), Heard::Taken);
    assert_eq!((probes(&line), line.name()), (0, "up"));
}

#[test]
fn a_dead_server_is_found_out_after_sleep() {
    let mut line = Line::up();
    line.machine.handle_sleep(line.now);
    line.call();
    line.pass(secs(5));
    assert_eq!(line.name(), "suspect");
    line.pass(secs(5));
    assert_eq!(line.name(), "dialing");
}

#[test]
fn sleep_leaves_a_line_without_a_generation_alone() {
    let mut line = Line::new();
    let before = line.machine.clone();
    line.machine.handle_sleep(line.now);
    assert_eq!(line.machine, before);
}

/// A probe is use: servers somewhere else scale to zero, are billed by the request, or prolong a login with each.
#[test]
fn h39_an_idle_server_over_http_is_asked_nothing_unless_the_policy_says_so() {
    for (over_http, asked) in [(false, 0), (true, 24 * 120)] {
        let mut line = Line::with(|settings| settings.probe.over_http = over_http);
        line.open();
        line.connect();
        line.vitals.exchanges = true;
        line.lively = true;
        line.pass(secs(24 * 3600));
        assert_eq!((probes(&line), line.name()), (asked, "up"));
    }
}

#[test]
fn h39_a_call_that_fails_or_is_given_up_has_a_server_over_http_asked_all_the_same() {
    for gives_up in [false, true] {
        let mut line = Line::up();
        line.vitals.exchanges = true;
        line.in_flight(1);
        line.pass(secs(60));
        assert_eq!(probes(&line), 0);
        if gives_up {
            line.give_up(true);
        } else {
            line.event(Event::Trouble);
        }
        assert_eq!(probes(&line), 1);
    }
}
