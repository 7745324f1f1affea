//! The one place that decides whether a call is sent again.

#[cfg(test)]
mod tests;

use core::time::Duration;

use crate::delivery::{Delivery, Evidence, Repair, ServerRefusal};
use crate::policy::Settings;
use crate::record::{Earlier, Phase, Record, Safety};
use crate::retry::{RetryOn, RetryReason};
use crate::time::doubled;

/// Maximum number of tries of one call, as long as linetender counted each of them as not executed.
pub const TRIES_MOST: u8 = 12;

/// The wait before the second re-send; doubles up to the cap. The driver disperses it.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_CAP: Duration = Duration::from_millis(500);

/// What the decision depends on besides the call itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// Which verdicts permit a re-send.
    pub retry_on: RetryOn,
    /// The most re-sends of one call of unknown outcome.
    pub retries_per_call: u8,
    /// True if the call would be executed in another context than the one that lost it, and may not be.
    pub is_bound: bool,
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

/// Why a call is not sent again.
enum Forbidden {
    /// Nothing permits it.
    Always,
    /// Only the new generation's list can say whether the call is safe.
    UntilDeclared,
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
        /// What permits it.
        reason: RetryReason,
        /// What has to be mended first.
        after: Option<Repair>,
        /// How long to wait first, before it is dispersed.
        pause: Duration,
    },
    /// The new generation's list decides: ask again when it is known.
    AskNewGeneration,
}

impl Rules {
    /// The rules of a server's policy, for a call that may not leave its context (`is_bound`) or may.
    pub const fn new(settings: &Settings, is_bound: bool, declared: Declared) -> Self {
        let retry_on = settings.retry_on;
        let retries_per_call = settings.retry.per_call;
        Self { retry_on, retries_per_call, is_bound, declared, obstacle: Obstacle::Passing }
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
        let verdict = self.verdict()?;
        let again = match (self.phase, delivery) {
            // A call that was planned for the old context would meet one that knows nothing of what came before.
            (Phase::Lost(_), _) if rules.is_bound => Err(Forbidden::Always),
            (Phase::Lost(_), Delivery::NotExecuted(evidence)) => self.not_executed(evidence, rules, withdraw),
            (Phase::Lost(_), Delivery::Refused(refusal)) => self.refused(refusal, rules, withdraw),
            (Phase::Lost(_), Delivery::Unknown(_)) => self.unknown(rules, withdraw),
            (_, _) => Err(Forbidden::Always),
        };
        Some(match again {
            Ok(next) => next,
            Err(Forbidden::Always) => Next::Settle(verdict),
            Err(Forbidden::UntilDeclared) => Next::AskNewGeneration,
        })
    }

    fn not_executed(
        mut self,
        evidence: Evidence,
        rules: Rules,
        withdraw: impl FnOnce() -> bool,
    ) -> Result<Next, Forbidden> {
        self.phase = Phase::Queued;
        if evidence == Evidence::Queued {
            return Ok(Next::Bind(self));
        }
        if rules.obstacle == Obstacle::Lasting || self.not_executed + 1 >= TRIES_MOST {
            return Err(Forbidden::Always);
        }
        let reason = self.permitted_by(RetryReason::NotExecuted, rules, withdraw)?;
        let waits = self.not_executed + u8::from(rules.obstacle == Obstacle::NobodyListens);
        self.not_executed += 1;
        let pause = match waits.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => doubled(PAUSE, doublings.into(), PAUSE_CAP),
        };
        Ok(Next::Again { record: self, reason, after: None, pause })
    }

    /// Each kind of refusal permits one re-send of a call.
    fn refused(
        mut self,
        refusal: ServerRefusal,
        rules: Rules,
        withdraw: impl FnOnce() -> bool,
    ) -> Result<Next, Forbidden> {
        let kind = refusal.retry_reason().filter(|kind| !self.refusals.contains(*kind));
        let kind = kind.ok_or(Forbidden::Always)?;
        let reason = self.permitted_by(kind, rules, withdraw)?;
        self.phase = Phase::Queued;
        self.refusals = self.refusals.with(kind);
        self.earlier = self.earlier.max(Earlier::Refused(refusal));
        Ok(Next::Again { record: self, reason, after: refusal.repair(), pause: Duration::ZERO })
    }

    fn unknown(mut self, rules: Rules, withdraw: impl FnOnce() -> bool) -> Result<Next, Forbidden> {
        let reason = self.permitted_by_safety(rules, withdraw)?;
        self.phase = Phase::Queued;
        self.earlier = Earlier::Unknown;
        Ok(Next::Again { record: self, reason, after: None, pause: Duration::ZERO })
    }

    /// A re-send is permitted by `retry_on`, or because running the call twice does no harm.
    fn permitted_by(
        &mut self,
        kind: RetryReason,
        rules: Rules,
        withdraw: impl FnOnce() -> bool,
    ) -> Result<RetryReason, Forbidden> {
        if rules.retry_on.contains(kind) { Ok(kind) } else { self.permitted_by_safety(rules, withdraw) }
    }

    fn permitted_by_safety(
        &mut self,
        rules: Rules,
        withdraw: impl FnOnce() -> bool,
    ) -> Result<RetryReason, Forbidden> {
        if self.retries >= rules.retries_per_call {
            return Err(Forbidden::Always);
        }
        let reason = match (self.safety, rules.declared) {
            (Safety::Protocol, _) => RetryReason::List,
            (Safety::Read, _) if rules.retry_on.contains(RetryReason::Reads) => RetryReason::Reads,
            (Safety::Listed, _) => RetryReason::SafeTool,
            (Safety::Annotated, Declared::Safe) => RetryReason::DeclaredSafe,
            (Safety::Annotated, Declared::NotYet) => return Err(Forbidden::UntilDeclared),
            (Safety::Annotated, Declared::Unsafe) | (Safety::Read | Safety::Unsafe, _) => {
                return Err(Forbidden::Always);
            }
        };
        if !withdraw() {
            return Err(Forbidden::Always);
        }
        self.retries += 1;
        Ok(reason)
    }
}
