//! A generation being laid to rest, in the one order that loses no answer and runs nothing twice.

use core::time::Duration;

use super::effect::Effect;
use crate::budget::Cost;
use crate::cause::{Cause, Conclusion, Detail, Leaf, Plan};
use crate::class::Class;
use crate::generation::Generation;
use crate::order::Settle;
use crate::policy::ClosePolicy;
use crate::time::Instant;

/// A generation being laid to rest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ending<D> {
    pub(super) cause: Cause<D>,
    pub(super) after: After,
    pub(super) cost: Cost,
    pub(super) step: EndingStep,
    /// After the seal, how long a verdict may wait for proof.
    pub(super) settle_by: Instant,
    pub(super) served: Served,
}

/// How the generation had served its callers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Served {
    /// How many it had answered.
    pub(super) answered: u64,
    /// Whether each call has an exchange of its own. A generation that was never up had no calls.
    pub(super) exchanges: bool,
}

/// Where the line goes when the generation is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum After {
    /// It dials again.
    Dial {
        /// When.
        at: Instant,
    },
    /// It waits until somebody needs it.
    Idle {
        /// Before that no use can dial it.
        not_before: Instant,
    },
    /// It parks.
    Park {
        /// The first probe.
        next_probe_at: Instant,
        /// From when on a call may wake it.
        wake_from: Instant,
    },
    /// It is out of service until an operator wakes it.
    OutOfService,
    /// It needs credentials.
    NeedsAuth {
        /// The first probe.
        next_probe_at: Instant,
    },
    /// It is closed.
    Closed,
}

/// The next thing to do, or what is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EndingStep {
    /// To do.
    Seal,
    /// To do, right after the notice.
    Drain,
    /// Waiting for `Drained`.
    Draining,
    /// To do.
    SettleCertain,
    /// To do: kill, close, or let go.
    Fell,
    /// Waiting for `NoReader` or `Gone`.
    Falling,
    /// To do: settle the rest.
    SettleRest {
        /// Whether there is a proof to settle by.
        settle: Settle,
        /// Whether the tree is gone already.
        gone: bool,
    },
    /// Waiting for `Gone`.
    Fallen {
        /// When the tree counts as stuck.
        stuck_at: Instant,
        /// Whether it did before.
        stuck: bool,
    },
    /// To do: it would not die, and is told again.
    KillAgain,
    /// To do, and then the generation is no more.
    Forget,
}

impl<D> Ending<D> {
    pub(super) fn new(
        cause: Cause<D>,
        (after, cost): (After, Cost),
        settle_by: Instant,
        served: Served,
    ) -> Self {
        Self { cause, after, cost, step: EndingStep::Seal, settle_by, served }
    }

    /// Whether the server has been told to die. Until then, what it dies of is its own.
    pub(super) const fn fell(&self) -> bool {
        match self.step {
            EndingStep::Seal
            | EndingStep::Drain
            | EndingStep::Draining
            | EndingStep::SettleCertain
            | EndingStep::Fell => false,
            EndingStep::Falling
            | EndingStep::SettleRest { .. }
            | EndingStep::Fallen { .. }
            | EndingStep::KillAgain
            | EndingStep::Forget => true,
        }
    }

    /// Somebody wants it for another reason too.
    pub(super) fn add_plan(&mut self, plan: Plan) {
        let cause = core::mem::replace(&mut self.cause, Cause::planned(plan));
        self.cause = cause.join(Cause::planned(plan));
    }

    /// Why it ends.
    pub const fn cause(&self) -> &Cause<D> {
        &self.cause
    }

    /// Where the line goes then.
    pub const fn after(&self) -> After {
        self.after
    }

    /// What it cost.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// How far it is.
    pub const fn step(&self) -> EndingStep {
        self.step
    }

    pub(super) const fn stuck(&self) -> bool {
        matches!(self.step, EndingStep::Fallen { stuck: true, .. } | EndingStep::KillAgain)
    }

    pub(super) const fn timeout(&self) -> Option<Instant> {
        match self.step {
            EndingStep::Draining | EndingStep::Falling => Some(self.settle_by),
            EndingStep::Fallen { stuck_at, .. } => Some(stuck_at),
            EndingStep::Seal
            | EndingStep::Drain
            | EndingStep::SettleCertain
            | EndingStep::Fell
            | EndingStep::SettleRest { .. }
            | EndingStep::KillAgain
            | EndingStep::Forget => None,
        }
    }

    /// Hands out the next thing to do. The machine sees to the notice (after the seal) and to what follows
    /// `Forget`.
    pub(super) fn poll(
        &mut self,
        generation: Generation,
        now: Instant,
        close: &ClosePolicy,
    ) -> Option<Effect> {
        let (effect, next) = match self.step {
            EndingStep::Seal => (Effect::Seal { generation }, EndingStep::Drain),
            EndingStep::Drain => (Effect::Drain { generation }, EndingStep::Draining),
            EndingStep::SettleCertain => {
                (Effect::Settle { generation, settle: Settle::Certain }, EndingStep::Fell)
            }
            EndingStep::Fell if self.cause.leaves().planned() => {
                (Effect::Close { generation }, EndingStep::Falling)
            }
            EndingStep::Fell if self.calls_run_on() => (Effect::LetGo { generation }, EndingStep::Falling),
            EndingStep::Fell => (Effect::Kill { generation }, EndingStep::Falling),
            EndingStep::SettleRest { settle, gone } => {
                let settle = if self.calls_run_on() { Settle::Own } else { settle };
                let next = if gone { EndingStep::Forget } else { self.fallen(now, close, false) };
                (Effect::Settle { generation, settle }, next)
            }
            EndingStep::KillAgain if self.calls_run_on() => {
                (Effect::LetGo { generation }, self.fallen(now, close, true))
            }
            EndingStep::KillAgain => (Effect::Kill { generation }, self.fallen(now, close, true)),
            EndingStep::Forget => (Effect::Forget { generation }, EndingStep::Forget),
            EndingStep::Draining | EndingStep::Falling | EndingStep::Fallen { .. } => return None,
        };
        self.step = next;
        Some(effect)
    }

    /// Whether calls may still be answered: each has an exchange of its own, and only the session is gone, or nobody answers on
    /// new ones.
    fn calls_run_on(&self) -> bool {
        let session = Leaf::Failed(Class::SessionLost);
        let abandoned = matches!(self.cause.headline().detail, Detail::Concluded(Conclusion::Abandoned));
        self.served.exchanges && (abandoned || self.cause.leaves().iter().all(|leaf| leaf == session))
    }

    fn fallen(&self, now: Instant, close: &ClosePolicy, stuck: bool) -> EndingStep {
        // The first time a planned end gets its whole ladder; a second kill has no ladder to climb.
        let ladder =
            if self.cause.leaves().planned() && !stuck { close.stdin + close.term } else { Duration::ZERO };
        EndingStep::Fallen { stuck_at: now + ladder + close.crash + close.kill, stuck }
    }

    /// The drain is over, one way or the other.
    pub(super) fn drained(&mut self) -> bool {
        let expected = self.step == EndingStep::Draining;
        if expected {
            self.step = EndingStep::SettleCertain;
        }
        expected
    }

    /// No reader is left: what was not read can be counted.
    pub(super) fn no_reader(&mut self) -> bool {
        let expected = self.step == EndingStep::Falling;
        if expected {
            self.step = EndingStep::SettleRest { settle: Settle::Residue, gone: false };
        }
        expected
    }

    /// The tree is gone, and with it every reader.
    pub(super) fn gone(&mut self) -> bool {
        match &mut self.step {
            step @ EndingStep::Falling => {
                *step = EndingStep::SettleRest { settle: Settle::Residue, gone: true }
            }
            EndingStep::SettleRest { gone, .. } => *gone = true,
            step @ (EndingStep::Fallen { .. } | EndingStep::KillAgain) => *step = EndingStep::Forget,
            EndingStep::Seal
            | EndingStep::Drain
            | EndingStep::Draining
            | EndingStep::SettleCertain
            | EndingStep::Fell
            | EndingStep::Forget => return false,
        }
        true
    }

    /// The time of the present step is over.
    pub(super) fn time_is_up(&mut self) {
        match self.step {
            EndingStep::Draining => self.step = EndingStep::SettleCertain,
            EndingStep::Falling => {
                self.step = EndingStep::SettleRest { settle: Settle::Unknown, gone: false };
            }
            EndingStep::Fallen { .. } => self.step = EndingStep::KillAgain,
            EndingStep::Seal
            | EndingStep::Drain
            | EndingStep::SettleCertain
            | EndingStep::Fell
            | EndingStep::SettleRest { .. }
            | EndingStep::KillAgain
            | EndingStep::Forget => {}
        }
    }
}
