//! An operator takes a line out of service, and brings it back.

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Effect, Event, Leaf, NextTry, Plan, Refusal, State,
};

use crate::kit::{Line, millis, secs};

const REFUSED: Admission = Admission::Refuse { why: Refusal::OutOfService, next: NextTry::WhenWoken };

fn out_of_service(line: &Line) -> bool {
    matches!(line.machine.state(), State::OutOfService { .. })
}

fn parked() -> Line {
    let mut line = Line::up();
    assert_eq!(line.command(Command::Park), CommandOutcome::Started);
    assert!(out_of_service(&line));
    line
}

#[test]
fn calls_in_flight_finish_and_new_ones_are_refused() {
    let mut line = Line::up();
    line.in_flight(1);
    let tokens = line.tokens();
    assert_eq!((line.command(Command::Park), line.name()), (CommandOutcome::Started, "draining"));
    assert_eq!(line.call(), REFUSED);
    line.pass(secs(29));
    assert_eq!(line.name(), "draining");
    line.in_flight(0);
    assert!(out_of_service(&line));
    assert_eq!((line.tokens(), line.cause().leaves().planned()), (tokens, true), "planned: never charged");
    assert_eq!(line.count(|effect| matches!(effect, Effect::Kill { .. })), 0, "closed politely");
}

#[test]
fn a_call_that_never_ends_gets_the_drain_time_and_no_more() {
    let mut line = Line::up();
    line.in_flight(1);
    line.command(Command::Park);
    line.pass(secs(31));
    assert!(out_of_service(&line));
}

#[test]
fn nothing_but_an_operator_brings_it_back() {
    let mut line = parked();
    assert_eq!(line.machine.poll_timeout(), None, "no slow probe");
    line.pass(secs(100_000));
    assert_eq!((line.call(), line.knock()), (REFUSED, REFUSED));
    let seen = line.generation();
    assert_eq!(line.redial_if(seen), CommandOutcome::Joined);
    for declined in [Command::Open, Command::Credentials, Command::Recycle, Command::IdleStop] {
        assert_eq!(line.command(declined), CommandOutcome::Declined, "{declined:?}");
    }
    assert_eq!(line.command(Command::Park), CommandOutcome::Joined);
    assert!(out_of_service(&line));
    for back in [Command::Wake, Command::Redial] {
        let mut line = parked().later(secs(1));
        assert_eq!((line.command(back), line.name()), (CommandOutcome::Started, "dialing"));
        line.connect();
        assert!(matches!(line.call(), Admission::Go { .. }));
    }
    let mut line = parked();
    assert_eq!((line.command(Command::Close), line.name()), (CommandOutcome::Started, "closed"));
}

#[test]
fn waking_it_at_once_keeps_the_distance_of_two_dials() {
    let mut line = parked();
    line.command(Command::Wake);
    assert_eq!(line.name(), "waiting");
    assert!(line.until_dial() <= millis(100));
}

#[test]
fn it_can_be_parked_from_wherever_it_is() {
    let idle = Line::new();
    let mut dialing = Line::new();
    dialing.open();
    let mut waiting = Line::new();
    waiting.open();
    waiting.lose(Class::Local);
    assert_eq!(waiting.name(), "waiting");
    let mut config = Line::up();
    config.lose(Class::Config);
    let mut auth = Line::up();
    auth.lose(Class::Auth);
    for mut line in [idle, dialing, waiting, config, auth] {
        let (from, tokens) = (line.name(), line.tokens());
        assert_eq!(line.command(Command::Park), CommandOutcome::Started, "{from}");
        assert!(out_of_service(&line), "{from}");
        assert_eq!((line.call(), line.tokens()), (REFUSED, tokens), "{from}");
        assert!(line.cause().leaves().has(Leaf::Planned(Plan::Park)), "{from}");
        line.pass(secs(1000));
        assert!(out_of_service(&line), "{from}");
    }
}

#[test]
fn parked_while_a_crash_is_laid_to_rest() {
    let mut line = Line::up();
    line.obedient = false;
    line.lose(Class::Exit);
    let tokens = line.tokens();
    assert_eq!(line.command(Command::Park), CommandOutcome::Started);
    assert_eq!(line.call(), REFUSED);
    assert_eq!(line.command(Command::Open), CommandOutcome::Declined);
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert!(out_of_service(&line));
    let leaves = line.cause().leaves();
    assert!(leaves.has(Leaf::Failed(Class::Exit)) && leaves.has(Leaf::Planned(Plan::Park)), "{leaves:?}");
    assert_eq!(line.tokens(), tokens, "the crash was paid for once");
}

#[test]
fn a_crash_while_it_drains_is_charged_and_it_stays_parked() {
    let mut line = Line::up();
    line.in_flight(1);
    line.command(Command::Park);
    let tokens = line.tokens();
    line.lose(Class::Exit);
    assert_eq!((out_of_service(&line), line.tokens()), (true, tokens - 1000));
    // The same in the moment in which it ends for another reason.
    let mut line = Line::up();
    line.obedient = false;
    line.redial();
    line.command(Command::Park);
    line.event(Event::Lost(Cause::failed(Class::Auth, "401")));
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert!(out_of_service(&line), "a failure does not undo what an operator said");
}

#[test]
fn the_last_word_of_an_operator_counts() {
    let draining = || {
        let mut line = Line::up();
        line.in_flight(1);
        line.command(Command::Recycle);
        line.command(Command::Park);
        line
    };
    let mut line = draining();
    assert_eq!(line.command(Command::Recycle), CommandOutcome::Declined);
    let seen = line.generation();
    assert_eq!(line.redial_if(seen), CommandOutcome::Declined, "a caller saw something, and no operator");
    line.in_flight(0);
    assert!(out_of_service(&line));

    let mut line = draining();
    assert_eq!((line.command(Command::Wake), line.name()), (CommandOutcome::Started, "draining"));
    assert!(matches!(line.call(), Admission::Hold(_)));
    line.in_flight(0);
    line.until_dial();

    let mut line = draining();
    line.command(Command::Wake);
    assert_eq!(line.command(Command::Park), CommandOutcome::Started);
    line.in_flight(0);
    assert!(out_of_service(&line));

    // Asked back while it ends; and what fails then does not park it.
    let mut line = Line::up();
    line.pass(secs(1));
    line.obedient = false;
    line.command(Command::Park);
    assert_eq!(line.command(Command::Wake), CommandOutcome::Started);
    line.event(Event::Lost(Cause::failed(Class::Exit, "late")));
    line.event(Event::Drained);
    line.event(Event::Gone(None));
    assert!(!out_of_service(&line));
    line.until_dial();
}

#[test]
fn waking_a_line_that_is_in_service_disturbs_nothing() {
    let mut line = Line::up();
    line.in_flight(1);
    assert_eq!((line.command(Command::Wake), line.name()), (CommandOutcome::Joined, "up"));
    let mut line = Line::new();
    assert_eq!((line.command(Command::Wake), line.name()), (CommandOutcome::Started, "dialing"));
    assert_eq!(line.command(Command::Wake), CommandOutcome::Joined);
    let mut line = Line::up();
    line.lose(Class::Config);
    line.pass(secs(1));
    assert_eq!((line.command(Command::Wake), line.name()), (CommandOutcome::Started, "dialing"));
}
