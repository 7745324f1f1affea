//! The lifecycle of one line.
//!
//! One owner drives it (see the crate's page for the contract). Methods are getters, `handle_*` (always with
//! the time), `poll_effect` and `poll_timeout`. Effects are not queued: each is derived from the state when the
//! driver asks, so nothing can overflow and nothing can be handed out twice.

mod accounts;
mod commands;
mod effect;
mod ending;
mod events;
mod input;
mod live;
mod pulse;
mod refused;
mod starts;
mod state;

pub use effect::Effect;
pub use ending::{After, Ending, EndingStep};
pub use input::{Command, CommandOutcome, Event, Heard, Vitals};
pub use live::{Live, Pulse};
pub use state::{DialPhase, Dialing, Origin, Rest, State, StateKind};

use accounts::Episode;
use starts::Starts;

use crate::budget::Budget;
use crate::cause::{Cause, Conclusion, Plan};
use crate::class::Class;
use crate::gate::{Admission, Gate, Held, NextTry, Refusal, Wake};
use crate::generation::Generation;
use crate::jitter::Jitter;
use crate::policy::{Policy, Settings};
use crate::time::Instant;

/// The machine that decides about one line. `D` is the wire's detail of a cause.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Machine<D> {
    policy: Settings,
    /// The latest time it was told. Time never runs backwards here, whatever the driver's clock does.
    now: Instant,
    state: State<D>,
    /// The newest generation; the live one if there is one.
    generation: Generation,
    budget: Budget,
    episode: Episode,
    starts: Starts,
    jitter: Jitter,
    /// When the newest generation was dialled.
    dialled_at: Instant,
    /// Whether the driver has yet to publish the present state, and the gate that it published last.
    unpublished: bool,
    published: Gate,
}

impl<D> Machine<D> {
    /// A line that nobody has dialled. Give each line a seed of its own.
    pub fn new(policy: Policy, seed: u64, now: Instant) -> Self {
        let policy = *policy.settings();
        Self {
            policy,
            now,
            state: State::Idle(None),
            generation: Generation::NONE,
            budget: Budget::full(&policy.budget),
            episode: Episode::default(),
            starts: Starts::NONE,
            jitter: Jitter::new(seed),
            dialled_at: now,
            unpublished: false,
            published: Gate::Knock,
        }
    }

    /// The same, numbered after the last generation of a machine that was given up: no number is ever used twice.
    #[must_use]
    pub fn numbered_after(self, generation: Generation) -> Self {
        Self { generation, unpublished: true, ..self }
    }

    /// The same, for a server that answered a machine that was given up, or never did: another machine makes no start more
    /// useful.
    #[must_use]
    pub fn as_answered_as(self, before: &Self) -> Self {
        Self { starts: before.starts, ..self }
    }

    /// Where the line is.
    pub const fn state(&self) -> &State<D> {
        &self.state
    }

    /// The newest generation.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// The tokens left.
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The policy it obeys.
    pub const fn policy(&self) -> &Settings {
        &self.policy
    }

    /// What a call that comes now would be told, before it is resolved against the time.
    pub fn gate(&self) -> Gate {
        let wait = self.policy.call.wait_for_line;
        let refuse = |why, next, wake| Gate::Refuse { why, next, wake };
        match &self.state {
            State::Idle(_) => Gate::Knock,
            State::Dialing(dialing) => match dialing.origin {
                Origin::First | Origin::Again if matches!(dialing.phase, DialPhase::Slow { .. }) => {
                    Gate::Hold { patience: wait, from: Instant::ORIGIN }
                }
                Origin::First => Gate::Hold { patience: self.policy.dial.start, from: Instant::ORIGIN },
                Origin::Again => Gate::Hold { patience: wait, from: Instant::ORIGIN },
                Origin::FromPark => refuse(Refusal::Parked, NextTry::Underway, Wake::Underway),
                Origin::FromAuth => refuse(Refusal::NeedsAuth, NextTry::Underway, Wake::Underway),
            },
            State::Up(live) | State::Suspect(live) => self.live_gate(live),
            State::Draining { cause, .. } if cause.leaves().out_of_service() => {
                refuse(Refusal::OutOfService, NextTry::WhenWoken, Wake::Never)
            }
            State::Draining { .. } => Gate::Hold { patience: wait, from: Instant::ORIGIN },
            State::Ending(ending) => match ending.after {
                After::Dial { .. } if ending.stuck() => {
                    refuse(Refusal::Stuck, NextTry::WhenGone, Wake::Never)
                }
                After::Dial { at } => self.gate_until(at),
                After::Idle { .. } => Gate::Knock,
                After::Park { next_probe_at, wake_from } => {
                    let (why, next) = self.parked_gate(&ending.cause, next_probe_at, wake_from);
                    refuse(why, next, Wake::Never)
                }
                After::OutOfService => refuse(Refusal::OutOfService, NextTry::WhenWoken, Wake::Never),
                After::NeedsAuth { next_probe_at } => {
                    refuse(Refusal::NeedsAuth, NextTry::At(next_probe_at), Wake::Never)
                }
                After::Closed => refuse(Refusal::Closed, NextTry::Never, Wake::Never),
            },
            State::Waiting { until, .. } => self.gate_until(*until),
            State::Parked { cause, next_probe_at, wake_from } => {
                let (why, next) = self.parked_gate(cause, *next_probe_at, *wake_from);
                refuse(why, next, Wake::From(*wake_from))
            }
            State::OutOfService { .. } => refuse(Refusal::OutOfService, NextTry::WhenWoken, Wake::Never),
            State::NeedsAuth { next_probe_at, .. } => {
                refuse(Refusal::NeedsAuth, NextTry::At(*next_probe_at), Wake::Never)
            }
            State::Closed => refuse(Refusal::Closed, NextTry::Never, Wake::Never),
        }
    }

    fn live_gate(&self, live: &Live) -> Gate {
        if live.unchecked && !live.wanted {
            Gate::Knock
        } else if live.unchecked {
            // The probe after sleep may have to fail, and a new generation be dialled, before a call can pass.
            let patience = self.policy.probe.worst() + self.policy.call.wait_for_line;
            Gate::Hold { patience, from: Instant::ORIGIN }
        } else if live.listens.is_refused() {
            // The tender tries again and again, in less than a second each: to a call that is under way.
            Gate::Hold { patience: self.policy.call.wait_for_line, from: Instant::ORIGIN }
        } else {
            Gate::Go { generation: self.generation }
        }
    }

    /// A call stands before a gate that said [`Admission::Knock`]. The answer is for this call alone.
    pub fn handle_knock(&mut self, now: Instant) -> Admission {
        let now = self.tick(now);
        match &mut self.state {
            State::Idle(_) => self.dial_from_idle(),
            State::Up(live) | State::Suspect(live) if live.unchecked && !live.wanted => {
                live.wanted = true;
                if live.resting() {
                    live.pulse = Pulse::Asking { since: now };
                }
            }
            State::Ending(ending) => {
                if let After::Idle { not_before } = ending.after {
                    ending.after = After::Dial { at: not_before };
                }
            }
            State::Parked { wake_from, .. } if *wake_from <= now => {
                self.episode.wakes = self.episode.wakes.saturating_add(1);
                self.dial(Origin::FromPark);
                return Admission::Hold(Held { until: now + self.policy.call.wait_for_line, waker: true });
            }
            _ => {}
        }
        self.gate().admit(now)
    }

    /// The machine slept: one probe before first use, and no herd of lines that all look at once.
    pub fn handle_sleep(&mut self, now: Instant) {
        let now = self.tick(now);
        let keepalive = self.policy.probe.keepalive;
        if let State::Up(live) | State::Suspect(live) = &mut self.state {
            live.rest(now, self.jitter.up_to(keepalive));
            live.unchecked = true;
        }
    }

    /// The time that `poll_timeout` named has come. Read what is readable and show the vitals first.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.tick(now);
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        match &mut self.state {
            State::Dialing(dialing) if dialing.may_go_on(self.starts) => self.go_on_starting(),
            State::Dialing(dialing) => {
                let conclusion = match dialing.phase {
                    DialPhase::Wanted
                    | DialPhase::AtGate
                    | DialPhase::Starting { .. }
                    | DialPhase::Slow { .. } => Conclusion::StartTimeout,
                    DialPhase::Shaking { .. } => Conclusion::HandshakeTimeout,
                };
                self.end(Cause::concluded(Class::Handshake, conclusion));
            }
            State::Up(_) | State::Suspect(_) => self.check_pulse(now),
            State::Draining { .. } => self.end_drained(),
            State::Ending(ending) => ending.time_is_up(),
            State::Waiting { .. } => self.dial(Origin::Again),
            State::Parked { .. } => self.dial(Origin::FromPark),
            State::NeedsAuth { .. } => self.dial(Origin::FromAuth),
            State::Idle(_) | State::OutOfService { .. } | State::Closed => {}
        }
    }

    /// When to call `handle_timeout`, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Dialing(dialing) => dialing.timeout(),
            State::Up(live) | State::Suspect(live) => Some(live.timeout(&self.policy.probe)),
            State::Ending(ending) => ending.timeout(),
            State::Draining { until, .. }
            | State::Waiting { until, .. }
            | State::Parked { next_probe_at: until, .. }
            | State::NeedsAuth { next_probe_at: until, .. } => Some(*until),
            State::Idle(_) | State::OutOfService { .. } | State::Closed => None,
        }
    }

    /// The next thing to do. Ask until it says `None`, and do each before asking for the next.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        let (generation, now) = (self.generation, self.now);
        // A death is sealed before it is told; and once all is done, the next state is the news.
        if let State::Ending(ending) = &self.state
            && matches!(ending.step, EndingStep::Seal | EndingStep::Forget)
        {
            return self.poll_ending();
        }
        let gate = self.gate();
        if core::mem::take(&mut self.unpublished) || gate != self.published {
            self.published = gate;
            return Some(Effect::Notice(gate));
        }
        match &mut self.state {
            State::Dialing(dialing) if dialing.phase == DialPhase::Wanted => {
                dialing.phase = DialPhase::AtGate;
                Some(Effect::Dial { generation })
            }
            State::Up(Live { pulse, .. }) | State::Suspect(Live { pulse, .. }) => match *pulse {
                Pulse::Asking { since } => {
                    *pulse = Pulse::Listening { since, until: now + self.policy.probe.timeout };
                    Some(Effect::Probe { generation })
                }
                Pulse::Resting { .. } | Pulse::Listening { .. } | Pulse::Pausing { .. } => None,
            },
            State::Ending(_) => self.poll_ending(),
            _ => None,
        }
    }

    fn poll_ending(&mut self) -> Option<Effect> {
        let State::Ending(ending) = &mut self.state else { return None };
        let effect = ending.poll(self.generation, self.now, &self.policy.close);
        if let Some(Effect::Forget { .. }) = effect {
            self.move_on();
        }
        effect
    }

    /// The generation is forgotten: the line goes where the end sent it.
    fn move_on(&mut self) {
        match core::mem::replace(&mut self.state, State::Closed) {
            State::Ending(Ending { cause, after, .. }) => match after {
                After::Dial { at } => self.wait_until(at, cause),
                After::Idle { not_before } => self.enter(State::Idle(Some(Rest { not_before, last: cause }))),
                After::Park { next_probe_at, wake_from } => {
                    self.enter(State::Parked { cause, next_probe_at, wake_from });
                }
                After::OutOfService => {
                    self.enter(State::OutOfService { cause: cause.join(Cause::planned(Plan::Park)) });
                }
                After::NeedsAuth { next_probe_at } => self.enter(State::NeedsAuth { cause, next_probe_at }),
                After::Closed => self.enter(State::Closed),
            },
            other => self.state = other,
        }
    }

    /// Waits for the next dial, or begins it if its time has come.
    fn wait_until(&mut self, until: Instant, last: Cause<D>) {
        self.enter(State::Waiting { until, last });
        if until <= self.now {
            self.dial(Origin::Again);
        }
    }

    /// Somebody needs a line that is idle. One that was stopped a moment ago keeps its distance.
    fn dial_from_idle(&mut self) {
        match core::mem::replace(&mut self.state, State::Idle(None)) {
            State::Idle(Some(rest)) => self.wait_until(rest.not_before, rest.last),
            State::Idle(None) => self.dial(Origin::First),
            other => self.state = other,
        }
    }

    /// Begins a new generation. The old one is gone: every caller of this comes from a state without one.
    fn dial(&mut self, origin: Origin) {
        let last = match core::mem::replace(&mut self.state, State::Idle(None)) {
            State::Waiting { last, .. } => Some(last),
            State::Parked { cause, .. } | State::NeedsAuth { cause, .. } => Some(cause),
            _ => None,
        };
        self.generation = self.generation.next();
        self.dialled_at = self.now;
        self.starts.begin();
        self.enter(State::Dialing(Dialing { phase: DialPhase::Wanted, origin, wrote: false, last }));
    }

    /// A new generation serves.
    fn up(&mut self) {
        self.starts.greeted();
        self.enter(State::Up(Live::new(self.now, &self.policy.probe)));
    }

    fn enter(&mut self, state: State<D>) {
        self.state = state;
        self.unpublished = true;
    }

    fn tick(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }
}
