//! A generation that serves, and how its pulse is felt.
//!
//! A slow call is not a dead server. So a live line is probed only when it is idle (over HTTP only if the policy says so), or when a
//! call is overdue, or given up, or after the machine slept; and an unanswered probe ends a line only when nobody waits for an answer
//! that the server may still be busy with, or when the call that it would have to be busy with was given up long ago.

use core::time::Duration;

use super::input::Vitals;
use super::refused::Listens;
use crate::cause::Conclusion;
use crate::policy::{ProbePolicy, Settings};
use crate::time::{Instant, nanos};

/// A generation that serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Live {
    pub(super) up_at: Instant,
    pub(super) vitals: Vitals,
    pub(super) pulse: Pulse,
    /// Probes unanswered in a row.
    pub(super) missed: u8,
    /// The machine slept, or the server was silent for long, and nothing was heard since: the next call waits for a probe.
    pub(super) unchecked: bool,
    /// A call waits for that probe, or gave up waiting.
    pub(super) wanted: bool,
    /// Whether somebody listens at its address.
    pub(super) listens: Listens,
    /// Until when time up has been turned into budget: never beyond the last sign of life.
    pub(super) paid_until: Instant,
}

/// Where the watch on a live generation stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pulse {
    /// No probe is out.
    Resting {
        /// When to look again.
        check_at: Instant,
    },
    /// The driver has yet to be told to probe.
    Asking {
        /// When that was decided.
        since: Instant,
    },
    /// A probe is out.
    Listening {
        /// Since when.
        since: Instant,
        /// When it counts as missed.
        until: Instant,
    },
    /// The probe failed early. A refusal in a millisecond must not end a line sooner than silence would.
    Pausing {
        /// When the probe had gone out.
        since: Instant,
        /// When it counts as missed.
        until: Instant,
    },
}

/// What newer vitals told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Observed {
    /// Callers that were answered since.
    pub(super) answers: u64,
    /// Whether the server showed life after it came under suspicion.
    pub(super) heard: bool,
    /// Whether the generation was abandoned since.
    pub(super) abandoned: bool,
}

impl Live {
    pub(super) fn new(now: Instant, probe: &ProbePolicy) -> Self {
        Self {
            up_at: now,
            vitals: Vitals { heard_at: now, ..Vitals::default() },
            pulse: Pulse::Resting { check_at: now + probe.keepalive },
            missed: 0,
            unchecked: false,
            wanted: false,
            listens: Listens::Presumed,
            paid_until: now,
        }
    }

    /// Whether it has answered a caller, or was heard of a keepalive interval after it came up. Our own traffic proves
    /// nothing, and neither does silence.
    pub fn proven(&self, probe: &ProbePolicy) -> bool {
        self.vitals.answered > 0 || self.vitals.heard_at.since(self.up_at) >= probe.keepalive
    }

    /// Since when it serves.
    pub const fn up_at(&self) -> Instant {
        self.up_at
    }

    /// The vitals it was last shown with.
    pub const fn vitals(&self) -> Vitals {
        self.vitals
    }

    /// Where the watch stands.
    pub const fn pulse(&self) -> Pulse {
        self.pulse
    }

    pub(super) fn timeout(&self, probe: &ProbePolicy) -> Instant {
        match self.pulse {
            Pulse::Resting { check_at } => check_at,
            // The driver takes the effect at once; should it not, the probe still counts as missed in time.
            Pulse::Asking { since } => since + probe.timeout,
            Pulse::Listening { until, .. } | Pulse::Pausing { until, .. } => until,
        }
    }

    /// Takes the newer numbers, and says what is new in them.
    pub(super) fn observe(&mut self, vitals: Vitals) -> Observed {
        let answers = vitals.answered.saturating_sub(self.vitals.answered);
        let heard = vitals.heard_at > self.vitals.heard_at && vitals.heard_at >= self.suspected_at();
        let heard_at = self.vitals.heard_at.max(vitals.heard_at);
        let abandoned = vitals.abandoned_at.is_some() && vitals.abandoned_at != self.vitals.abandoned_at;
        let answered = self.vitals.answered + answers;
        self.vitals = Vitals { answered, heard_at, ..vitals };
        Observed { answers, heard, abandoned }
    }

    /// When the last probes before the end of an abandoned generation begin, and when it ends.
    pub(super) fn abandoned_until(&self, policy: &Settings) -> Option<(Instant, Instant)> {
        let worst = policy.probe.worst();
        let patience = policy.call.abandoned_after.max(worst);
        let end = self.vitals.abandoned_at? + patience;
        Some((Instant::from_nanos(end.nanos().saturating_sub(nanos(worst))), end))
    }

    /// Why the generation is to end now that all probes went unanswered. `None` leaves it alone.
    ///
    /// A server in a process may be busy. What it works on may be what was given up, or nobody's: for as long as it works, and no
    /// longer than the limit for hangs, it is left alone. A server that does nothing is replaced once somebody waits for it.
    pub(super) fn judged(&self, now: Instant, policy: &Settings) -> Option<Conclusion> {
        let Vitals { in_flight, abandoned_at, exchanges, works, heard_at, .. } = self.vitals;
        let abandoned = self.abandoned_until(policy).is_some_and(|(_, end)| exchanges || end <= now);
        let hang_at = abandoned_at.unwrap_or(heard_at) + policy.call.hang_after;
        if !self.vitals.busy() && (exchanges || (self.wanted && !works)) {
            // Whoever waits outside loses nothing by its end.
            Some(Conclusion::ProbesUnanswered)
        } else if exchanges && abandoned {
            // Calls with exchanges of their own lose nothing by the end of the generation.
            Some(Conclusion::Abandoned)
        } else if in_flight == 0 && !self.wanted {
            None
        } else if abandoned && !works {
            // The call that it would have to be busy with was given up, and those behind it wait for nothing.
            Some(Conclusion::Abandoned)
        } else {
            (hang_at <= now && now.since(heard_at) >= policy.call.hang_after).then_some(Conclusion::Hung)
        }
    }

    /// Whether the next call has to wait for a probe: nobody waits, and the server was silent for long and does nothing.
    pub(super) fn is_doubtful(&self, now: Instant, policy: &Settings) -> bool {
        let silent = now.since(self.vitals.heard_at) >= 2 * policy.call.abandoned_after;
        let abandoned = self.abandoned_until(policy).is_some_and(|(_, end)| end <= now);
        self.vitals.in_flight == 0 && !self.vitals.works && (silent || abandoned)
    }

    /// Whether a probe may begin now. The last ones before the end of an abandoned generation are timed to end there,
    /// so none may begin that would still be out by then.
    pub(super) fn may_ask(&self, now: Instant, policy: &Settings) -> bool {
        let held_back = self
            .abandoned_until(policy)
            .is_some_and(|(last, _)| now < last && last < now + policy.probe.worst());
        self.resting() && (self.vitals.exchanges || !held_back)
    }

    /// The server is alive: whatever was suspected is forgotten.
    pub(super) fn rest(&mut self, now: Instant, keepalive: Duration) {
        self.pulse = Pulse::Resting { check_at: now + keepalive };
        self.missed = 0;
        self.listens = Listens::Presumed;
        self.unchecked = false;
        self.wanted = false;
    }

    pub(super) const fn resting(&self) -> bool {
        matches!(self.pulse, Pulse::Resting { .. })
    }

    const fn suspected_at(&self) -> Instant {
        match self.pulse {
            Pulse::Resting { .. } => Instant::ORIGIN,
            Pulse::Asking { since } | Pulse::Listening { since, .. } | Pulse::Pausing { since, .. } => since,
        }
    }
}
