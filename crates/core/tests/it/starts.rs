//! S58: a server in a process that has never answered is started seldom.

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Conclusion, Detail, Event, Heard, Held, NextTry,
    Refusal, State,
};

use crate::kit::{Line, secs};

/// The server's process is started, and ends at once.
fn fails(line: &mut Line) {
    fails_by(line, Cause::failed(Class::Exit, "no network"));
}

fn login_is_refused(line: &mut Line) {
    fails_by(line, Cause::failed(Class::Exit, "wrong password").with_login_refused());
}

fn fails_by(line: &mut Line, cause: Cause<&'static str>) {
    started(line);
    assert_eq!(line.event(Event::Lost(cause)), Heard::Taken);
}

fn started(line: &mut Line) {
    assert_eq!(line.name(), "dialing");
    assert_eq!(line.event(Event::Started), Heard::Taken);
    assert_eq!(line.event(Event::Spawned), Heard::Taken);
}

/// A line whose server has failed so many times.
fn failed(times: u32, fails: fn(&mut Line)) -> Line {
    let mut line = Line::new();
    line.open();
    for time in 0..times {
        if time > 0 {
            line.until_dial();
        }
        fails(&mut line);
    }
    line
}

/// When it is started, counted from the first time, if nobody calls.
fn times(fails: fn(&mut Line), count: usize) -> Vec<u64> {
    let mut line = Line::new();
    line.open();
    let first = line.now;
    let mut times = vec![0];
    while times.len() < count {
        fails(&mut line);
        line.until_dial();
        times.push(line.now.since(first).as_secs());
    }
    times
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

#[test]
fn a_server_that_never_answered_is_started_at_0_10_60_seconds_10_30_minutes_and_hourly() {
    let half = 30 * MINUTE;
    assert_eq!(
        times(fails, 8),
        [0, 10, 60, 10 * MINUTE, half, half + HOUR, half + 2 * HOUR, half + 3 * HOUR]
    );
}

#[test]
fn a_server_whose_login_was_refused_is_started_at_10_30_minutes_and_hourly() {
    let half = 30 * MINUTE;
    assert_eq!(times(login_is_refused, 5), [0, 10 * MINUTE, half, half + HOUR, half + 2 * HOUR]);
}

#[test]
fn calls_start_it_once_a_minute_at_most() {
    let mut line = failed(1, fails);
    let first = line.now;
    let mut starts = vec![0];
    while line.now.since(first) < secs(10 * MINUTE) {
        line.call();
        if line.name() == "dialing" {
            starts.push(line.now.since(first).as_secs());
            fails(&mut line);
        }
        line.pass(secs(0));
        if line.name() == "dialing" {
            starts.push(line.now.since(first).as_secs());
            fails(&mut line);
        }
        line.now = line.now + secs(1);
    }
    assert_eq!(starts, [0, 10, 60, 120, 180, 240, 300, 360, 420, 480, 540]);
}

#[test]
fn a_call_is_told_when_it_is_started_by_itself_and_from_when_on_by_a_call() {
    let mut line = Line::new();
    line.open();
    let Admission::Hold(waiting) = line.call() else { panic!() };
    fails(&mut line);
    let at = line.now + secs(10);
    assert!(matches!(line.machine.gate().recheck(waiting), Admission::Refuse { why: Refusal::Waiting, .. }));
    assert_eq!(line.call(), Admission::Refuse { why: Refusal::Waiting, next: NextTry::At(at) });
    line.pass(secs(6));
    assert!(matches!(line.call(), Admission::Hold(_)), "it is near enough to be waited for");
    let mut line = failed(3, fails);
    let next = NextTry::AtOrCall { at: line.now + secs(9 * MINUTE), call: line.now + secs(60) };
    assert_eq!(line.call(), Admission::Refuse { why: Refusal::Parked, next });
    line.pass(secs(60));
    assert_eq!(line.call(), Admission::Hold(Held { until: line.now + secs(5), waker: true }));
}

#[test]
fn calls_do_not_start_a_server_whose_login_was_refused() {
    let mut line = failed(1, login_is_refused);
    let next = NextTry::At(line.now + secs(10 * MINUTE));
    for _ in 0..599 {
        assert_eq!(line.call(), Admission::Refuse { why: Refusal::LoginRefused, next });
        line.pass(secs(1));
    }
    assert_eq!(line.dials(), 1);
    line.pass(secs(1));
    assert_eq!(line.dials(), 2);
}

/// The handshake first, then the login: each life shakes hands, and serves no call.
#[test]
fn a_server_that_logs_in_after_its_handshake_is_started_every_ten_minutes() {
    let mut line = Line::new();
    line.open();
    for _ in 0..4 {
        line.connect();
        line.event(Event::Lost(Cause::failed(Class::Exit, "wrong password").with_login_refused()));
        let at = line.now;
        assert!(matches!(line.call(), Admission::Refuse { why: Refusal::LoginRefused, .. }));
        line.until_dial();
        assert_eq!(line.now.since(at), secs(10 * MINUTE));
    }
}

#[test]
fn an_operator_starts_it_at_any_time() {
    for (command, fails) in [
        (Command::Redial, fails as fn(&mut Line)),
        (Command::Wake, fails),
        (Command::Redial, login_is_refused),
    ] {
        for times in [1, 4] {
            let mut line = failed(times, fails);
            line.pass(secs(1));
            assert_eq!(line.command(command), CommandOutcome::Started);
            assert_eq!(line.name(), "dialing");
            line.connect();
            assert!(matches!(line.call(), Admission::Go { .. }));
        }
    }
}

#[test]
fn what_was_parked_during_its_start_and_is_asked_back_is_started() {
    let mut line = Line::new();
    line.open();
    started(&mut line);
    line.obedient = false;
    line.command(Command::Park);
    line.command(Command::Wake);
    assert_eq!(line.event(Event::Lost(Cause::failed(Class::Exit, "late"))), Heard::Taken);
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    line.until_dial();
    assert!(line.now.since(linetender_core::Instant::ORIGIN) < secs(1001), "{:?}", line.now);
}

#[test]
fn once_it_has_answered_its_ends_are_charged_to_the_budget_as_ever() {
    let mut line = failed(2, login_is_refused);
    line.until_dial();
    started(&mut line);
    line.connect_started();
    line.answer(1);
    line.lose(Class::Exit);
    assert!(line.until_dial() < secs(1));
    started(&mut line);
    assert_eq!(
        line.event(Event::Lost(Cause::failed(Class::Exit, "wrong password").with_login_refused())),
        Heard::Taken
    );
    assert!(line.until_dial() < secs(1));
}

#[test]
fn what_never_was_a_process_is_no_start() {
    // A server at an address, or one that another process of ours holds.
    let mut line = Line::new();
    line.open();
    for _ in 0..4 {
        line.lose(Class::Exit);
        assert!(line.until_dial() < secs(2));
    }
    // This machine was short of something, or the server belongs to another gateway now.
    let mut line = Line::new();
    line.open();
    started(&mut line);
    line.lose(Class::Local);
    assert!(line.until_dial() < secs(1));
}

#[test]
fn a_server_that_ends_on_the_question_for_its_era_is_started_once_more_at_once() {
    let mut line = Line::new();
    line.open();
    started(&mut line);
    line.lose(Class::EraProbe);
    assert_eq!((line.name(), line.dials()), ("dialing", 2));
    fails(&mut line);
    assert_eq!(line.until_dial(), secs(10), "that was no try of its own");
}

#[test]
fn a_command_that_is_not_there_parks_as_ever() {
    let mut line = Line::new();
    line.open();
    line.lose(Class::Config);
    assert_eq!(line.next_probe_at().since(line.now), secs(300));
}

#[test]
fn a_start_that_hangs_is_not_followed_by_the_next_at_once() {
    let mut line = Line::new();
    line.open();
    started(&mut line);
    line.pass(secs(60));
    assert_eq!(line.name(), "waiting");
    assert_eq!(line.until_dial(), secs(10));
}

#[test]
fn a_start_of_a_server_that_writes_to_stderr_goes_on_for_ten_minutes() {
    let mut line = Line::new();
    line.open();
    let waits = line.call();
    assert_eq!(waits, Admission::Hold(Held { until: line.now + secs(60), waker: false }));
    started(&mut line);
    line.pass(secs(5));
    assert_eq!(line.event(Event::Wrote), Heard::Taken);
    line.pass(secs(56));
    assert_eq!((line.name(), line.dials()), ("dialing", 1));
    assert_eq!(line.call(), Admission::Hold(Held { until: line.now + secs(5), waker: false }));
    line.obedient = false;
    line.pass(secs(538));
    assert_eq!(line.name(), "dialing");
    line.pass(secs(1));
    assert_eq!(line.cause().headline().detail, Detail::Concluded(Conclusion::StartTimeout));
}

#[test]
fn a_start_that_goes_on_ends_with_the_handshake() {
    let mut line = Line::new();
    line.open();
    started(&mut line);
    line.event(Event::Wrote);
    line.pass(secs(90));
    assert_eq!(line.event(Event::FirstByte), Heard::Taken);
    assert_eq!(line.event(Event::Dialled), Heard::Taken);
    assert!(matches!(line.call(), Admission::Go { .. }));
    assert_eq!(line.dials(), 1);
}

#[test]
fn a_server_that_has_answered_before_has_its_start_limit_whatever_it_writes() {
    let mut line = Line::up();
    line.lose(Class::Exit);
    line.until_dial();
    started(&mut line);
    assert_eq!(line.event(Event::Wrote), Heard::Taken);
    line.obedient = false;
    line.pass(secs(60));
    assert_eq!(line.name(), "ending");
}

#[test]
fn a_new_machine_for_the_same_server_starts_it_no_more_often() {
    let before = failed(3, fails);
    let mut line = Line::new();
    line.machine = line.machine.as_answered_as(&before.machine);
    line.open();
    fails(&mut line);
    assert!(matches!(line.machine.state(), State::Parked { .. }));
    assert_eq!(line.until_dial(), secs(20 * MINUTE));
}
