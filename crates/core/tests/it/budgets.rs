//! Who parks and who does not, and how a parked line comes back.

use std::time::Duration;

use linetender_core::{Admission, Class, Command, CommandOutcome, Event, Held, NextTry, Refusal};

use crate::kit::{Line, millis, secs};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Lives so long, answers so many callers, and dies, for ever. How many lives until it parks?
fn lives_until_parked(life: Duration, answers: u64, class: Class, at_most: u32) -> Option<u32> {
    let mut line = Line::up();
    line.lively = true;
    for lives in 1..=at_most {
        line.answer(answers);
        line.pass(life);
        line.lose(class);
        while !matches!(line.name(), "dialing" | "parked") {
            line.jump();
        }
        if line.name() == "parked" {
            return Some(lives);
        }
        line.connect();
    }
    None
}

fn parked() -> Line {
    let mut line = Line::up();
    while line.name() != "parked" {
        line.lose(Class::Exit);
        if line.name() != "parked" {
            line.until_dial();
            line.connect();
        }
    }
    line
}

#[test]
fn a_flapper_that_handshakes_lists_its_tools_and_dies_parks() {
    assert_eq!(lives_until_parked(millis(500), 0, Class::Exit, 100), Some(6));
}

#[test]
fn a_flapper_that_lives_31_seconds_parks() {
    assert_eq!(lives_until_parked(secs(31), 0, Class::Exit, 100), Some(6));
}

#[test]
fn a_server_that_answers_nobody_parks_after_five_however_long_it_idles() {
    for life in [secs(61), secs(600), DAY] {
        assert_eq!(lives_until_parked(life, 0, Class::Exit, 100), Some(6), "{life:?}");
    }
    // One answer a minute is service.
    assert_eq!(lives_until_parked(secs(61), 1, Class::Exit, 100), None);
}

#[test]
fn five_drops_in_a_month_do_not_park() {
    let mut line = Line::up();
    line.lively = true;
    for _ in 0..5 {
        line.pass(6 * DAY);
        assert_eq!(line.name(), "up", "idle, but alive: it answers its probes");
        line.lose(Class::Transport);
        line.until_dial();
        line.connect();
    }
    assert_ne!(line.name(), "parked");
}

#[test]
fn a_drop_a_day_never_parks_a_server_that_is_used() {
    let mut line = Line::up();
    line.lively = true;
    for _ in 0..100 {
        line.pass(DAY);
        line.answer(1);
        line.lose(Class::Transport);
        assert_eq!(line.name(), "dialing");
        line.connect();
    }
    assert!(line.tokens() >= 4000);
}

#[test]
fn a_busy_server_that_crashes_once_in_twenty_calls_does_not_park() {
    assert_eq!(lives_until_parked(millis(100), 19, Class::Exit, 1000), None);
}

#[test]
fn a_server_that_dies_on_every_fourth_call_parks_after_thirty() {
    assert_eq!(lives_until_parked(millis(100), 3, Class::Exit, 100), Some(31));
    assert_eq!(lives_until_parked(millis(100), 2, Class::Exit, 100), Some(7), "two answers are not enough");
    // Three a minute are earned back: that often it may die for ever.
    assert_eq!(lives_until_parked(secs(20), 3, Class::Exit, 1000), None);
}

#[test]
fn a_useful_life_is_charged_to_a_bucket_of_its_own_and_waits_less_than_a_second() {
    let mut line = Line::up();
    let mut longest = Duration::ZERO;
    for life in 1..=30 {
        line.answer(3);
        line.lose(Class::Exit);
        let waited = line.until_dial();
        assert!(life > 1 || waited == Duration::ZERO, "the first is free");
        longest = longest.max(waited);
        line.connect();
        assert_eq!((line.tokens(), line.machine.budget().useful_millis()), (5000, 30_000 - 1000 * life));
    }
    assert!(longest <= secs(1) && longest > millis(500), "{longest:?}");
    // A useless life between them costs what it always did.
    line.lose(Class::Exit);
    assert_eq!(line.tokens(), 4000);
    line.until_dial();
    line.connect();
    line.answer(3);
    line.lose(Class::Exit);
    assert_eq!(line.name(), "parked");
    assert!(line.next_probe_at() <= line.now + secs(30));
}

#[test]
fn a_life_whose_answers_earned_a_token_pays_for_itself() {
    let mut line = Line::up();
    for _ in 0..100 {
        line.answer(10);
        line.lose(Class::Exit);
        assert_eq!(line.name(), "dialing", "at once");
        line.connect();
    }
    assert_eq!(line.machine.budget().useful_millis(), 30_000);
}

#[test]
fn our_own_traffic_earns_nothing() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    line.until_dial();
    line.connect();
    for _ in 0..100 {
        line.vitals.heard_at = line.now;
        line.event(Event::ProbeAnswered);
    }
    assert_eq!(line.tokens(), 4000);
}

#[test]
fn a_load_balancer_that_loses_every_second_session_is_charged_and_parks() {
    let mut line = Line::up();
    let mut sessions = 0;
    while line.name() != "parked" {
        sessions += 1;
        if sessions % 2 == 0 {
            line.answer(1);
        }
        line.lose(Class::SessionLost);
        if line.name() != "parked" {
            line.until_dial();
            line.connect();
        }
        assert!(sessions < 100, "it loops for free");
    }
    assert!(line.dials() >= 10, "sessions that served were free: {}", line.dials());
}

#[test]
fn a_session_that_had_answered_a_caller_is_renewed_for_free_and_at_once() {
    let mut line = Line::up();
    line.answer(1);
    line.pass(secs(1));
    line.lose(Class::SessionLost);
    assert_eq!((line.tokens(), line.name()), (5000, "dialing"));
}

#[test]
fn an_era_probe_is_free_once_per_episode() {
    let mut line = Line::new();
    line.open();
    line.lose(Class::EraProbe);
    assert_eq!((line.tokens(), line.name()), (5000, "dialing"), "free, and at once");
    line.lose(Class::EraProbe);
    assert_eq!(line.tokens(), 4000, "the second time it counts");
    line.until_dial();
    line.connect();
    line.answer(10);
    line.lose(Class::EraProbe);
    assert_eq!(line.tokens(), 5000, "a proven generation begins a new episode");
}

#[test]
fn what_this_machine_lacks_is_not_charged_to_the_server_but_backs_off() {
    let mut line = Line::new();
    line.open();
    let start = line.now;
    for _ in 0..20 {
        line.lose(Class::Local);
        line.until_dial();
    }
    assert_eq!(line.tokens(), 5000);
    assert!(line.now.since(start) > secs(20), "{:?}", line.now.since(start));
}

#[test]
fn what_cannot_work_as_configured_parks_at_once_and_costs_nothing() {
    let mut line = Line::new();
    line.open();
    line.lose(Class::Config);
    assert_eq!((line.name(), line.tokens()), ("parked", 5000));
    assert_eq!(line.next_probe_at(), line.now + secs(300));
}

#[test]
fn credentials_are_asked_for_at_once_and_looked_for_now_and_then() {
    let mut line = Line::up();
    line.lose(Class::Auth);
    assert_eq!((line.name(), line.tokens()), ("needs-auth", 5000));
    let refused = Admission::Refuse { why: Refusal::NeedsAuth, next: NextTry::At(line.next_probe_at()) };
    assert_eq!(line.call(), refused);
    assert_eq!(line.until_dial(), secs(300));
    assert_eq!(line.call(), Admission::Refuse { why: Refusal::NeedsAuth, next: NextTry::Underway });
    line.lose(Class::Auth);
    assert_eq!(line.command(Command::Credentials), CommandOutcome::Started);
    assert_eq!(line.name(), "waiting", "the last dial was a moment ago");
    assert!(line.until_dial() <= millis(100));
    line.connect();
}

#[test]
fn backoff_grows_with_the_tokens_missing() {
    // Full jitter: look at the longest wait of many lines that lost the same server.
    let mut longest = [Duration::ZERO; 5];
    for seed in 0..200 {
        let mut line = Line::new();
        line.machine = linetender_core::Machine::new(linetender_core::Policy::default(), seed, line.now);
        line.open();
        for wait in &mut longest {
            line.lose(Class::Exit);
            *wait = (*wait).max(line.until_dial());
        }
    }
    for (wait, ceiling) in longest.iter().zip([0, 100, 200, 400, 800]) {
        assert!(*wait <= millis(ceiling) && *wait >= millis(ceiling * 9 / 10), "{longest:?}");
    }
}

#[test]
fn retry_after_is_honoured_and_clamped() {
    for (asked, waited) in [(7, 7), (3600, 30)] {
        let mut line = Line::new();
        line.open();
        let cause = linetender_core::Cause::failed(Class::Overload, "503").with_retry_after(secs(asked));
        line.event(Event::Lost(cause));
        assert_eq!(line.until_dial(), secs(waited));
        assert_eq!(line.tokens(), 4000);
    }
}

#[test]
fn retry_after_is_honoured_by_a_parked_line_too() {
    let mut line = parked();
    line.until_dial();
    let cause = linetender_core::Cause::failed(Class::Overload, "503").with_retry_after(secs(30));
    line.event(Event::Lost(cause));
    assert!(line.next_probe_at() >= line.now + secs(30));
    line.pass(secs(29));
    assert!(matches!(line.call(), Admission::Refuse { .. }), "no call may wake it before");
}

#[test]
fn a_server_that_shakes_hands_and_then_says_nothing_parks_and_stays_parked() {
    let mut line = Line::up();
    let start = line.now;
    while line.now.since(start) < DAY {
        if line.name() == "dialing" {
            line.connect();
        }
        line.jump();
    }
    assert!(line.dials() < 400, "{} dials in a day", line.dials());
}

#[test]
fn a_parked_line_keeps_its_cause_while_it_is_tried() {
    let mut line = parked();
    line.until_dial();
    assert!(line.cause().leaves().failures().any(|class| class == Class::Exit));
}

#[test]
fn a_knock_while_a_generation_ends_does_not_keep_it_from_parking() {
    let mut line = Line::new();
    line.open();
    line.obedient = false;
    line.lose(Class::Config);
    assert!(matches!(line.knock(), Admission::Refuse { why: Refusal::Parked, .. }));
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert_eq!(line.name(), "parked");
}

#[test]
fn a_parked_line_revives_by_probe_ever_more_slowly() {
    let mut line = parked();
    for ceiling in [30, 60, 120, 240, 300, 300] {
        let waited = line.next_probe_at().since(line.now);
        assert!(waited <= secs(ceiling) && waited >= secs(ceiling / 2), "{waited:?} of {ceiling}");
        line.until_dial();
        line.lose(Class::Exit);
        assert_eq!(line.name(), "parked");
    }
    line.until_dial();
    line.connect();
    assert_eq!(line.name(), "up");
    // Service begins a new episode, so the next park starts fast again.
    line.answer(1);
    line.lose(Class::Exit);
    assert!(line.next_probe_at().since(line.now) <= secs(30));
}

#[test]
fn a_parked_line_revives_by_use() {
    let mut line = parked();
    assert!(matches!(line.call(), Admission::Refuse { why: Refusal::Parked, next: NextTry::At(_) }));
    line.pass(secs(5));
    let held = Held { until: line.now + secs(5), waker: true };
    assert_eq!(line.call(), Admission::Hold(held), "the call that wakes it waits");
    assert_eq!(line.machine.gate().recheck(held), Admission::Hold(held));
    let refused = Admission::Refuse { why: Refusal::Parked, next: NextTry::Underway };
    assert_eq!(line.call(), refused, "others are refused at once");
    line.connect();
    assert!(matches!(line.call(), Admission::Go { .. }));
}

#[test]
fn use_cannot_hammer_a_parked_line() {
    let mut line = parked();
    let dials = line.dials();
    let start = line.now;
    // A caller every hundred milliseconds for ten minutes, on a server that always dies.
    while line.now.since(start) < secs(600) {
        line.call();
        if line.name() == "dialing" {
            line.lose(Class::Exit);
        }
        line.pass(millis(100));
        if line.name() == "dialing" {
            line.lose(Class::Exit);
        }
    }
    let woken = line.dials() - dials;
    // 5, 10, 20, 40, 60, 60 … seconds apart; the slow probes hide behind them.
    assert!((10..=15).contains(&woken), "{woken}");
}

#[test]
fn a_parked_line_revives_by_command_and_by_credentials() {
    for command in [Command::Open, Command::Credentials] {
        let mut line = parked();
        line.pass(secs(1));
        assert_eq!(line.command(command), CommandOutcome::Started, "{command:?}");
        assert_eq!(line.name(), "dialing");
        assert!(matches!(line.call(), Admission::Hold(_)), "somebody wanted it: calls may wait");
    }
    let mut line = parked();
    line.pass(secs(1));
    assert_eq!(line.redial(), CommandOutcome::Started, "an explicit reconnect always works");
    assert_eq!(line.name(), "dialing");
}

#[test]
fn no_budget_is_given_back_by_a_handshake() {
    let mut line = parked();
    line.until_dial();
    line.connect();
    line.lose(Class::Exit);
    assert_eq!(line.name(), "parked", "it found no token");
}

#[test]
fn a_quiet_month_restores_the_budget() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    line.until_dial();
    line.connect();
    line.lively = true;
    line.answer(1);
    line.pass(DAY);
    assert_eq!(line.tokens(), 5000);
}
