//! How much one principal may ask: so many requests at once, and so many a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::rarely::Rarely;
use crate::config::Settings;
use crate::principal::Principal;

/// Accounts of principals who ask nothing are closed when there are so many more than there were.
const SPARE: usize = 64;

/// A request, in millionths.
const REQUEST: u64 = 1_000_000;

/// What every principal may ask.
#[derive(Clone, Debug)]
pub(super) struct Quotas(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// At once; `0` is any number.
    at_once: u32,
    /// A second; `0` is any number.
    rate: u32,
    accounts: Mutex<Accounts>,
    refused: Rarely,
}

#[derive(Debug, Default)]
struct Accounts {
    of: HashMap<u64, Account>,
    close_at: usize,
}

#[derive(Debug)]
struct Account {
    in_progress: u32,
    /// How many requests are left of this second's, in millionths, and when that was so.
    left: u64,
    at: Instant,
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Over {
    /// So many of its principal are in progress.
    AtOnce,
    /// There were so many of its principal lately; in this time there is room for one.
    Rate(Duration),
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Permit {
    of: Arc<Inner>,
    principal: u64,
}

impl Quotas {
    pub(super) fn new(settings: &Settings) -> Self {
        let (at_once, rate) = (settings.principal_requests, settings.principal_rate);
        let accounts = Mutex::new(Accounts { of: HashMap::new(), close_at: SPARE });
        Self(Arc::new(Inner { at_once, rate, accounts, refused: Rarely::default() }))
    }

    /// One more request of this principal's.
    pub(super) fn take(&self, principal: &Principal) -> Result<Permit, Over> {
        let inner = &self.0;
        let taken = inner.accounts().take(principal.number(), inner.at_once, u64::from(inner.rate));
        if let (Err(over), Some(requests)) = (&taken, taken.is_err().then(|| inner.refused.count()).flatten())
        {
            let principal = &**principal.name();
            tracing::warn!(
                requests,
                principal,
                ?over,
                "requests over a principal's limit refused (gateway.principal_requests, gateway.principal_rate)"
            );
        }
        taken.map(|()| Permit { of: Arc::clone(inner), principal: principal.number() })
    }
}

impl Inner {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    fn take(&mut self, principal: u64, at_once: u32, rate: u64) -> Result<(), Over> {
        let (now, second) = (Instant::now(), rate * REQUEST);
        if self.of.len() >= self.close_at && !self.of.contains_key(&principal) {
            self.of.retain(|_, account| account.in_progress > 0 || account.refilled(now, rate) < second);
            self.close_at = self.of.len() * 2 + SPARE;
        }
        let account = self.of.entry(principal).or_insert(Account { in_progress: 0, left: second, at: now });
        if at_once > 0 && account.in_progress >= at_once {
            return Err(Over::AtOnce);
        }
        if rate > 0 {
            let left = account.refilled(now, rate);
            (account.left, account.at) = (left, now);
            let Some(rest) = left.checked_sub(REQUEST) else {
                return Err(Over::Rate(Duration::from_micros((REQUEST - left).div_ceil(rate))));
            };
            account.left = rest;
        }
        account.in_progress += 1;
        Ok(())
    }
}

impl Account {
    fn refilled(&self, now: Instant, rate: u64) -> u64 {
        let micros = u64::try_from((now - self.at).as_micros()).unwrap_or(u64::MAX);
        self.left.saturating_add(micros.saturating_mul(rate)).min(rate * REQUEST)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut accounts = self.of.accounts();
        if let Some(account) = accounts.of.get_mut(&self.principal) {
            account.in_progress -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Over, Quotas};
    use crate::config::Settings;
    use crate::principal::Principal;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn one_principals_requests_are_nobody_elses() {
        let settings = Settings { principal_requests: 2, ..Settings::default() };
        let quotas = Quotas::new(&settings);
        let (one, other) = (Principal::user(1), Principal::user(2));
        let first = quotas.take(&one).unwrap();
        let _second = quotas.take(&one).unwrap();
        assert_eq!(quotas.take(&one).unwrap_err(), Over::AtOnce);
        assert!(quotas.take(&other).is_ok());
        drop(first);
        assert!(quotas.take(&one).is_ok());
        let any = Quotas::new(&Settings { principal_requests: 0, ..settings });
        assert!((0..100).map(|_| any.take(&one)).collect::<Vec<_>>().iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_has_so_many_requests_and_says_when_the_next_can_come() {
        let quotas = Quotas::new(&Settings { principal_rate: 10, ..Settings::default() });
        let one = Principal::user(1);
        assert!((0..10).all(|_| quotas.take(&one).is_ok()));
        assert_eq!(quotas.take(&one).unwrap_err(), Over::Rate(Duration::from_millis(100)));
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(quotas.take(&one).is_ok() && quotas.take(&one).is_err());
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!((0..100).filter(|_| quotas.take(&one).is_ok()).count(), 10, "nothing is saved up");
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_of_those_who_ask_nothing_are_closed() {
        let quotas = Quotas::new(&Settings { principal_rate: 1, ..Settings::default() });
        for uid in 0..10_000 {
            let _ = quotas.take(&Principal::user(uid));
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        assert!(quotas.0.accounts().of.len() <= 200);
    }
}
