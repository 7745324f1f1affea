//! Questions of a server that are open at its agent: a person may answer them. Meanwhile the time of the calls that wait for the
//! answer stands still.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use linetender_core::Instant;
use tokio::sync::Notify;

use super::Entry;
use crate::basics::clock::Clock;
use crate::basics::sync::Mutex;

/// A question that is open, and the calls that wait for it. Dropped, it is answered, taken back, or its agent is gone.
pub(crate) struct OpenQuestion {
    clock: Clock,
    calls: Vec<Arc<Entry>>,
}

/// For how long a call stood still.
#[derive(Debug)]
pub(crate) struct Stand {
    still: Mutex<Still>,
    /// The last question is open no more.
    pub(crate) over: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Still {
    questions: u32,
    since: Instant,
    /// Before that.
    spent: Duration,
}

impl OpenQuestion {
    pub(super) fn new(clock: Clock, calls: Vec<Arc<Entry>>) -> Self {
        let now = clock.now();
        for call in &calls {
            call.stand().begins(now);
        }
        Self { clock, calls }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let now = self.clock.now();
        for call in &self.calls {
            call.stand().ends(now);
        }
    }
}

impl fmt::Debug for OpenQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenQuestion").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

impl Default for Stand {
    fn default() -> Self {
        let still = Still { questions: 0, since: Instant::ORIGIN, spent: Duration::ZERO };
        Self { still: Mutex::new(still), over: Notify::new() }
    }
}

impl Stand {
    fn change<T>(&self, change: impl FnOnce(&mut Still) -> T) -> T {
        change(&mut self.still.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begins(&self, now: Instant) {
        self.change(|still| {
            if still.questions == 0 {
                still.since = now;
            }
            still.questions += 1;
        });
    }

    fn ends(&self, now: Instant) {
        let over = self.change(|still| {
            still.questions -= 1;
            let over = still.questions == 0;
            if over {
                still.spent += now.since(still.since);
            }
            over
        });
        if over {
            self.over.notify_one();
        }
    }

    /// For how long the call stood still so far, and whether it does now.
    pub(crate) fn spent(&self, now: Instant) -> (Duration, bool) {
        self.change(|still| match still.questions {
            0 => (still.spent, false),
            _ => (still.spent + now.since(still.since), true),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linetender_core::Instant;

    use super::Stand;

    #[test]
    fn two_questions_at_once_stand_still_once() {
        let at = |secs| Instant::ORIGIN + Duration::from_secs(secs);
        let secs = Duration::from_secs;
        let stand = Stand::default();
        assert_eq!(stand.spent(at(5)), (secs(0), false));
        stand.begins(at(10));
        stand.begins(at(12));
        assert_eq!(stand.spent(at(13)), (secs(3), true));
        stand.ends(at(14));
        assert_eq!(stand.spent(at(15)), (secs(5), true));
        stand.ends(at(16));
        stand.begins(at(20));
        assert_eq!(stand.spent(at(21)), (secs(7), true));
        stand.ends(at(22));
        assert_eq!(stand.spent(at(99)), (secs(8), false));
    }
}
