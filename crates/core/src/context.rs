//! What a server keeps in memory, and which agent relies on it.
//!
//! A *context* is a process, or a session with an id. A call that was planned for one context can do harm in the next:
//! `use(test)`, a restart, `drop_all` on the default database. So an agent that has used a context is told of its end
//! before anything else of its calls is executed in another one.

use core::time::Duration;

use crate::policy::ServerState;
use crate::time::Instant;

/// How long calls are still refused after the first refusal was written. A batch of parallel calls is refused as a whole.
pub const NOTICE_LASTS: Duration = Duration::from_secs(1);

/// How often an agent is told of one loss, if it gives up the calls that tell it: one that gives up each call is not refused for ever.
const NOTICE_TIMES: u8 = 3;

/// The identity of a context. A later context has a higher one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextId(u64);

impl ContextId {
    /// The context of this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }
}

/// What is known of the effect of a tool call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallEffect {
    /// The server declares the tool `readOnlyHint`.
    ReadOnly,
    /// The user lists the tool in `safe_tools`.
    Safe,
    /// Anything.
    Unknown,
}

impl ServerState {
    /// True if an agent relies on the context in which a call of this effect was answered.
    pub const fn is_used_by(self, effect: CallEffect) -> bool {
        match self {
            Self::None => false,
            Self::Unknown => !matches!(effect, CallEffect::ReadOnly),
            Self::Process => true,
        }
    }

    /// True if a call of this effect may not be executed while its agent has not been told of a lost context.
    pub const fn holds(self, effect: CallEffect) -> bool {
        match self {
            Self::None => false,
            Self::Unknown => matches!(effect, CallEffect::Unknown),
            Self::Process => true,
        }
    }
}

/// The contexts of one server that one agent relies on, and the notice of their end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ContextUse {
    /// The oldest context that the agent relies on.
    used: Option<ContextId>,
    /// A used context was replaced.
    notice: Option<Notice>,
}

/// A notice that the agent has not been told, or was told less than [`NOTICE_LASTS`] ago.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Notice {
    told_at: Option<Instant>,
    /// How often the agent was told.
    times_told: u8,
}

impl ContextUse {
    /// The context that the agent relies on, if there is one.
    pub const fn used(&self) -> Option<ContextId> {
        self.used
    }

    /// A call of the agent was answered in this context.
    pub fn uses(&mut self, context: ContextId) {
        self.used = Some(self.used.map_or(context, |used| used.min(context)));
    }

    /// A call is about to be sent to this context; true if a notice is pending.
    pub fn enters(&mut self, context: Option<ContextId>, now: Instant) -> bool {
        self.expire(now);
        if self.used.is_some() && self.used != context {
            self.begin_notice();
        }
        self.notice.is_some()
    }

    /// This context is over; true if a notice is pending.
    pub fn loses(&mut self, context: ContextId, now: Instant) -> bool {
        self.expire(now);
        if self.used == Some(context) {
            self.begin_notice();
        }
        self.notice.is_some()
    }

    /// This context is over, and nothing was lost with it.
    pub fn forgets(&mut self, context: ContextId) {
        self.used = self.used.filter(|used| *used != context);
    }

    /// The agent was told.
    pub fn tells(&mut self, now: Instant) {
        if let Some(notice) = &mut self.notice
            && notice.told_at.is_none()
        {
            *notice = Notice { told_at: Some(now), times_told: notice.times_told + 1 };
        }
    }

    /// The agent had given up the call by which it was told, so it may have read nothing. It is told again, up to three times.
    pub fn was_not_told(&mut self, now: Instant) {
        self.expire(now);
        if let Some(notice) = &mut self.notice
            && notice.times_told < NOTICE_TIMES
        {
            notice.told_at = None;
        }
    }

    fn begin_notice(&mut self) {
        *self = Self { used: None, notice: Some(Notice::default()) };
    }

    fn expire(&mut self, now: Instant) {
        self.notice = self.notice.filter(|notice| notice.told_at.is_none_or(|at| now < at + NOTICE_LASTS));
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{CallEffect, ContextId, ContextUse, NOTICE_LASTS, NOTICE_TIMES};
    use crate::policy::ServerState;
    use crate::time::Instant;

    const T0: Instant = Instant::from_nanos(1_000_000_000);
    const A: ContextId = ContextId(1);
    const B: ContextId = ContextId(2);
    const C: ContextId = ContextId(3);

    fn used(context: ContextId) -> ContextUse {
        let mut of = ContextUse::default();
        of.uses(context);
        of
    }

    #[test]
    fn an_agent_that_used_nothing_is_told_nothing() {
        let mut of = ContextUse::default();
        assert!(!of.enters(Some(A), T0) && !of.enters(Some(B), T0) && !of.loses(B, T0));
    }

    #[test]
    fn the_notice_lasts_until_one_second_after_it_was_told() {
        let mut of = used(A);
        assert!(!of.enters(Some(A), T0));
        let later = T0 + Duration::from_secs(3600);
        assert!(of.enters(Some(B), T0) && of.enters(Some(B), later), "nobody was told");
        of.tells(later);
        of.tells(later + NOTICE_LASTS / 2);
        let end = later + NOTICE_LASTS;
        assert!(of.enters(Some(B), Instant::from_nanos(end.nanos() - 1)));
        assert!(!of.enters(Some(B), end), "the first one counts");
        assert!(!of.enters(Some(C), end), "it has not used the second one");
    }

    #[test]
    fn an_agent_that_gave_up_the_call_that_told_it_is_told_again() {
        let mut of = used(A);
        assert!(of.enters(Some(B), T0));
        of.tells(T0);
        of.was_not_told(T0 + NOTICE_LASTS / 2);
        let later = T0 + NOTICE_LASTS * 10;
        assert!(of.enters(Some(B), later));
        of.tells(later);
        of.was_not_told(later + NOTICE_LASTS);
        assert!(!of.enters(Some(B), later + NOTICE_LASTS), "it has gone on since");
    }

    #[test]
    fn an_agent_that_gives_up_every_call_is_told_three_times() {
        let mut of = used(A);
        let mut now = T0;
        for _ in 0..NOTICE_TIMES {
            assert!(of.enters(Some(B), now));
            of.tells(now);
            now = now + NOTICE_LASTS / 10;
            of.was_not_told(now);
            of.was_not_told(now);
        }
        assert!(of.enters(Some(B), now), "the last notice lasts as long as any");
        assert!(!of.enters(Some(B), now + NOTICE_LASTS));
    }

    #[test]
    fn the_notice_outlives_further_contexts() {
        let mut of = used(A);
        assert!(of.loses(A, T0) && of.enters(Some(B), T0) && of.enters(None, T0) && of.enters(Some(C), T0));
    }

    #[test]
    fn a_late_answer_of_a_lost_context_is_a_use_of_it() {
        let mut of = used(A);
        assert!(of.enters(Some(B), T0));
        of.tells(T0);
        of.uses(A);
        let later = T0 + NOTICE_LASTS;
        assert!(of.enters(Some(B), later), "what that call set is gone as well");
        of.tells(later);
        assert!(!of.enters(Some(B), later + NOTICE_LASTS));
    }

    #[test]
    fn what_is_used_while_a_notice_is_pending_is_used_afterwards() {
        let mut of = used(A);
        assert!(of.enters(Some(B), T0));
        of.uses(B);
        of.tells(T0);
        let later = T0 + NOTICE_LASTS;
        assert!(!of.enters(Some(B), later) && of.used() == Some(B));
        assert!(of.enters(Some(C), later));
    }

    #[test]
    fn a_context_that_kept_nothing_is_forgotten() {
        let mut of = used(A);
        of.forgets(B);
        assert_eq!(of.used(), Some(A));
        of.forgets(A);
        assert!(!of.enters(Some(B), T0));
    }

    #[test]
    fn what_uses_a_context_and_what_waits_for_the_notice() {
        let all = [CallEffect::ReadOnly, CallEffect::Safe, CallEffect::Unknown];
        let of = |state: ServerState| all.map(|effect| (state.is_used_by(effect), state.holds(effect)));
        assert_eq!(of(ServerState::None), [(false, false); 3]);
        assert_eq!(of(ServerState::Unknown), [(false, false), (true, false), (true, true)]);
        assert_eq!(of(ServerState::Process), [(true, true); 3]);
    }
}
