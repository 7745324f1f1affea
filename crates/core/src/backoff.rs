//! How long to wait before the next dial.

use core::time::Duration;

use crate::budget::Account;
use crate::policy::BackoffPolicy;
use crate::time::doubled;

/// The longest wait for the `step`th try in a row: nothing for the first, then doubling up to a cap. The
/// caller draws from it (full jitter).
pub(crate) fn ceiling(policy: &BackoffPolicy, account: Account, step: u32) -> Duration {
    let (base, cap) = policy.steps(account);
    match step.checked_sub(2) {
        None => Duration::ZERO,
        Some(doublings) => doubled(base, doublings, cap),
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, ceiling};
    use crate::policy::BackoffPolicy;

    #[test]
    fn the_first_is_free_then_it_doubles_to_the_cap() {
        let policy = BackoffPolicy::default();
        let millis =
            [0, 1, 2, 3, 4, 5, 10, 11, 12].map(|step| ceiling(&policy, Account::Ends, step).as_millis());
        assert_eq!(millis, [0, 0, 100, 200, 400, 800, 25_600, 30_000, 30_000]);
    }

    #[test]
    fn after_a_useful_generation_it_stays_below_a_second() {
        let policy = BackoffPolicy::default();
        let millis =
            [1, 2, 3, 4, 5, 6, 7, 30].map(|step| ceiling(&policy, Account::Useful, step).as_millis());
        assert_eq!(millis, [0, 50, 100, 200, 400, 800, 1000, 1000]);
    }
}
