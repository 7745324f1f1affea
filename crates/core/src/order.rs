//! The order of a death, as data.
//!
//! Seal, notice, drain, settle, kill (or close, or let go), settle, forget, (wait,) dial. The machine hands effects out in
//! this order; a driver that runs them concurrently could still finish them in another. [`Walk`] is the
//! check: show it every effect when it is *done*, and it names the first misstep.

use crate::generation::Generation;
use crate::machine::Effect;

/// What has been done for a generation so far.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Step {
    /// It was dialled and lives.
    Dial,
    /// Its ledger takes no more calls and its writer stopped.
    Seal,
    /// The end was published.
    Notice,
    /// What was already readable has been read: answers that arrived win.
    Drain,
    /// Calls whose verdict needs nothing more have been settled.
    SettleCertain,
    /// Its tree was told to die.
    Fell,
    /// The other calls have been settled.
    SettleRest,
    /// Session, subscriptions and caches are gone, and so is the tree.
    Forget,
}

/// Which calls to settle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Settle {
    /// Those whose verdict needs nothing more: still queued.
    Certain,
    /// The rest, by what the dead server left unread: no reader is left, so the residue is a proof.
    Residue,
    /// The rest, as unknown: the proof did not come in time.
    Unknown,
    /// None of the rest: each has an exchange of its own, and will be told by that.
    Own,
}

/// An effect that was run out of order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Misstep {
    /// The generation and the last step done for it.
    pub after: (Generation, Step),
    /// What was run then.
    pub ran: Effect,
}

/// Checks that a driver runs the effects of each death in order.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    generation: Generation,
    step: Step,
}

impl Walk {
    /// For a line that never dialled.
    pub const fn new() -> Self {
        Self { generation: Generation::NONE, step: Step::Forget }
    }

    /// For a line whose generations up to this one are forgotten.
    pub const fn after(generation: Generation) -> Self {
        Self { generation, step: Step::Forget }
    }

    /// An effect is done.
    ///
    /// # Errors
    /// If it was not its turn.
    pub fn done(&mut self, ran: Effect) -> Result<(), Misstep> {
        let next = match (self.step, ran) {
            (Step::Forget, Effect::Dial { .. }) => Some(Step::Dial),
            (Step::Dial, Effect::Seal { .. }) => Some(Step::Seal),
            (Step::Seal, Effect::Notice(_)) => Some(Step::Notice),
            (Step::Notice, Effect::Drain { .. }) => Some(Step::Drain),
            (Step::Drain, Effect::Settle { settle: Settle::Certain, .. }) => Some(Step::SettleCertain),
            (Step::SettleCertain, Effect::Kill { .. } | Effect::Close { .. } | Effect::LetGo { .. }) => {
                Some(Step::Fell)
            }
            (Step::Fell, Effect::Settle { settle: Settle::Residue | Settle::Unknown | Settle::Own, .. }) => {
                Some(Step::SettleRest)
            }
            (Step::SettleRest, Effect::Forget { .. }) => Some(Step::Forget),
            // A tree that would not die is killed again; a live line may be probed; news may come between.
            (Step::SettleRest, Effect::Kill { .. } | Effect::LetGo { .. })
            | (Step::Dial, Effect::Probe { .. })
            | (Step::Dial | Step::Notice | Step::Drain | Step::SettleCertain, Effect::Notice(_))
            | (Step::Fell | Step::SettleRest | Step::Forget, Effect::Notice(_)) => Some(self.step),
            _ => None,
        };
        let expected = match ran {
            Effect::Dial { .. } => self.generation.next(),
            _ => self.generation,
        };
        match next {
            Some(step) if ran.generation().is_none_or(|generation| generation == expected) => {
                *self = Self { generation: expected, step };
                Ok(())
            }
            _ => Err(Misstep { after: (self.generation, self.step), ran }),
        }
    }
}

impl Default for Walk {
    fn default() -> Self {
        Self::new()
    }
}
