//! Nobody listens at the address of a live generation: a server over HTTP that is being restarted.
//!
//! Calls wait, and the tender alone tries, one connection at a time, until somebody listens again. That need not be a
//! death: over HTTP a server that keeps no sessions is the same one after its restart.

use core::time::Duration;

use super::Machine;
use super::live::Pulse;
use super::state::State;
use crate::cause::{Cause, Conclusion};
use crate::class::Class;
use crate::time::{Instant, doubled};

/// The wait after the first attempt that was refused; doubles up to the cap.
const WAIT: Duration = Duration::from_millis(20);
const WAIT_CAP: Duration = Duration::from_millis(500);

/// Whether somebody listens at a generation's address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Listens {
    /// As far as is known.
    Presumed,
    /// A connection was refused.
    Refused {
        /// Since when.
        since: Instant,
        /// How many attempts of the tender's were refused since.
        attempts: u8,
    },
}

impl Listens {
    pub(super) const fn is_refused(self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl<D> Machine<D> {
    /// A call's connection was refused: one probe now, and no call before somebody listens.
    pub(super) fn refused(&mut self, now: Instant) -> bool {
        match &mut self.state {
            State::Up(live) | State::Suspect(live) => {
                // After sleep a check is planned already; and whoever is refused later learns nothing new.
                if !live.unchecked && !live.listens.is_refused() {
                    live.listens = Listens::Refused { since: now, attempts: 0 };
                    if live.resting() {
                        live.pulse = Pulse::Asking { since: now };
                    }
                    self.suspect();
                }
                true
            }
            State::Draining { .. } => true,
            _ => false,
        }
    }

    /// The probe's connection was refused: another attempt soon, unless that has gone on for as long as an idle line may
    /// be silent.
    pub(super) fn probe_refused(&mut self, now: Instant) -> bool {
        let patience = self.policy.probe.worst();
        let mut jitter = self.jitter;
        let (State::Up(live) | State::Suspect(live)) = &mut self.state else { return false };
        let Pulse::Listening { .. } = live.pulse else { return false };
        let (since, attempts) = match live.listens {
            Listens::Presumed => (now, 0),
            Listens::Refused { since, attempts } => (since, attempts),
        };
        if now.since(since) >= patience && !live.vitals.busy() {
            self.end(Cause::concluded(Class::Silent, Conclusion::ProbesUnanswered));
            return true;
        }
        live.unchecked = false;
        live.listens = Listens::Refused { since, attempts: attempts.saturating_add(1) };
        let wait = jitter.around(doubled(WAIT, attempts.into(), WAIT_CAP));
        live.pulse = Pulse::Resting { check_at: now + wait };
        self.jitter = jitter;
        self.suspect();
        true
    }
}
