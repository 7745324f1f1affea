//! Starts of a server that has never answered: few, because each may cost something.
//!
//! A server that logs in at its start with a wrong password locks the account; one that opens a page to log in opens it at
//! each start. As long as no start of its process has ended in a handshake, nothing shows that another start is of use. So
//! such a server is started at fixed times that grow apart, and a call counts as a reason once a minute. After the first
//! handshake the budget decides.

use core::time::Duration;

use super::Machine;
use super::ending::After;
use super::state::{DialPhase, Dialing, State};
use crate::cause::{Cause, Leaf, Plan};
use crate::gate::{Gate, NextTry, Refusal, Wake};
use crate::policy::ParkPolicy;
use crate::time::{Instant, nanos};

/// Longest start of a server that writes to stderr: a person may have to log in, with a second factor.
const LONGEST_START: Duration = Duration::from_secs(600);

/// First of the slow tries: what a server writes about a refused login leaves the quick ones out.
const FIRST_SLOW: u32 = 3;

/// What the starts of this line have come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Starts {
    /// No start has ended in a handshake.
    Unanswered {
        /// Which of the planned tries was the last; the first is 0.
        step: u32,
        /// True if the present generation has started a process.
        process: bool,
    },
    /// The server shook hands, and no call was answered yet: it may log in only now.
    Greeted,
    /// The server answered a call once.
    Answered,
}

impl Starts {
    pub(super) const NONE: Self = Self::Unanswered { step: 0, process: false };

    /// A start has ended in a handshake.
    pub(super) fn greeted(&mut self) {
        if *self != Self::Answered {
            *self = Self::Greeted;
        }
    }

    /// A new generation: no process was started for it yet.
    pub(super) const fn begin(&mut self) {
        if let Self::Unanswered { process, .. } = self {
            *process = false;
        }
    }
}

/// When the try with this number is made, counted from the first: after 0, 10 s, 60 s, 10 min, 30 min, then hourly.
fn mark(step: u32, park: &ParkPolicy) -> Duration {
    let hours = |hours: u32| park.probe_cap.saturating_mul(12).saturating_mul(hours);
    match step {
        0 => Duration::ZERO,
        1 => park.wake.saturating_mul(2),
        2 => park.wake_cap,
        3 => park.probe_cap.saturating_mul(2),
        4 => park.probe_cap.saturating_mul(6),
        later => park.probe_cap.saturating_mul(6).saturating_add(hours(later - 4)),
    }
}

impl<D> Machine<D> {
    /// Where a line goes whose server failed before it ever answered. `None` leaves that to the budget: the server has
    /// answered once, nothing was started, or an operator wants a start.
    ///
    /// The pause is measured from the end of the try, so that a start that hangs is not followed by the next at once.
    pub(super) fn spared_place(&mut self, cause: &Cause<D>) -> Option<After> {
        // It logs in after its handshake, which showed nothing then.
        if self.starts == Starts::Greeted && cause.login_refused() {
            self.starts = Starts::Unanswered { step: 0, process: true };
        }
        let Starts::Unanswered { step, process: true } = self.starts else { return None };
        if cause.leaves().has(Leaf::Planned(Plan::Redial)) {
            return None;
        }
        let refused = cause.login_refused();
        let next = step.saturating_add(1).max(if refused { FIRST_SLOW } else { 0 });
        self.starts = Starts::Unanswered { step: next, process: false };
        let park = &self.policy.park;
        let pause = mark(next, park).saturating_sub(mark(step, park)).max(park.wake);
        let at = self.now + pause;
        // The next try is near enough to be the use of this minute too.
        if !refused && pause <= park.wake_cap {
            return Some(After::Dial { at });
        }
        let wake_from = if refused { at } else { self.now + park.wake_cap };
        Some(After::Park { next_probe_at: at, wake_from })
    }

    /// What a call is told of a line that is parked until `at`, or until a call comes after `wake_from`.
    pub(super) fn parked_gate(
        &self,
        cause: &Cause<D>,
        at: Instant,
        wake_from: Instant,
    ) -> (Refusal, NextTry) {
        match self.starts {
            Starts::Unanswered { .. } if cause.login_refused() => (Refusal::LoginRefused, NextTry::At(at)),
            // No try has failed yet: it is parked for its configuration.
            Starts::Unanswered { step: 0, .. } | Starts::Greeted | Starts::Answered => {
                (Refusal::Parked, NextTry::At(at))
            }
            Starts::Unanswered { .. } => (Refusal::Parked, NextTry::AtOrCall { at, call: wake_from }),
        }
    }

    /// What a call is told of a line that is dialled at this time. The first start is waited for as long as it may take; whoever
    /// waits for it is told that it failed, and no call waits for the next one longer than for any restart.
    pub(super) fn gate_until(&self, at: Instant) -> Gate {
        let wait = self.policy.call.wait_for_line;
        match self.starts {
            Starts::Unanswered { step: 1.., .. } if at > self.now + wait => Gate::Refuse {
                why: Refusal::Waiting,
                next: NextTry::At(at),
                wake: Wake::From(Instant::from_nanos(at.nanos().saturating_sub(nanos(wait)))),
            },
            Starts::Unanswered { .. } | Starts::Greeted | Starts::Answered => {
                Gate::Hold { patience: wait, from: at }
            }
        }
    }

    /// The driver has started a process.
    pub(super) fn process_started(&mut self) -> bool {
        let dialing = matches!(self.state, State::Dialing(_));
        if dialing && let Starts::Unanswered { process, .. } = &mut self.starts {
            *process = true;
        }
        dialing
    }

    /// The process has written to stderr.
    pub(super) fn wrote(&mut self) -> bool {
        match &mut self.state {
            State::Dialing(dialing) => !core::mem::replace(&mut dialing.wrote, true),
            _ => false,
        }
    }

    /// The start limit is over, and the start goes on. Whoever has waited as long as that is told; later calls wait a little.
    pub(super) fn go_on_starting(&mut self) {
        let longer = LONGEST_START.saturating_sub(self.policy.dial.start);
        if let State::Dialing(dialing) = &mut self.state
            && let DialPhase::Starting { until } = dialing.phase
        {
            dialing.phase = DialPhase::Slow { until: until + longer };
        }
    }
}

impl<D> Dialing<D> {
    /// True if the start goes on beyond its limit.
    pub(super) const fn may_go_on(&self, starts: Starts) -> bool {
        self.wrote
            && matches!(self.phase, DialPhase::Starting { .. })
            && matches!(starts, Starts::Unanswered { process: true, .. })
    }
}
