//! The rig's dial limit: how many dials at once, and how close together.
//!
//! Lines that lost the same server come back at the same time, whatever their own backoff says: five hundred draws from a
//! tenth of a second are still five hundred dials in it. So dials that repeat one are given out one after the other, at a
//! distance that keeps each tenth of a second below a twentieth of all lines. A few lines are no herd, and never wait here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// In how much time no more than so many dials are repeated.
const BUCKET: Duration = Duration::from_millis(100);

/// The share of all lines that may, as a divisor. A twentieth is what we promise, and this leaves some room.
const SHARE: usize = 25;

/// Fewer lines than this are no herd.
const HERD: usize = 20;

/// How many lines may dial at once. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DialLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    at_once: Arc<Semaphore>,
    /// How many may always be repeated in a bucket, however few lines there are.
    least: usize,
    lines: AtomicUsize,
    /// Whether a dial that failed is not repeated.
    once: bool,
    /// When the next dial that repeats one may begin. Whoever is next holds it until then, so that a timer that fires late
    /// lets one through and not all that were due.
    next: Mutex<Option<Instant>>,
}

/// One line, counted.
#[derive(Debug)]
pub(crate) struct Counted(Arc<Inner>);

impl DialLimit {
    pub(crate) fn new(at_once: usize) -> Self {
        Self::with(at_once, false)
    }

    /// The same number at once, and no dial is repeated.
    pub(crate) fn once(&self) -> Self {
        Self::with(self.0.least, true)
    }

    /// Whether a dial that failed is not repeated.
    pub(crate) fn is_once(&self) -> bool {
        self.0.once
    }

    fn with(at_once: usize, once: bool) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore = Arc::new(Semaphore::new(at_once));
        let (lines, next) = (AtomicUsize::new(0), Mutex::new(None));
        Self(Arc::new(Inner { at_once: semaphore, least: at_once, lines, once, next }))
    }

    /// Counts a line for as long as what is returned lives.
    pub(crate) fn count(&self) -> Counted {
        self.0.lines.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.0))
    }

    /// Waits for a turn, which lasts for as long as what is returned is held.
    pub(crate) async fn turn(&self, repeats: bool) -> Option<OwnedSemaphorePermit> {
        if repeats && self.0.lines.load(Ordering::Relaxed) >= HERD {
            let mut next = self.0.next.lock().await;
            if let Some(slot) = *next {
                tokio::time::sleep_until(slot).await;
            }
            *next = Some(Instant::now() + self.distance());
        }
        Arc::clone(&self.0.at_once).acquire_owned().await.ok()
    }

    fn distance(&self) -> Duration {
        let share = (self.0.lines.load(Ordering::Relaxed) / SHARE).max(self.0.least);
        BUCKET / u32::try_from(share).unwrap_or(u32::MAX)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lines.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::DialLimit;
    use std::time::Duration;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn five_hundred_lines_come_back_few_at_a_time_and_one_alone_at_once() {
        let limit = DialLimit::new(4);
        let _alone = limit.count();
        let start = Instant::now();
        for _ in 0..100 {
            drop(limit.turn(true).await);
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "however often it comes back");
        let _lines: Vec<_> = (1..500).map(|_| limit.count()).collect();
        let mut turns = Vec::new();
        for _ in 0..500 {
            drop(limit.turn(true).await);
            turns.push(start.elapsed());
        }
        let busiest = turns
            .iter()
            .map(|from| turns.iter().filter(|at| **at >= *from && **at < *from + super::BUCKET).count())
            .max();
        assert!(busiest <= Some(21), "{busiest:?}");
        assert!(turns.last().unwrap() < &Duration::from_secs(4));
        let start = Instant::now();
        for _ in 0..10 {
            drop(limit.turn(false).await);
        }
        assert_eq!(start.elapsed(), Duration::ZERO, "a first dial waits for no slot");
    }
}
