//! Requests of an agent that pipelines more than its server takes at once. The agent is read on: what it takes back,
//! its pings and its answers to questions must not wait behind its own calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use linetender_core::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{WAITING_BYTES, WAITING_COSTS};

/// Where requests wait for their turn, bounded by what they weigh.
pub(super) struct Backlog {
    turns: Arc<Semaphore>,
    weighs: Arc<AtomicUsize>,
}

/// A request in the backlog. Dropped, it weighs nothing any more.
pub(super) struct Waiting {
    turns: Arc<Semaphore>,
    weighs: Arc<AtomicUsize>,
    own: usize,
}

impl Backlog {
    /// As many have their turn as the line takes, in flight and in its own queue.
    pub(super) fn new(limits: Limits) -> Self {
        let turns = usize::from(limits.in_flight) + usize::from(limits.queue);
        Self { turns: Arc::new(Semaphore::new(turns)), weighs: Arc::default() }
    }

    /// A place for a request of this length; none, if those that wait weigh too much already.
    pub(super) fn enter(&self, length: usize) -> Option<Waiting> {
        let own = length.saturating_add(WAITING_COSTS);
        // The session is the only one that adds.
        if self.weighs.load(Ordering::Relaxed).saturating_add(own) > WAITING_BYTES {
            return None;
        }
        self.weighs.fetch_add(own, Ordering::Relaxed);
        Some(Waiting { turns: Arc::clone(&self.turns), weighs: Arc::clone(&self.weighs), own })
    }
}

impl Waiting {
    /// Waits for its turn, which it has until what is returned is dropped; none, if it does not come within this time.
    pub(super) async fn turn(self, limit: Duration) -> Option<OwnedSemaphorePermit> {
        let turn = tokio::time::timeout(limit, Arc::clone(&self.turns).acquire_owned()).await;
        // Nobody closes it.
        turn.ok()?.ok()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.weighs.fetch_sub(self.own, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{WAITING_BYTES, WAITING_COSTS};
    use super::Backlog;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_by_what_it_weighs_and_has_its_turn_in_order() {
        let mut limits = linetender_core::Settings::default().limits;
        (limits.in_flight, limits.queue) = (1, 0);
        let backlog = Backlog::new(limits);
        let first = backlog.enter(0).unwrap().turn(LIMIT).await;
        assert!(backlog.enter(0).unwrap().turn(LIMIT).await.is_none(), "its turn did not come in time");
        assert_eq!(backlog.weighs.load(Ordering::Relaxed), 0, "what has its turn does not wait");
        let waiting = backlog.enter(WAITING_BYTES - 3 * WAITING_COSTS).unwrap();
        let small = backlog.enter(0).unwrap();
        assert!(backlog.enter(WAITING_COSTS).is_none(), "too much waits already");
        drop(small);
        let second = tokio::join!(waiting.turn(LIMIT), async { drop(first) }).0;
        assert!(second.is_some());
        assert_eq!(backlog.weighs.load(Ordering::Relaxed), 0);
    }
}
