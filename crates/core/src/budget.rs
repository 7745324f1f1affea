//! The budget of a line: tokens that every unplanned end takes and only service gives back.
//!
//! Why tokens and not a counter of attempts? A counter that never resets kills a healthy server after five
//! drops in its life. A counter that resets on every successful handshake lets a flapper respawn for ever
//! (one did, 6,212 times in 63 hours). Tokens earned by answering *callers*, and slowly by staying up, tell
//! the two apart without a special case; our own traffic (handshake, lists, probes) earns nothing.

use crate::policy::BudgetPolicy;
use crate::time::Span;

/// One token, in milli-tokens.
pub(crate) const TOKEN: u32 = 1000;

/// The tokens a line has left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    millis: u32,
    /// Time up that has not yet made a whole milli-token.
    unpaid: Span,
}

impl Budget {
    /// All tokens the policy allows.
    pub const fn full(policy: &BudgetPolicy) -> Self {
        Self { millis: policy.max_millis(), unpaid: Span::ZERO }
    }

    /// What is left, in milli-tokens.
    pub const fn millis(&self) -> u32 {
        self.millis
    }

    /// How many tokens are missing, a started one counted whole. Backoff grows with this.
    pub const fn missing(&self, policy: &BudgetPolicy) -> u32 {
        policy.max_millis().saturating_sub(self.millis).div_ceil(TOKEN)
    }

    /// Takes a token for an unplanned end; `false` if no whole one is left.
    pub fn take(&mut self) -> bool {
        match self.millis.checked_sub(TOKEN) {
            Some(rest) => {
                self.millis = rest;
                true
            }
            None => false,
        }
    }

    /// Callers were answered.
    pub fn earn_answers(&mut self, policy: &BudgetPolicy, answers: u64) {
        self.earn(policy, answers.saturating_mul(u64::from(policy.millis_per_answer)));
    }

    /// The line was up, and not suspect, for so long.
    pub fn earn_uptime(&mut self, policy: &BudgetPolicy, up: Span) {
        let unpaid = (self.unpaid + up).nanos();
        let per_milli = policy.uptime_per_token.nanos() / u64::from(TOKEN);
        self.earn(policy, unpaid / per_milli);
        self.unpaid = Span::from_nanos(unpaid % per_milli);
    }

    fn earn(&mut self, policy: &BudgetPolicy, millis: u64) {
        let max = policy.max_millis();
        let room = max.saturating_sub(self.millis);
        self.millis += u32::try_from(millis).map_or(room, |millis| millis.min(room));
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use crate::policy::BudgetPolicy;
    use crate::time::Span;

    fn spent(policy: &BudgetPolicy) -> Budget {
        let mut budget = Budget::full(policy);
        while budget.take() {}
        budget
    }

    #[test]
    fn five_tokens_and_no_more() {
        let policy = BudgetPolicy::default();
        let mut budget = Budget::full(&policy);
        assert_eq!((budget.millis(), budget.missing(&policy)), (5000, 0));
        for missing in 1..=5 {
            assert!(budget.take());
            assert_eq!(budget.missing(&policy), missing);
        }
        assert!(!budget.take());
        assert_eq!(budget.millis(), 0);
    }

    #[test]
    fn ten_answers_earn_a_token_and_a_full_budget_stays_full() {
        let policy = BudgetPolicy::default();
        let mut budget = spent(&policy);
        budget.earn_answers(&policy, 9);
        assert_eq!(budget.millis(), 900);
        assert!(!budget.take(), "a token counts only when it is whole");
        budget.earn_answers(&policy, 1);
        assert!(budget.take());
        budget.earn_answers(&policy, u64::MAX);
        assert_eq!(budget.millis(), 5000);
    }

    #[test]
    fn a_started_token_is_missing_whole() {
        let policy = BudgetPolicy::default();
        let mut budget = Budget::full(&policy);
        budget.take();
        budget.take();
        budget.earn_answers(&policy, 1);
        assert_eq!(budget.missing(&policy), 2);
    }

    #[test]
    fn a_minute_up_earns_a_token_however_it_is_cut() {
        let policy = BudgetPolicy::default();
        let mut at_once = spent(&policy);
        at_once.earn_uptime(&policy, Span::from_secs(60));
        assert_eq!(at_once.millis(), 1000);
        let mut in_bits = spent(&policy);
        for _ in 0..60_000 {
            in_bits.earn_uptime(&policy, Span::from_millis(1));
        }
        assert_eq!(in_bits.millis(), 1000);
        at_once.earn_uptime(&policy, Span::from_secs(3600));
        assert_eq!(at_once.millis(), 5000);
    }
}
