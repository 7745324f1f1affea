//! The verdict that lets a call pass without asking the tender.

use crate::generation::Generation;
use crate::time::{Instant, Span};

/// What the machine publishes on every change. A call reads it, and mostly goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gate {
    /// Register in this generation's ledger.
    Go {
        /// The generation that is up.
        generation: Generation,
    },
    /// A generation is on its way: wait for the next gate.
    Hold {
        /// How long a call may wait, from its own arrival.
        patience: Span,
        /// When the dial will begin. A call that would not live to see it is refused at once.
        from: Instant,
    },
    /// The tender has to hear of this call first: knock, and do what it answers.
    Knock,
    /// Not now.
    Refuse {
        /// Why.
        why: Refusal,
        /// When the line is tried next.
        next: Option<Instant>,
        /// Whether a call may wake it before that.
        wake: Wake,
    },
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The next dial is further away than the call would wait.
    Waiting,
    /// The budget is spent, or the server cannot work as configured.
    Parked,
    /// Credentials are missing.
    NeedsAuth,
    /// The old process tree will not die, and two at once are never run. Nobody can say when it will.
    Stuck,
    /// The server kept state in its process, and that process is gone. Said once.
    StateLost,
    /// The line was closed.
    Closed,
}

/// Whether a call may wake a line that refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// It may not: only the user, new credentials or new configuration can.
    Never,
    /// From this time on the next call may knock.
    From(Instant),
    /// Somebody woke it just now.
    Underway,
}

/// What one call is told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admission {
    /// Register in this generation's ledger.
    Go {
        /// The generation that is up.
        generation: Generation,
    },
    /// Wait for the next gate, no longer than this.
    Hold {
        /// When to give up.
        until: Instant,
    },
    /// Ask the tender.
    Knock,
    /// End the call now.
    Refuse {
        /// Why.
        why: Refusal,
        /// When the line is tried next.
        next: Option<Instant>,
    },
}

impl Gate {
    /// What a call that arrives now is told. No allocation, no lock, no clock.
    #[inline]
    pub fn admit(self, now: Instant) -> Admission {
        match self {
            Self::Go { generation } => Admission::Go { generation },
            Self::Hold { patience, from } if from >= now + patience => {
                Admission::Refuse { why: Refusal::Waiting, next: Some(from) }
            }
            Self::Hold { patience, from: _ } => Admission::Hold { until: now + patience },
            Self::Knock => Admission::Knock,
            Self::Refuse { wake: Wake::From(from), .. } if from <= now => Admission::Knock,
            Self::Refuse { why, next, wake: _ } => Admission::Refuse { why, next },
        }
    }
}

impl Refusal {
    /// The word for this refusal in logs, metrics and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::NeedsAuth => "needs-auth",
            Self::Stuck => "stuck",
            Self::StateLost => "state-lost",
            Self::Closed => "closed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Gate, Refusal, Wake};
    use crate::generation::Generation;
    use crate::time::{Instant, Span};

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn an_open_gate_names_its_generation() {
        let generation = Generation::new(4);
        assert_eq!(Gate::Go { generation }.admit(NOW), Admission::Go { generation });
        assert_eq!(Gate::Knock.admit(NOW), Admission::Knock);
    }

    #[test]
    fn a_call_waits_its_own_patience_and_never_in_vain() {
        let patience = Span::from_secs(5);
        let gate = |from| Gate::Hold { patience, from };
        assert_eq!(gate(NOW).admit(NOW), Admission::Hold { until: NOW + patience });
        let just_in_time = Instant::from_nanos((NOW + patience).nanos() - 1);
        assert_eq!(gate(just_in_time).admit(NOW), Admission::Hold { until: NOW + patience });
        let too_late = NOW + patience;
        let refused = Admission::Refuse { why: Refusal::Waiting, next: Some(too_late) };
        assert_eq!(gate(too_late).admit(NOW), refused);
    }

    #[test]
    fn a_parked_line_is_knocked_at_only_when_it_may_wake() {
        let gate = |wake| Gate::Refuse { why: Refusal::Parked, next: None, wake };
        let refused = Admission::Refuse { why: Refusal::Parked, next: None };
        assert_eq!(gate(Wake::Never).admit(NOW), refused);
        assert_eq!(gate(Wake::Underway).admit(NOW), refused);
        assert_eq!(gate(Wake::From(NOW + Span::from_nanos(1))).admit(NOW), refused);
        assert_eq!(gate(Wake::From(NOW)).admit(NOW), Admission::Knock);
    }
}
