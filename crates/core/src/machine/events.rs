//! What happened to a generation, and what follows.

use super::Machine;
use super::ending::Ending;
use super::input::{Event, Heard, Vitals};
use super::live::Pulse;
use super::refused::Listens;
use super::state::{DialPhase, State};
use crate::cause::Cause;
use crate::generation::Generation;
use crate::policy::Settings;
use crate::time::Instant;

impl<D> Machine<D> {
    /// How the generation is doing. Show it before every other input.
    pub fn handle_vitals(&mut self, now: Instant, generation: Generation, vitals: Vitals) -> Heard {
        let now = self.tick(now);
        if generation != self.generation {
            return Heard::Stale;
        }
        let suspect = matches!(self.state, State::Suspect(_));
        let Some(live) = self.state.live_mut() else { return Heard::OutOfPlace };
        let watched = suspect || live.unchecked || !live.resting();
        // An old connection may still bring something while nobody takes a new one.
        let refused = live.listens.is_refused();
        let seen = live.observe(Vitals {
            heard_at: vitals.heard_at.min(now),
            abandoned_at: vitals.abandoned_at.map(|at| at.min(now)),
            ..vitals
        });
        self.accrue();
        self.budget.earn_answers(&self.policy.budget, seen.answers);
        if matches!(self.state, State::Draining { .. }) {
            if vitals.in_flight == 0 {
                self.end_drained();
            }
        } else {
            if seen.heard && watched && !refused {
                self.alive(now);
            }
            if seen.abandoned {
                self.abandoned(now);
            }
        }
        Heard::Taken
    }

    /// Something happened to a generation.
    pub fn handle_event(&mut self, now: Instant, generation: Generation, event: Event<D>) -> Heard {
        let now = self.tick(now);
        if generation != self.generation {
            return Heard::Stale;
        }
        let taken = match event {
            Event::Started => self.dial_progress(
                |phase| matches!(phase, DialPhase::AtGate),
                |policy| DialPhase::Starting { until: now + policy.dial.start },
            ),
            Event::Spawned => self.process_started(),
            Event::Wrote => self.wrote(),
            Event::FirstByte => self.dial_progress(
                |phase| matches!(phase, DialPhase::Starting { .. } | DialPhase::Slow { .. }),
                |policy| DialPhase::Shaking { until: now + policy.dial.handshake },
            ),
            Event::Dialled => self.dialled(),
            Event::Lost(cause) => self.lost(cause),
            Event::Trouble => self.trouble(now),
            Event::Refused => self.refused(now),
            Event::Overdue => self.overdue(now),
            Event::ProbeAnswered => self.probe_answered(now),
            Event::ProbeFailed => self.probe_failed(),
            Event::ProbeRefused => self.probe_refused(now),
            Event::ProbeUnsent => self.probe_unsent(now),
            Event::Drained => self.ending_step(Ending::drained),
            Event::NoReader => self.ending_step(Ending::no_reader),
            Event::Gone(note) => self.gone(note),
        };
        if taken { Heard::Taken } else { Heard::OutOfPlace }
    }

    fn dial_progress(
        &mut self,
        expected: impl FnOnce(DialPhase) -> bool,
        next: impl FnOnce(&Settings) -> DialPhase,
    ) -> bool {
        match &mut self.state {
            State::Dialing(dialing) if expected(dialing.phase) => {
                dialing.phase = next(&self.policy);
                true
            }
            _ => false,
        }
    }

    fn dialled(&mut self) -> bool {
        let dialing = matches!(self.state, State::Dialing(_));
        if dialing {
            self.up();
        }
        dialing
    }

    fn lost(&mut self, cause: Cause<D>) -> bool {
        match &self.state {
            State::Dialing(_) | State::Up(_) | State::Suspect(_) | State::Draining { .. } => self.end(cause),
            State::Ending(_) => self.failed_while_ending(cause),
            State::Idle(_)
            | State::Waiting { .. }
            | State::Parked { .. }
            | State::OutOfService { .. }
            | State::NeedsAuth { .. }
            | State::Closed => return false,
        }
        true
    }

    fn trouble(&mut self, now: Instant) -> bool {
        match &mut self.state {
            // After sleep a check is planned already; a thousand cut streams must not make a thousand probes.
            State::Up(live) | State::Suspect(live) if !live.unchecked => {
                if live.may_ask(now, &self.policy) {
                    live.pulse = Pulse::Asking { since: now };
                }
                self.suspect();
                true
            }
            State::Up(_) | State::Suspect(_) | State::Draining { .. } => true,
            _ => false,
        }
    }

    fn overdue(&mut self, now: Instant) -> bool {
        match &mut self.state {
            State::Up(live) | State::Suspect(live) => {
                if live.may_ask(now, &self.policy) {
                    live.pulse = Pulse::Asking { since: now };
                }
                true
            }
            State::Draining { .. } => true,
            _ => false,
        }
    }

    fn probe_answered(&mut self, now: Instant) -> bool {
        let live = matches!(self.state, State::Up(_) | State::Suspect(_));
        if live {
            if let Some(live) = self.state.live_mut() {
                live.vitals = Vitals { heard_at: now, owed: false, abandoned_at: None, ..live.vitals };
            }
            self.alive(now);
        }
        live
    }

    fn probe_failed(&mut self) -> bool {
        match &mut self.state {
            State::Up(live) | State::Suspect(live) => match live.pulse {
                Pulse::Listening { since, until } => {
                    live.listens = Listens::Presumed;
                    live.pulse = Pulse::Pausing { since, until };
                    self.suspect();
                    true
                }
                Pulse::Resting { .. } | Pulse::Asking { .. } | Pulse::Pausing { .. } => false,
            },
            _ => false,
        }
    }

    fn probe_unsent(&mut self, now: Instant) -> bool {
        let out = match &self.state {
            State::Up(live) | State::Suspect(live) => matches!(live.pulse, Pulse::Listening { .. }),
            _ => false,
        };
        if out {
            self.look_later(now);
        }
        out
    }

    fn ending_step(&mut self, step: impl FnOnce(&mut Ending<D>) -> bool) -> bool {
        match &mut self.state {
            State::Ending(ending) => step(ending),
            _ => false,
        }
    }

    fn gone(&mut self, note: Option<D>) -> bool {
        self.ending_step(|ending| {
            let taken = ending.gone();
            if let (true, Some(note)) = (taken, note) {
                ending.cause.add_teardown(note);
            }
            taken
        })
    }
}
