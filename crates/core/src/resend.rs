//! The one place that decides whether a call is sent again.

#[cfg(test)]
mod tests;

use core::time::Duration;

use crate::delivery::{Delivery, Repair, Resend};
use crate::policy::{ServerState, Settings};
use crate::record::{Phase, Record, Safety};
use crate::time::doubled;

/// How often one call is tried, as long as each try is proven not to have been executed.
pub const TRIES_MOST: u8 = 12;

/// The wait before the second re-send; doubles up to the cap. The driver disperses it.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_CAP: Duration = Duration::from_millis(500);

/// What the decision depends on besides the call itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// What the server keeps in its process.
    pub state: ServerState,
    /// The most re-sends of one call of unknown outcome.
    pub retries_per_call: u8,
    /// Whether the call would reach another generation than the one that lost it.
    pub crosses: bool,
    /// What the server says of the tool, where that matters.
    pub declared: Declared,
    /// What kept the call from the server, as far as it bears on another try.
    pub obstacle: Obstacle,
}

/// What kept a call from its server.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Obstacle {
    /// It may be gone already: the first re-send goes out at once.
    #[default]
    Passing,
    /// Nobody listened: another try in the same moment would meet the same.
    NobodyListens,
    /// It stays until somebody changes something (no such name, a bad certificate): there is no point in another try.
    Lasting,
}

/// What the generation that a call would be sent to says of its tool.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Declared {
    /// Its list has not been read yet.
    NotYet,
    /// Read-only or idempotent.
    Safe,
    /// Neither, or not listed any more.
    Unsafe,
}

/// What happens to a call that has a verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The caller is told this verdict.
    Settle(Delivery),
    /// It never left us: it waits for the next generation, and this is its record there.
    Bind(Record),
    /// It is sent again, with a new id, and this is its record; first this repair, if any.
    Again {
        /// The record of the new try.
        record: Record,
        /// What has to be mended first.
        after: Option<Repair>,
        /// How long to wait first, before it is dispersed.
        pause: Duration,
    },
    /// The new generation's list decides: ask again when it is known.
    AskNewGeneration,
}

impl Rules {
    /// The rules of a server's policy, for a call lost by a generation that is over (`crosses`) or lives on.
    pub const fn new(settings: &Settings, crosses: bool, declared: Declared) -> Self {
        let (state, retries_per_call) = (settings.state, settings.retry.per_call);
        Self { state, retries_per_call, crosses, declared, obstacle: Obstacle::Passing }
    }

    /// The same for a call that this kept from its server.
    #[must_use]
    pub const fn kept_by(self, obstacle: Obstacle) -> Self {
        Self { obstacle, ..self }
    }
}

impl Record {
    /// What happens to a call that has a verdict; a call that has none goes on as it is.
    ///
    /// `withdraw` takes one re-send from the [`RetryBudget`](crate::RetryBudget), and is asked only if everything
    /// else allows it.
    pub fn next(self, rules: Rules, withdraw: impl FnOnce() -> bool) -> Option<Next> {
        let delivery = self.delivery()?;
        let again = match (self.phase, delivery) {
            // Nothing crosses a generation of a server that keeps state in its process: a call that waited for
            // the old process would meet one that knows nothing of what came before.
            (Phase::Lost(_), _) if rules.crosses && rules.state == ServerState::Process => None,
            (Phase::Lost(_), Delivery::NotExecuted(proof)) => self.again(proof.resend(), rules.obstacle),
            (Phase::Lost(_), Delivery::Unknown(_)) => self.retry(rules, withdraw),
            _ => None,
        };
        again.or(self.verdict().map(Next::Settle))
    }

    fn again(mut self, resend: Resend, obstacle: Obstacle) -> Option<Next> {
        self.phase = Phase::Queued;
        match resend {
            Resend::Bind => Some(Next::Bind(self)),
            Resend::Again if obstacle != Obstacle::Lasting && self.proven + 1 < TRIES_MOST => {
                let waits = self.proven + u8::from(obstacle == Obstacle::NobodyListens);
                self.proven += 1;
                let pause = match waits.checked_sub(1) {
                    None => Duration::ZERO,
                    Some(doublings) => doubled(PAUSE, doublings.into(), PAUSE_CAP),
                };
                Some(Next::Again { record: self, after: None, pause })
            }
            Resend::OnceAfter(repair) if !self.repaired => {
                self.repaired = true;
                Some(Next::Again { record: self, after: Some(repair), pause: Duration::ZERO })
            }
            Resend::Again | Resend::OnceAfter(_) | Resend::Never => None,
        }
    }

    fn retry(mut self, rules: Rules, withdraw: impl FnOnce() -> bool) -> Option<Next> {
        if self.retries >= rules.retries_per_call {
            return None;
        }
        let safe = match (self.safety, rules.declared) {
            (Safety::Protocol | Safety::Listed, _) | (Safety::Annotated, Declared::Safe) => true,
            (Safety::Annotated, Declared::NotYet) => return Some(Next::AskNewGeneration),
            (Safety::Annotated, Declared::Unsafe) | (Safety::Unsafe, _) => false,
        };
        if !safe || !withdraw() {
            return None;
        }
        self.phase = Phase::Queued;
        self.retries += 1;
        Some(Next::Again { record: self, after: None, pause: Duration::ZERO })
    }
}
