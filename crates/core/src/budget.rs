//! The budget of a line: tokens that every unplanned end takes and only service gives back.
//!
//! Why tokens and not a counter of attempts? A counter that never resets kills a healthy server after five
//! drops in its life. A counter that resets on every successful handshake lets a flapper respawn for ever
//! (one did, 6,212 times in 63 hours). Tokens earned by answering *callers*, and slowly by staying up, tell
//! the two apart without a special case; our own traffic (handshake, lists, probes) earns nothing, and neither does
//! time up in which no caller was answered.
//!
//! Why two buckets? A server that answers a few callers between its deaths is worth restarting more often than one that
//! answers none. So the end of such a generation is charged to a larger bucket of its own.

use core::time::Duration;

use crate::policy::BudgetPolicy;
use crate::time::nanos;

/// One token, in milli-tokens.
pub(crate) const TOKEN: u32 = 1000;

/// Which bucket an end is charged to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Account {
    /// The bucket of most ends: small, so that a server which serves nobody is parked soon.
    Ends,
    /// That of generations which answered a few callers: larger, since a server that serves between its deaths is worth
    /// more to its callers than one that is parked.
    Useful,
}

/// What an end cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cost {
    /// Nothing: it was planned, or no restart helps against it.
    Free,
    /// A token.
    Token(Account),
    /// A token that was not there any more.
    Unpaid(Account),
}

/// The tokens a line has left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    ends: Bucket,
    useful: Bucket,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Bucket {
    millis: u32,
    /// Time up that has not yet made a whole milli-token.
    unpaid: Duration,
}

impl Budget {
    /// All tokens the policy allows.
    pub const fn full(policy: &BudgetPolicy) -> Self {
        Self { ends: Bucket::full(policy, Account::Ends), useful: Bucket::full(policy, Account::Useful) }
    }

    /// What is left, in milli-tokens.
    pub const fn millis(&self) -> u32 {
        self.ends.millis
    }

    /// What is left for the ends of useful generations, in milli-tokens.
    pub const fn useful_millis(&self) -> u32 {
        self.useful.millis
    }

    /// How many tokens are missing, a started one counted whole. Backoff grows with this.
    pub(crate) const fn missing(&self, policy: &BudgetPolicy, account: Account) -> u32 {
        let left = match account {
            Account::Ends => self.ends.millis,
            Account::Useful => self.useful.millis,
        };
        policy.max_millis(account).saturating_sub(left).div_ceil(TOKEN)
    }

    /// Takes a token for an unplanned end; `false` if no whole one is left.
    pub(crate) fn take(&mut self, account: Account) -> bool {
        let bucket = match account {
            Account::Ends => &mut self.ends,
            Account::Useful => &mut self.useful,
        };
        match bucket.millis.checked_sub(TOKEN) {
            Some(rest) => {
                bucket.millis = rest;
                true
            }
            None => false,
        }
    }

    /// Callers were answered.
    pub fn earn_answers(&mut self, policy: &BudgetPolicy, answers: u64) {
        let millis = answers.saturating_mul(u64::from(policy.millis_per_answer));
        self.ends.earn(policy.max_millis(Account::Ends), millis);
    }

    /// A generation that serves was up, and heard of, for so long.
    pub fn earn_uptime(&mut self, policy: &BudgetPolicy, up: Duration) {
        for (account, bucket) in [(Account::Ends, &mut self.ends), (Account::Useful, &mut self.useful)] {
            let unpaid = nanos(bucket.unpaid.saturating_add(up));
            let per_milli = nanos(policy.uptime_per_token(account)) / u64::from(TOKEN);
            bucket.earn(policy.max_millis(account), unpaid / per_milli);
            bucket.unpaid = Duration::from_nanos(unpaid % per_milli);
        }
    }
}

impl Bucket {
    const fn full(policy: &BudgetPolicy, account: Account) -> Self {
        Self { millis: policy.max_millis(account), unpaid: Duration::ZERO }
    }

    fn earn(&mut self, max: u32, millis: u64) {
        let room = max.saturating_sub(self.millis);
        self.millis += u32::try_from(millis).map_or(room, |millis| millis.min(room));
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, Budget};
    use crate::policy::BudgetPolicy;
    use core::time::Duration;

    fn spent(policy: &BudgetPolicy) -> Budget {
        let mut budget = Budget::full(policy);
        while budget.take(Account::Ends) {}
        budget
    }

    #[test]
    fn five_tokens_and_no_more() {
        let policy = BudgetPolicy::default();
        let mut budget = Budget::full(&policy);
        assert_eq!((budget.millis(), budget.missing(&policy, Account::Ends)), (5000, 0));
        for missing in 1..=5 {
            assert!(budget.take(Account::Ends));
            assert_eq!(budget.missing(&policy, Account::Ends), missing);
        }
        assert!(!budget.take(Account::Ends));
        assert_eq!(budget.millis(), 0);
    }

    #[test]
    fn ten_answers_earn_a_token_and_a_full_budget_stays_full() {
        let policy = BudgetPolicy::default();
        let mut budget = spent(&policy);
        budget.earn_answers(&policy, 9);
        assert_eq!(budget.millis(), 900);
        assert!(!budget.take(Account::Ends), "a token counts only when it is whole");
        budget.earn_answers(&policy, 1);
        assert!(budget.take(Account::Ends));
        budget.earn_answers(&policy, u64::MAX);
        assert_eq!(budget.millis(), 5000);
    }

    #[test]
    fn a_started_token_is_missing_whole() {
        let policy = BudgetPolicy::default();
        let mut budget = Budget::full(&policy);
        budget.take(Account::Ends);
        budget.take(Account::Ends);
        budget.earn_answers(&policy, 1);
        assert_eq!(budget.missing(&policy, Account::Ends), 2);
    }

    #[test]
    fn a_minute_up_earns_a_token_however_it_is_cut() {
        let policy = BudgetPolicy::default();
        let mut at_once = spent(&policy);
        at_once.earn_uptime(&policy, Duration::from_secs(60));
        assert_eq!(at_once.millis(), 1000);
        let mut in_bits = spent(&policy);
        for _ in 0..60_000 {
            in_bits.earn_uptime(&policy, Duration::from_millis(1));
        }
        assert_eq!(in_bits.millis(), 1000);
        at_once.earn_uptime(&policy, Duration::from_secs(3600));
        assert_eq!(at_once.millis(), 5000);
    }

    #[test]
    fn useful_generations_have_a_bucket_of_their_own_that_three_tokens_a_minute_fill() {
        let policy = BudgetPolicy::default();
        let mut budget = Budget::full(&policy);
        for missing in 1..=30 {
            assert!(budget.take(Account::Useful));
            assert_eq!(budget.missing(&policy, Account::Useful), missing);
        }
        assert!(!budget.take(Account::Useful));
        assert_eq!((budget.millis(), budget.useful_millis()), (5000, 0));
        budget.earn_answers(&policy, 1000);
        assert_eq!(budget.useful_millis(), 0, "answers made it useful; they do not pay twice");
        budget.earn_uptime(&policy, Duration::from_secs(60));
        assert_eq!(budget.useful_millis(), 3000);
        budget.earn_uptime(&policy, Duration::from_secs(3600));
        assert_eq!(budget.useful_millis(), 30_000);
    }

    #[test]
    fn a_few_answers_make_a_generation_useful_and_ten_pay_for_its_end() {
        let policy = BudgetPolicy::default();
        for (answered, account) in [
            (0, Account::Ends),
            (2, Account::Ends),
            (3, Account::Useful),
            (9, Account::Useful),
            (10, Account::Ends),
            (u64::MAX, Account::Ends),
        ] {
            assert_eq!(policy.account(answered), account, "{answered}");
        }
    }
}
