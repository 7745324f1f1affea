//! How many calls of unknown outcome may be sent again in total.
//!
//! Why a budget and not a number per call? When a server is in trouble every call fails, and two retries each
//! are three times the load at the worst moment. A share of the calls that really came bounds the whole, and a
//! small reserve lets a quiet line retry too.

use core::time::Duration;

use crate::policy::RetryPolicy;
use crate::time::{Instant, millis};

/// One re-send, in thousandths.
const RESEND: u64 = 1000;

/// What may still be sent again.
///
/// The hot path only counts its calls; the count is turned into re-sends when somebody wants one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryBudget {
    millis: u64,
    calls: u64,
    paid_until: Instant,
}

impl RetryBudget {
    /// One second's reserve to begin with.
    pub fn new(policy: RetryPolicy, now: Instant) -> Self {
        let reserve = u64::from(policy.reserve_per_sec).min(u64::from(policy.burst));
        Self { millis: reserve * RESEND, calls: 0, paid_until: now }
    }

    /// Takes one re-send, if there is one. `calls` is how many calls the line has had in all.
    pub fn withdraw(&mut self, policy: RetryPolicy, calls: u64, now: Instant) -> bool {
        self.deposit(policy, calls, now);
        match self.millis.checked_sub(RESEND) {
            Some(rest) => {
                self.millis = rest;
                true
            }
            None => false,
        }
    }

    fn deposit(&mut self, policy: RetryPolicy, calls: u64, now: Instant) {
        let new_calls = calls.saturating_sub(self.calls);
        let by_calls = new_calls.saturating_mul(u64::from(policy.percent) * RESEND / 100);
        let elapsed = millis(now.since(self.paid_until));
        let by_time = elapsed.saturating_mul(u64::from(policy.reserve_per_sec));
        self.calls += new_calls;
        self.paid_until = self.paid_until + Duration::from_millis(elapsed);
        let most = u64::from(policy.burst) * RESEND;
        self.millis = self.millis.saturating_add(by_calls).saturating_add(by_time).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBudget;
    use crate::policy::RetryPolicy;
    use crate::time::Instant;
    use core::time::Duration;

    const START: Instant = Instant::ORIGIN;

    fn all(budget: &mut RetryBudget, policy: RetryPolicy, calls: u64, now: Instant) -> u32 {
        let mut taken = 0;
        while budget.withdraw(policy, calls, now) {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_tenth_of_the_calls_and_a_reserve() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 0, START), 1, "the reserve of the first second");
        assert_eq!(all(&mut budget, policy, 9, START), 0);
        assert_eq!(all(&mut budget, policy, 10, START), 1);
        assert_eq!(all(&mut budget, policy, 60, START), 5);
        assert_eq!(all(&mut budget, policy, 60, START), 0, "a call pays in once");
        assert_eq!(all(&mut budget, policy, 59, START), 0, "a count that ran backwards pays nothing");
    }

    #[test]
    fn a_quiet_line_gets_one_a_second_however_often_it_asks() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        let mut taken = 0;
        // Nine hundred microseconds at a time: the part of a millisecond must not get lost.
        for tick in 0..10_000 {
            let now = START + Duration::from_nanos(tick * 900_000);
            taken += u32::from(budget.withdraw(policy, 0, now));
        }
        assert_eq!(taken, 1 + 8, "the reserve to begin with, and one for each of 8.9991 s");
    }

    #[test]
    fn no_more_than_a_burst_is_saved_up() {
        let policy = RetryPolicy::default();
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, u64::MAX, START + Duration::from_secs(3600)), 10);
    }

    #[test]
    fn a_policy_of_nothing_allows_nothing() {
        let policy = RetryPolicy { percent: 0, reserve_per_sec: 0, ..RetryPolicy::default() };
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 1000, START + Duration::from_secs(60)), 0);
        let policy = RetryPolicy { burst: 0, ..RetryPolicy::default() };
        let mut budget = RetryBudget::new(policy, START);
        assert_eq!(all(&mut budget, policy, 1000, START + Duration::from_secs(60)), 0);
    }
}
