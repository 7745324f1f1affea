//! Whose long message is read next. They are read one at a time, so that they hold up nobody else; and whoever sends many of them
//! waits behind itself, not another user behind all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// The turns.
pub(super) struct LongTurns {
    one: Semaphore,
    /// Each principal's own queue, for as long as somebody stands in it.
    own: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

/// It is somebody's turn until this is dropped.
pub(super) struct Turn<'a> {
    _one: Option<SemaphorePermit<'a>>,
    _own: Option<OwnedSemaphorePermit>,
}

impl LongTurns {
    pub(super) fn new() -> Self {
        Self { one: Semaphore::new(1), own: Mutex::default() }
    }

    /// Waits for a turn: first among this principal's own messages, then among those of each.
    pub(super) async fn turn(&self, principal: u64) -> Turn<'_> {
        // Neither is ever closed.
        let own = self.queue(principal).acquire_owned().await.ok();
        Turn { _one: self.one.acquire().await.ok(), _own: own }
    }

    fn queue(&self, principal: u64) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = own.get(&principal).and_then(Weak::upgrade) {
            return queue;
        }
        // There are as many as users wait at this moment.
        own.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Semaphore::new(1));
        own.insert(principal, Arc::downgrade(&queue));
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::LongTurns;
    use std::sync::Arc;

    #[tokio::test]
    async fn x07_users_take_turns_whoever_sends_more() {
        let turns = Arc::new(LongTurns::new());
        let first = turns.turn(0).await;
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for principal in [1, 1, 1, 1, 2] {
            let (turns, tell) = (Arc::clone(&turns), tell.clone());
            tasks.spawn(async move {
                let _turn = turns.turn(principal).await;
                let _ = tell.send(principal);
            });
            tokio::task::yield_now().await;
        }
        drop((first, tell));
        let mut order = Vec::new();
        while let Some(principal) = told.recv().await {
            order.push(principal);
        }
        assert_eq!(order, [1, 2, 1, 1, 1]);
        assert_eq!(turns.own.lock().unwrap().len(), 3);
        drop(turns.queue(7));
        assert_eq!(turns.own.lock().unwrap().len(), 1, "queues in which nobody stands are forgotten");
    }
}
