//! How much one principal may ask: so many requests at once, and so many a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// A request in progress, or as many as there are messages in its batch. It ends with its last clone.
#[derive(Clone, Debug)]
pub(super) struct Permit(Arc<Taken>);

#[derive(Debug)]
struct Taken {
    of: Arc<Inner>,
    principal: u64,
    requests: AtomicU32,
}

impl Quotas {
    pub(super) fn new(settings: &Settings) -> Self {
        let (at_once, rate) = (settings.principal_requests, settings.principal_rate);
        let accounts = Mutex::new(Accounts { of: HashMap::new(), close_at: SPARE });
        Self(Arc::new(Inner { at_once, rate, accounts, refused: Rarely::default() }))
    }

    /// One more request of this principal's.
    pub(super) fn take(&self, principal: &Principal) -> Result<Permit, Over> {
        self.0.take(principal, 1)?;
        let (of, principal) = (Arc::clone(&self.0), principal.number());
        Ok(Permit(Arc::new(Taken { of, principal, requests: AtomicU32::new(1) })))
    }
}

impl Permit {
    /// Takes room for more requests of the same principal, which came in the same body: for all of them or for none.
    pub(super) fn more(&self, principal: &Principal, requests: u32) -> Result<(), Over> {
        self.0.of.take(principal, requests)?;
        self.0.requests.fetch_add(requests, Ordering::Relaxed);
        Ok(())
    }
}

impl Inner {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, principal: &Principal, asks: u32) -> Result<(), Over> {
        let taken = self.accounts().take(principal.number(), asks, self.at_once, u64::from(self.rate));
        if let (Err(over), Some(requests)) = (&taken, taken.is_err().then(|| self.refused.count()).flatten())
        {
            let principal = &**principal.name();
            tracing::warn!(
                requests,
                principal,
                ?over,
                "requests over a principal's limit refused (gateway.principal_requests, gateway.principal_rate)"
            );
        }
        taken
    }
}

impl Accounts {
    fn take(&mut self, principal: u64, asks: u32, at_once: u32, rate: u64) -> Result<(), Over> {
        let (now, second) = (Instant::now(), rate * REQUEST);
        if self.of.len() >= self.close_at && !self.of.contains_key(&principal) {
            self.of.retain(|_, account| account.in_progress > 0 || account.refilled(now, rate) < second);
            self.close_at = self.of.len() * 2 + SPARE;
        }
        let account = self.of.entry(principal).or_insert(Account { in_progress: 0, left: second, at: now });
        if at_once > 0 && asks > at_once.saturating_sub(account.in_progress) {
            return Err(Over::AtOnce);
        }
        if rate > 0 {
            let left = account.refilled(now, rate);
            (account.left, account.at) = (left, now);
            let cost = u64::from(asks) * REQUEST;
            let Some(rest) = left.checked_sub(cost) else {
                return Err(Over::Rate(Duration::from_micros((cost - left).div_ceil(rate))));
            };
            account.left = rest;
        }
        account.in_progress += asks;
        Ok(())
    }
}

impl Account {
    fn refilled(&self, now: Instant, rate: u64) -> u64 {
        let micros = u64::try_from((now - self.at).as_micros()).unwrap_or(u64::MAX);
        self.left.saturating_add(micros.saturating_mul(rate)).min(rate * REQUEST)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let requests = *self.requests.get_mut();
        let mut accounts = self.of.accounts();
        if let Some(account) = accounts.of.get_mut(&self.principal) {
            account.in_progress -= requests;
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
    async fn x16_a_batch_counts_as_its_messages_do_one_by_one_and_is_taken_whole_or_not_at_all() {
        let settings = Settings { principal_requests: 5, principal_rate: 8, ..Settings::default() };
        let quotas = Quotas::new(&settings);
        let one = Principal::user(1);
        let batch = quotas.take(&one).unwrap();
        assert_eq!(batch.more(&one, 5).unwrap_err(), Over::AtOnce);
        batch.more(&one, 3).unwrap();
        let also = batch.clone();
        drop(batch);
        let last = quotas.take(&one).unwrap();
        assert_eq!(quotas.take(&one).unwrap_err(), Over::AtOnce, "it is still in progress");
        drop((also, last));
        let next = quotas.take(&one).unwrap();
        assert_eq!(next.more(&one, 3).unwrap_err(), Over::Rate(Duration::from_millis(125)));
        tokio::time::advance(Duration::from_millis(125)).await;
        assert!(next.more(&one, 3).is_ok());
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
