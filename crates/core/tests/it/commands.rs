//! What each command does in states where it is easily overlooked.

use linetender_core::{Cause, Class, Command, CommandOutcome, Event, State};

use crate::kit::{Line, millis, secs};

#[test]
fn commands_for_a_dial_under_way() {
    for joined in [Command::Open, Command::Recycle] {
        let mut line = Line::new();
        line.open();
        assert_eq!(line.command(Command::IdleStop), CommandOutcome::Declined, "somebody needs it");
        assert_eq!(line.command(joined), CommandOutcome::Joined);
        assert_eq!(line.redial(), CommandOutcome::Joined);
        assert_eq!(line.dials(), 1);
    }
    {
        let mut line = Line::new();
        line.open();
        assert_eq!(line.command(Command::Credentials), CommandOutcome::Joined, "the dial reads them itself");
        assert_eq!((line.name(), line.dials()), ("dialing", 1));
    }
    let mut line = Line::new();
    line.open();
    line.command(Command::Close);
    assert_eq!(line.name(), "closed");
}

#[test]
fn commands_for_a_line_that_waits() {
    let waiting = || {
        let mut line = Line::new();
        line.open();
        line.pass(millis(200));
        line.lose(Class::Local);
        assert_eq!(line.name(), "waiting");
        line
    };
    for joined in [Command::Open, Command::Recycle] {
        let mut line = waiting();
        assert_eq!((line.command(joined), line.name()), (CommandOutcome::Joined, "waiting"));
        assert_eq!(line.redial_if(line.generation()), CommandOutcome::Joined);
    }
    let mut line = waiting();
    let until = line.machine.poll_timeout().unwrap();
    assert_eq!((line.command(Command::IdleStop), line.name()), (CommandOutcome::Started, "idle"));
    line.call();
    assert_eq!(line.machine.poll_timeout(), Some(until), "use cannot cut the wait short");
    {
        let mut line = waiting();
        assert_eq!((line.command(Command::Credentials), line.name()), (CommandOutcome::Started, "dialing"));
        assert!(line.machine.state().cause().is_some(), "why the last one ended is not forgotten");
    }
    let mut line = waiting();
    assert_eq!((line.redial(), line.name()), (CommandOutcome::Started, "dialing"));
    let mut line = waiting();
    assert_eq!((line.command(Command::Close), line.name()), (CommandOutcome::Started, "closed"));
}

#[test]
fn commands_for_an_idle_line() {
    for nothing in [Command::Recycle, Command::Credentials, Command::IdleStop] {
        let mut line = Line::new();
        assert_eq!((line.command(nothing), line.name()), (CommandOutcome::Joined, "idle"));
    }
    let mut line = Line::new();
    assert_eq!((line.redial(), line.name()), (CommandOutcome::Started, "dialing"));
    let mut line = Line::new();
    assert_eq!((line.command(Command::Close), line.name()), (CommandOutcome::Started, "closed"));
}

#[test]
fn commands_for_a_draining_line() {
    let draining = || {
        let mut line = Line::up();
        line.in_flight(1);
        line.command(Command::IdleStop);
        line
    };
    let mut line = draining();
    line.in_flight(0);
    assert_eq!(line.name(), "idle");

    let mut line = draining();
    assert_eq!(line.command(Command::Open), CommandOutcome::Joined, "somebody needs it after all");
    assert_eq!((line.command(Command::Credentials), line.name()), (CommandOutcome::Joined, "draining"));
    let State::Draining { until, .. } = *line.machine.state() else { panic!() };
    assert_eq!(until, line.now + secs(30), "a second plan does not prolong the first");
    assert_eq!(line.command(Command::IdleStop), CommandOutcome::Joined);
    line.in_flight(0);
    line.until_dial();

    let mut line = draining();
    assert_eq!(line.redial(), CommandOutcome::Started);
    assert!(
        line.until_dial() <= millis(100),
        "whoever asks for a redial does not want the line to stay down"
    );

    let mut line = draining();
    line.command(Command::Close);
    assert_eq!(line.name(), "closed");
}

#[test]
fn commands_for_a_line_that_is_up() {
    let mut line = Line::up();
    assert_eq!((line.command(Command::Open), line.name()), (CommandOutcome::Joined, "up"));
    line.in_flight(3);
    assert_eq!(line.redial_if(line.generation()), CommandOutcome::Started);
    assert_ne!(line.name(), "draining", "a redial does not wait for a call that may hang");
}

#[test]
fn commands_while_a_generation_ends() {
    let ending = |class| {
        let mut line = Line::up();
        line.pass(secs(1));
        line.obedient = false;
        line.lose(class);
        line
    };
    let finish = |mut line: Line| {
        line.event(Event::Drained);
        line.event(Event::Gone(None));
        line
    };
    for joined in [Command::Open, Command::Credentials, Command::Recycle] {
        assert_eq!(ending(Class::Exit).command(joined), CommandOutcome::Joined);
    }
    let mut line = ending(Class::Exit);
    assert_eq!(line.command(Command::IdleStop), CommandOutcome::Started);
    assert_eq!(finish(line).name(), "idle");
    for class in [Class::Config, Class::Auth] {
        assert_eq!(ending(class).command(Command::Recycle), CommandOutcome::Joined);
        assert_eq!(ending(class).command(Command::IdleStop), CommandOutcome::Declined);
        let mut line = ending(class);
        let seen = line.generation();
        assert_eq!(line.redial_if(seen), CommandOutcome::Joined, "the budget has decided");
        for wakes in [Command::Open, Command::Credentials] {
            let mut line = ending(class);
            assert_eq!(line.command(wakes), CommandOutcome::Started);
            assert_eq!(finish(line).name(), "dialing");
        }
        let mut line = ending(class);
        assert_eq!(line.redial(), CommandOutcome::Started);
        assert_eq!(finish(line).name(), "dialing");
    }
    // A dial that is further away than it need be is brought forward.
    let mut line = Line::up();
    line.pass(secs(1));
    line.obedient = false;
    line.event(Event::Lost(Cause::failed(Class::Overload, "503").with_retry_after(secs(9))));
    assert_eq!(line.redial(), CommandOutcome::Started);
    assert_eq!(finish(line).name(), "dialing");
    let mut line = ending(Class::Exit);
    assert_eq!(line.command(Command::Close), CommandOutcome::Started);
    assert_eq!(finish(line).name(), "closed");
    let mut line = Line::up();
    line.answer(1);
    line.pass(secs(1));
    line.obedient = false;
    line.command(Command::IdleStop);
    assert_eq!(line.command(Command::Credentials), CommandOutcome::Joined);
    assert_eq!(line.command(Command::Open), CommandOutcome::Started);
    assert_eq!(finish(line).name(), "dialing");
}
