//! The verdict that lets a call pass without asking the tender.

use core::time::Duration;

use crate::generation::Generation;
use crate::time::Instant;

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
        patience: Duration,
        /// When the dial will begin. A call that would not live to see it is refused at once.
        from: Instant,
    },
    /// The tender has to hear of this call first: knock, and do what it answers.
    Knock,
    /// Refuse the call.
    Refuse {
        /// Why.
        why: Refusal,
        /// When the line is tried next.
        next: NextTry,
        /// Whether a call may wake it before that.
        wake: Wake,
    },
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The next dial is further away than the call would wait.
    Waiting,
    /// The budget is spent, or the server cannot work as configured.
    Parked,
    /// The server never answered, and says that its login was refused: calls do not start it.
    LoginRefused,
    /// An operator took it out of service: only an operator brings it back.
    OutOfService,
    /// Credentials are missing.
    NeedsAuth,
    /// The old process tree will not die, and two at once are never run.
    Stuck,
    /// The line was closed.
    Closed,
}

/// When a line that refuses is tried next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextTry {
    /// At this time.
    At(Instant),
    /// At this time, or with the first call after an earlier one.
    AtOrCall {
        /// When it is tried by itself.
        at: Instant,
        /// From when on a call starts it.
        call: Instant,
    },
    /// It is being tried right now.
    Underway,
    /// With the next call.
    NextCall,
    /// As soon as the old process tree is gone. Nobody can say when.
    WhenGone,
    /// When an operator wakes it. No timer, no call and no credentials do.
    WhenWoken,
    /// Never: it was closed.
    Never,
}

/// Whether a call may wake a line that refuses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// It may not: only the user, new credentials or new configuration can.
    Never,
    /// From this time on the next call may knock.
    From(Instant),
    /// Another call just woke it.
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
    /// Wait for the next gate, and ask it with [`Gate::recheck`].
    Hold(Held),
    /// Ask the tender.
    Knock,
    /// End the call now.
    Refuse {
        /// Why.
        why: Refusal,
        /// When the line is tried next.
        next: NextTry,
    },
}

/// What a call that waits carries from one gate to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    /// When it gives up.
    pub until: Instant,
    /// Whether a parked line is being dialled for it. It waits where others are refused.
    pub waker: bool,
}

impl Gate {
    /// What a call that arrives now is told. No allocation, no lock, no clock.
    #[inline]
    pub fn admit(self, now: Instant) -> Admission {
        match self {
            Self::Go { generation } => Admission::Go { generation },
            Self::Hold { patience, from } => held(Held { until: now + patience, waker: false }, from),
            Self::Knock => Admission::Knock,
            Self::Refuse { wake: Wake::From(from), .. } if from <= now => Admission::Knock,
            Self::Refuse { why, next, wake: _ } => Admission::Refuse { why, next },
        }
    }

    /// What a call that has been waiting is told by a new gate. Its patience is not renewed.
    pub fn recheck(self, waiting: Held) -> Admission {
        match self {
            Self::Go { generation } => Admission::Go { generation },
            Self::Hold { from, .. } => held(waiting, from),
            Self::Knock => Admission::Knock,
            Self::Refuse { wake: Wake::Underway, .. } if waiting.waker => Admission::Hold(waiting),
            Self::Refuse { why, next, wake: _ } => Admission::Refuse { why, next },
        }
    }
}

/// A call waits, unless it would wait in vain.
fn held(held: Held, from: Instant) -> Admission {
    if from >= held.until {
        Admission::Refuse { why: Refusal::Waiting, next: NextTry::At(from) }
    } else {
        Admission::Hold(held)
    }
}

impl Refusal {
    /// Words for a refusal that has no cause of its own.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Waiting => "the server is down, and the next restart is later than this call may wait",
            Self::Parked => "the server is down",
            Self::LoginRefused => {
                "the server says that its login was refused, and each start may lock the account, so calls do not start it"
            }
            Self::OutOfService => "the server was parked by an operator",
            Self::NeedsAuth => "waiting for credentials",
            Self::Stuck => "the previous server process cannot be killed",
            Self::Closed => "the connection is closed",
        }
    }

    /// The word for this refusal in logs, metrics and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::LoginRefused => "login-refused",
            Self::OutOfService => "out-of-service",
            Self::NeedsAuth => "needs-auth",
            Self::Stuck => "stuck",
            Self::Closed => "closed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Gate, Held, NextTry, Refusal, Wake};
    use crate::generation::Generation;
    use crate::time::Instant;
    use core::time::Duration;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn an_open_gate_names_its_generation() {
        let generation = Generation::new(4);
        assert_eq!(Gate::Go { generation }.admit(NOW), Admission::Go { generation });
        assert_eq!(Gate::Knock.admit(NOW), Admission::Knock);
    }

    #[test]
    fn a_call_waits_its_own_patience_and_never_in_vain() {
        let patience = Duration::from_secs(5);
        let gate = |from| Gate::Hold { patience, from };
        let held = Held { until: NOW + patience, waker: false };
        assert_eq!(gate(NOW).admit(NOW), Admission::Hold(held));
        let just_in_time = Instant::from_nanos((NOW + patience).nanos() - 1);
        assert_eq!(gate(just_in_time).admit(NOW), Admission::Hold(held));
        let too_late = NOW + patience;
        let refused = Admission::Refuse { why: Refusal::Waiting, next: NextTry::At(too_late) };
        assert_eq!(gate(too_late).admit(NOW), refused);
        // The next gate does not renew its patience.
        assert_eq!(gate(just_in_time).recheck(held), Admission::Hold(held));
        assert_eq!(gate(too_late).recheck(held), refused);
        let generation = Generation::new(1);
        assert_eq!(Gate::Go { generation }.recheck(held), Admission::Go { generation });
        assert_eq!(Gate::Knock.recheck(held), Admission::Knock);
    }

    #[test]
    fn a_parked_line_is_knocked_at_only_when_it_may_wake() {
        let gate = |wake| Gate::Refuse { why: Refusal::Parked, next: NextTry::Never, wake };
        let refused = Admission::Refuse { why: Refusal::Parked, next: NextTry::Never };
        assert_eq!(gate(Wake::Never).admit(NOW), refused);
        assert_eq!(gate(Wake::Underway).admit(NOW), refused);
        assert_eq!(gate(Wake::From(NOW + Duration::from_nanos(1))).admit(NOW), refused);
        assert_eq!(gate(Wake::From(NOW)).admit(NOW), Admission::Knock);
        // The one that woke it waits while others are refused, and is refused when it was in vain.
        let waker = Held { until: NOW, waker: true };
        assert_eq!(gate(Wake::Underway).recheck(waker), Admission::Hold(waker));
        assert_eq!(gate(Wake::Underway).recheck(Held { waker: false, ..waker }), refused);
        assert_eq!(gate(Wake::From(NOW)).recheck(waker), refused);
    }
}
