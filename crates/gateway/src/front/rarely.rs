//! What others decide the number of is told once in a while, with its number.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often it is told.
const TOLD: Duration = Duration::from_secs(10);

/// How many there were since it was last told.
#[derive(Debug, Default)]
pub(super) struct Rarely {
    count: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl Rarely {
    /// One more; how many there were, if it is time to tell.
    pub(super) fn count(&self) -> Option<u64> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|at| at.elapsed() < TOLD) {
            return None;
        }
        *told = Some(Instant::now());
        Some(self.count.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{Rarely, TOLD};

    #[tokio::test(start_paused = true)]
    async fn many_are_told_of_once_in_a_while() {
        let rarely = Rarely::default();
        assert_eq!(rarely.count(), Some(1));
        assert!((0..100).all(|_| rarely.count().is_none()));
        tokio::time::advance(TOLD).await;
        assert_eq!(rarely.count(), Some(101));
    }
}
