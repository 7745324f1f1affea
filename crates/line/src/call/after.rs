//! After a loss: what the core says may happen next, and the repair that comes before it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use linetender_core::{
    Declared, Delivery, Gate, Generation, Instant, Jitter, Next, Obstacle, Record, Refusal, Repair,
    RetryReason, Rules, ServerRefusal, ServerState,
};
use linetender_wire::Seen;

use super::{Call, Reply};
use crate::basics::error::{CallError, CallErrorKind, Phase};
use crate::basics::next_try::NextTry;
use crate::basics::order::LONGEST_WAIT;
use crate::book::Lost;
use crate::generation::Live;
use crate::tender::Inbox;

/// How long a throttled call waits if the server does not say.
const THROTTLED: Duration = Duration::from_secs(1);

/// A call that is tried again, and what became of its last try.
pub(super) struct Earlier {
    /// The generation that lost it.
    pub(super) link: Arc<Live>,
    pub(super) lost: Lost,
    /// Why it is sent again. `None` if it was not sent.
    pub(super) reason: Option<RetryReason>,
}

/// Whose word allows a re-send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Permit {
    /// It needs nobody's: the verdict, the protocol or the user allows it.
    Free,
    /// The list of this generation calls the tool safe, which says nothing about any other generation.
    By(Generation),
}

/// The next try of a call that was lost.
pub(super) struct Again {
    pub(super) record: Record,
    /// Why it is sent again. `None` if it was not sent.
    pub(super) reason: Option<RetryReason>,
    pub(super) permit: Permit,
}

impl Permit {
    /// A later try that needs nobody's word keeps the condition of the earlier one: that one may have run.
    pub(super) const fn or(self, later: Self) -> Self {
        match later {
            Self::By(_) => later,
            Self::Free => self,
        }
    }
}

impl Call<'_> {
    /// What becomes of a call that was lost: the core decides. `None` if its caller is told.
    pub(super) async fn after_loss(&self, link: &Live, lost: &mut Lost, deadline: Instant) -> Option<Again> {
        let policy = self.shared.server.policy.settings();
        // A session that is gone has ended, whether or not its generation is sealed already. That the generation
        // lives now is no promise: `Bound` and `Permit` hold the call to it.
        let crosses = lost.session_is_gone() || link.ledger.is_sealed();
        // A credential that was too weak: without a better one, another try would meet the same. A refusal that says so gets
        // one as its repair.
        let too_weak = lost.refused.as_ref().is_some_and(|refused| refused.status == 403)
            && !matches!(lost.record.delivery(), Some(Delivery::Refused(_)));
        if too_weak && !self.has_new_key(lost, deadline).await {
            return None;
        }
        // What waited for the old context of a server with state would meet one that knows nothing of it.
        let is_bound = crosses && (self.state() == ServerState::Process || self.loss_of(link).is_some());
        let mut declared = Declared::NotYet;
        let mut permit = Permit::Free;
        loop {
            let rules = Rules::new(policy, is_bound, declared).kept_by(obstacle(lost.seen.as_deref()));
            match lost.record.next(rules, || self.withdraw())? {
                Next::Bind(record) => return Some(Again { record, reason: None, permit }),
                Next::Again { record, reason, after, pause } => {
                    let ready = match after {
                        None => self.paused(pause, deadline).await,
                        Some(repair) => self.repaired(repair, link, lost, deadline).await,
                    };
                    return ready.then_some(Again { record, reason: Some(reason), permit });
                }
                Next::AskNewGeneration => {
                    let oldest = Generation::new(link.generation.number() + u64::from(crosses));
                    let by;
                    (declared, by) = self.declared(oldest, deadline).await;
                    permit = Permit::By(by);
                }
                Next::Settle(_) => return None,
            }
        }
    }

    /// One re-send of a call of unknown outcome, if the budget has one.
    fn withdraw(&self) -> bool {
        let policy = self.shared.server.policy.settings();
        let calls = self.shared.calls.load(std::sync::atomic::Ordering::Relaxed);
        let mut budget = self.shared.retry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        budget.withdraw(policy.retry, calls, self.shared.clock.now())
    }

    /// Waits before a re-send, dispersed so that many calls do not come back in step; whether there is time for that.
    async fn paused(&self, pause: Duration, deadline: Instant) -> bool {
        if pause.is_zero() {
            return true;
        }
        let clock = self.shared.clock;
        let now = clock.now();
        let calls = self.shared.calls.load(std::sync::atomic::Ordering::Relaxed);
        let until = now + Jitter::new(now.nanos() ^ calls.rotate_left(32)).around(pause);
        self.sleeps_until(until, deadline).await
    }

    /// Sleeps before a re-send; whether there is time for that. Other calls of the agent do not wait for one that is known to
    /// sleep longer than they would.
    async fn sleeps_until(&self, until: Instant, deadline: Instant) -> bool {
        if until >= deadline {
            return false;
        }
        let clock = self.shared.clock;
        if let Some(place) = self.options.place.as_ref().filter(|_| until >= clock.now() + LONGEST_WAIT) {
            place.step_aside();
        }
        tokio::time::sleep_until(clock.at(until)).await;
        true
    }

    /// Mends what has to be mended before the next try; whether it was.
    async fn repaired(&self, repair: Repair, link: &Live, lost: &mut Lost, deadline: Instant) -> bool {
        let (clock, policy) = (self.shared.clock, self.shared.server.policy.settings());
        match repair {
            Repair::Wait => {
                let wait = lost.after.unwrap_or(THROTTLED).min(policy.backoff.retry_after_cap);
                self.sleeps_until(clock.now() + wait, deadline).await
            }
            Repair::Relist => {
                let mut catalogue = self.shared.catalogue.clone();
                catalogue.mark_unchanged();
                if self.shared.inbox.send(Inbox::Relist(link.generation)).await.is_err() {
                    return false;
                }
                let patience = (clock.now() + policy.call.wait_for_line).min(deadline);
                tokio::time::timeout_at(clock.at(patience), catalogue.changed()).await.is_ok()
            }
            Repair::Token => self.has_new_key(lost, deadline).await,
            // Nobody here can speak another version.
            Repair::Version => false,
        }
    }

    /// Waits for another key than the one that the call was refused for; whether there is one. If not, that is what the
    /// caller is told.
    async fn has_new_key(&self, lost: &mut Lost, deadline: Instant) -> bool {
        let (Some(keys), Some(refused)) = (&self.shared.keys, &lost.refused) else { return false };
        let renewed = keys.renewed(refused, true);
        match tokio::time::timeout_at(self.shared.clock.at(deadline), renewed).await {
            Ok(Ok(())) => true,
            Ok(Err(why)) => {
                lost.seen = Some(Arc::new(why.seen()));
                false
            }
            Err(_) => false,
        }
    }

    /// What the first generation from this one on says of the tool, and which one that is; unsafe, if none says so in
    /// time.
    pub(super) async fn declared(&self, oldest: Generation, deadline: Instant) -> (Declared, Generation) {
        let mut catalogue = self.shared.catalogue.clone();
        let patience = self.shared.clock.now() + self.shared.server.policy.settings().call.wait_for_line;
        let read = catalogue.wait_for(|catalogue| catalogue.generation >= oldest.number());
        match tokio::time::timeout_at(self.shared.clock.at(patience.min(deadline)), read).await {
            Ok(Ok(catalogue)) => {
                let safe = self.tool.is_some_and(|tool| catalogue.declares_safe(tool));
                let declared = if safe { Declared::Safe } else { Declared::Unsafe };
                (declared, Generation::new(catalogue.generation))
            }
            _ => (Declared::Unsafe, oldest),
        }
    }

    /// Nothing more can be done: the caller is told.
    pub(super) fn settled(&self, link: &Live, mut lost: Lost, attempts: u32) -> Result<Reply, CallError> {
        // A call that was sent more than once is told in words of ours, which say so.
        if let Some(refusal) = self_explaining(&lost.record).filter(|_| attempts <= 1)
            && let Some(said) = lost.said.take()
        {
            return Ok(Reply::new(said, link.era()).refused(refusal));
        }
        let why = link.ledger.ended.get();
        let cause = match (&lost.seen, why) {
            (Some(seen), _) if self.shared.outsiders => seen.to_outsiders(),
            (Some(seen), _) => seen.to_string(),
            (None, Some(why)) => why.told(self.shared.outsiders).to_owned(),
            (None, None) => "the connection closed".to_owned(),
        };
        let crosses = lost.session_is_gone() || link.ledger.is_sealed();
        let loss = if crosses { self.loss_of(link) } else { None };
        let kind = match (lost.seen.as_deref(), lost.record.verdict()) {
            (Some(Seen::NeedsLogin { .. }), _) => CallErrorKind::Refused(Refusal::NeedsAuth),
            (_, Some(Delivery::NotExecuted(_) | Delivery::Refused(_))) if loss.is_some() => {
                CallErrorKind::ContextReplaced
            }
            (_, Some(Delivery::Refused(_))) => CallErrorKind::ServerRefused,
            _ => CallErrorKind::Lost,
        };
        let cause = match &loss {
            Some(loss) if kind == CallErrorKind::ContextReplaced => loss.to_string(),
            _ => cause,
        };
        let mut error = self.error(kind, Phase::AtServer, cause, &lost.record).with_loss(loss);
        error.stderr = why.and_then(|why| self.stderr_of(link.generation, why));
        if let Some(Seen::Throttled { after, .. }) = lost.seen.as_deref() {
            self.say_when(&mut error, *after);
        }
        Err(error)
    }

    /// A line that takes calls would be tried now, which is not what a server wants that asked us to wait.
    fn say_when(&self, error: &mut CallError, after: Option<Duration>) {
        let most = self.shared.server.policy.settings().backoff.retry_after_cap;
        if !matches!(self.shared.published.borrow().gate, Gate::Go { .. }) {
            return;
        }
        let wait = after.unwrap_or(THROTTLED).min(most);
        error.next_try = NextTry::after(wait);
        if after > Some(most) {
            let _ = write!(error.cause, "; linetender waits at most {} s", most.as_secs());
        }
    }
}

/// What kept a call from its server.
const fn obstacle(seen: Option<&Seen>) -> Obstacle {
    match seen {
        Some(Seen::Refused { .. }) => Obstacle::NobodyListens,
        Some(Seen::NoSuchHost { .. } | Seen::Unreachable { config: true, .. }) => Obstacle::Lasting,
        _ => Obstacle::Passing,
    }
}

/// The refusal, if the specification has an error code for it, which tells the agent what it has to change.
const fn self_explaining(record: &Record) -> Option<ServerRefusal> {
    match record.verdict() {
        Some(Delivery::Refused(
            refusal @ (ServerRefusal::HeaderMismatch
            | ServerRefusal::MissingCapability
            | ServerRefusal::UnsupportedVersion),
        )) => Some(refusal),
        _ => None,
    }
}
