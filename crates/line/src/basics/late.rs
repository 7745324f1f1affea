//! Timers that fire late: this process was stopped, or starved. What lies readable is read before such a timer is believed.

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// A timer that fires this much after its time is late.
pub(crate) const LATE: Duration = Duration::from_millis(50);

/// How long the tender waits then for what may be readable.
pub(crate) const UNREAD: Duration = Duration::from_millis(500);

/// How long a call does: what the tender reads has to reach it.
const UNTOLD: Duration = Duration::from_secs(1);

/// A wait with an end, and what it is given beyond that, once, if its timer fires late.
#[derive(Default)]
pub(crate) struct Wait {
    began: Option<Instant>,
    grace: Option<Instant>,
}

impl Wait {
    /// What this work comes to, if it is done by then, or soon after a timer that fired late. However often the same wait is
    /// taken up again, it is not made longer twice; one that began after its end had no timer that could be late.
    pub(crate) async fn until<T>(&mut self, end: Instant, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let began = *self.began.get_or_insert_with(Instant::now);
        if let Ok(done) = timeout_at(end, &mut work).await {
            return Some(done);
        }
        let now = Instant::now();
        if now <= end + LATE || began >= end {
            return None;
        }
        let grace = *self.grace.get_or_insert(now + UNTOLD);
        timeout_at(grace, work).await.ok()
    }
}

/// The same for a wait that is not taken up again.
pub(crate) async fn before<T>(end: Instant, work: impl Future<Output = T>) -> Option<T> {
    Wait::default().until(end, work).await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::{UNTOLD, Wait, before};

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_fires_in_time_is_believed_at_once() {
        let end = Instant::now() + Duration::from_secs(5);
        assert_eq!(before::<()>(end, pending()).await, None);
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_wins_against_a_timer_that_fired_late() {
        let end = Instant::now() + Duration::from_secs(5);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(before(end, ready(7)).await, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_begins_after_its_end_is_not_made_longer() {
        let end = Instant::now() + Duration::from_secs(5);
        advance(Duration::from_secs(3600)).await;
        let late = Instant::now();
        assert_eq!((before::<()>(end, pending()).await, Instant::now()), (None, late));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_taken_up_again_and_again_is_made_longer_once() {
        let (began, mut wait) = (Instant::now(), Wait::default());
        let end = began + Duration::from_secs(5);
        assert_eq!(wait.until(end, ready(7)).await, Some(7));
        advance(Duration::from_secs(3600)).await;
        let back = Instant::now();
        let mut changes = 0;
        while wait.until(end, tokio::time::sleep(Duration::from_millis(300))).await.is_some() {
            changes += 1;
        }
        assert_eq!((changes, Instant::now()), (3, back + UNTOLD));
    }
}
