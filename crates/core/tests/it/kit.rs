//! A driver in virtual time: runs every effect at once, checks their order, and jumps the clock.

use std::time::Duration;

use linetender_core::{
    Admission, Cause, Class, Command, CommandOutcome, Effect, Event, Generation, Heard, Instant, Machine,
    Policy, Settings, State, Vitals, Walk,
};

pub type Detail = &'static str;

/// A line whose server does what the test says.
pub struct Line {
    pub machine: Machine<Detail>,
    pub now: Instant,
    /// Every effect that was run, with its time.
    pub effects: Vec<(Instant, Effect)>,
    pub vitals: Vitals,
    walk: Walk,
    /// Whether deaths are acknowledged at once.
    pub obedient: bool,
    /// Whether probes are answered at once.
    pub lively: bool,
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Line {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        change(&mut settings);
        let now = Instant::ORIGIN + secs(1000);
        Self {
            machine: Machine::new(Policy::new(settings).unwrap(), 42, now),
            now,
            effects: Vec::new(),
            vitals: Vitals { heard_at: now, ..Vitals::default() },
            walk: Walk::new(),
            obedient: true,
            lively: false,
        }
    }

    /// A line that is up, in its first generation.
    pub fn up() -> Self {
        let mut line = Self::new();
        line.open();
        line.connect();
        line
    }

    pub fn open(&mut self) {
        assert_eq!(self.command(Command::Open), CommandOutcome::Started);
    }

    /// Runs what the machine wants run; a death that is not held up is over at once.
    pub fn run(&mut self) {
        while let Some(effect) = self.machine.poll_effect() {
            self.effects.push((self.now, effect));
            self.walk.done(effect).unwrap();
            match effect {
                Effect::Drain { generation } if self.obedient => {
                    self.machine.handle_event(self.now, generation, Event::Drained);
                }
                Effect::Kill { generation } | Effect::Close { generation } | Effect::LetGo { generation }
                    if self.obedient =>
                {
                    self.machine.handle_event(self.now, generation, Event::Gone(None));
                }
                Effect::Probe { generation } if self.lively => {
                    self.vitals =
                        Vitals { heard_at: self.now, owed: false, abandoned_at: None, ..self.vitals };
                    self.machine.handle_event(self.now, generation, Event::ProbeAnswered);
                }
                Effect::Dial { .. } => self.vitals = Vitals { heard_at: self.now, ..Vitals::default() },
                _ => {}
            }
        }
    }

    pub fn generation(&self) -> Generation {
        self.machine.generation()
    }

    pub fn name(&self) -> &'static str {
        self.machine.state().name()
    }

    pub fn command(&mut self, command: Command) -> CommandOutcome {
        self.show();
        let asked = self.machine.handle_command(self.now, command);
        self.run();
        asked
    }

    pub fn redial(&mut self) -> CommandOutcome {
        self.command(Command::Redial)
    }

    pub fn event(&mut self, event: Event<Detail>) -> Heard {
        let generation = self.generation();
        self.event_of(generation, event)
    }

    pub fn event_of(&mut self, generation: Generation, event: Event<Detail>) -> Heard {
        self.show();
        let heard = self.machine.handle_event(self.now, generation, event);
        self.run();
        heard
    }

    pub fn knock(&mut self) -> Admission {
        self.show();
        let admission = self.machine.handle_knock(self.now);
        self.run();
        admission
    }

    /// What a call that arrives now is told; it knocks if it is told to.
    pub fn call(&mut self) -> Admission {
        match self.machine.gate().admit(self.now) {
            Admission::Knock => self.knock(),
            other => other,
        }
    }

    fn show(&mut self) {
        self.machine.handle_vitals(self.now, self.machine.generation(), self.vitals);
    }

    /// The dial under way succeeds.
    pub fn connect(&mut self) {
        assert_eq!(self.name(), "dialing");
        assert_eq!(self.event(Event::Started), Heard::Taken);
        self.connect_started();
    }

    /// The same, after its turn came.
    pub fn connect_started(&mut self) {
        for event in [Event::FirstByte, Event::Dialled] {
            assert_eq!(self.event(event), Heard::Taken);
        }
        self.vitals = Vitals { heard_at: self.now, ..Vitals::default() };
    }

    /// Somebody who saw this generation fail asks for another.
    pub fn redial_if(&mut self, seen: Generation) -> CommandOutcome {
        self.command(Command::RedialIf { seen })
    }

    /// The server answers so many callers.
    pub fn answer(&mut self, callers: u64) {
        self.vitals.answered += callers;
        self.hear();
    }

    pub fn in_flight(&mut self, calls: u32) {
        self.vitals.in_flight = calls;
        self.show();
        self.run();
    }

    /// The oldest call that was waited for is given up: by its caller, or by its deadline, which is told too.
    pub fn give_up(&mut self, cancelled: bool) {
        self.vitals.in_flight -= 1;
        self.vitals.owed |= cancelled && !self.vitals.exchanges;
        self.vitals.abandoned_at = self.vitals.abandoned_at.or(Some(self.now));
        self.show();
        self.run();
        if !cancelled {
            self.event(Event::Overdue);
        }
    }

    /// Something comes from the server.
    pub fn hear(&mut self) {
        self.vitals = Vitals { heard_at: self.now, owed: false, abandoned_at: None, ..self.vitals };
        self.show();
        self.run();
    }

    pub fn lose(&mut self, class: Class) {
        assert_eq!(self.event(Event::Lost(Cause::failed(class, "seen"))), Heard::Taken);
    }

    /// Jumps to the machine's next timer.
    pub fn jump(&mut self) {
        let at = self.machine.poll_timeout().expect("something to wait for");
        self.now = self.now.max(at);
        self.show();
        self.machine.handle_timeout(self.now);
        self.run();
    }

    /// Lets time pass, timer by timer.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.machine.poll_timeout().is_some_and(|at| at <= end) {
            self.jump();
        }
        self.now = end;
        if self.lively {
            self.vitals.heard_at = end;
        }
        self.show();
        self.run();
    }

    /// The same line some time later.
    pub fn later(mut self, span: Duration) -> Self {
        self.pass(span);
        self
    }

    /// Waits for the dial that must come by itself, and tells how long that took.
    pub fn until_dial(&mut self) -> Duration {
        let since = self.now;
        while self.name() != "dialing" {
            self.jump();
        }
        self.now.since(since)
    }

    pub fn dials(&self) -> usize {
        self.count(|effect| matches!(effect, Effect::Dial { .. }))
    }

    pub fn count(&self, wanted: impl Fn(&Effect) -> bool) -> usize {
        self.effects.iter().filter(|(_, effect)| wanted(effect)).count()
    }

    pub fn tokens(&self) -> u32 {
        self.machine.budget().millis()
    }

    pub fn next_probe_at(&self) -> Instant {
        match self.machine.state() {
            State::Parked { next_probe_at, .. } | State::NeedsAuth { next_probe_at, .. } => *next_probe_at,
            other => panic!("not parked but {}", other.name()),
        }
    }

    pub fn cause(&self) -> &Cause<Detail> {
        self.machine.state().cause().expect("a cause")
    }
}
