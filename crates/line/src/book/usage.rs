//! When callers last used a server, for what waits until one of them does again. What linetender asks by itself is no use.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use linetender_core::Instant;
use tokio::sync::Notify;

use crate::basics::clock::Clock;

/// The last use of one generation. It costs a call a store and a load.
#[derive(Debug)]
pub(crate) struct Usage {
    clock: Clock,
    /// Nanoseconds of the line's clock.
    last: AtomicU64,
    /// True if something waits for the next use.
    awaited: AtomicBool,
    again: Notify,
}

impl Usage {
    /// A generation that was just dialled counts as used.
    pub(crate) fn new(clock: Clock) -> Self {
        let last = AtomicU64::new(clock.now().nanos());
        Self { clock, last, awaited: AtomicBool::new(false), again: Notify::new() }
    }

    /// A caller uses the server.
    pub(crate) fn mark(&self) {
        self.last.store(self.clock.now().nanos(), Ordering::Relaxed);
        if self.awaited.load(Ordering::Acquire) && self.awaited.swap(false, Ordering::AcqRel) {
            self.again.notify_waiters();
        }
    }

    /// How long ago that was.
    pub(crate) fn since(&self) -> Duration {
        self.clock.now().since(Instant::from_nanos(self.last.load(Ordering::Relaxed)))
    }

    /// Returns when a caller uses the server again.
    pub(crate) async fn next(&self) {
        let mut again = pin!(self.again.notified());
        again.as_mut().enable();
        self.awaited.store(true, Ordering::Release);
        again.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::Usage;
    use crate::basics::clock::Clock;

    #[tokio::test(start_paused = true)]
    async fn all_that_wait_for_the_next_use_are_woken_by_it() {
        let usage = Arc::new(Usage::new(Clock::start()));
        for _ in 0..2 {
            let mut waiting = tokio::task::JoinSet::new();
            for _ in 0..3 {
                let usage = Arc::clone(&usage);
                waiting.spawn(async move { usage.next().await });
            }
            tokio::time::sleep(Duration::from_secs(700)).await;
            assert!(waiting.try_join_next().is_none());
            assert_eq!(usage.since(), Duration::from_secs(700));
            usage.mark();
            waiting.join_all().await;
            assert_eq!(usage.since(), Duration::ZERO);
        }
    }
}
