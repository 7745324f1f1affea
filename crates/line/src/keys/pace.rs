//! How often a line asks for keys, whatever the clocks say and however often the server refuses them.

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A key that says that it is due is asked for no sooner than this after the last question: a clock may be wrong.
pub(super) const RENEW_GAP: Duration = Duration::from_secs(10);

/// A key that is due later than this is not waited for: it will have been refused, or asked for, before.
const FURTHEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// How many refused keys are asked about in a row, and how long one more takes.
const REFUSALS: u32 = 20;
const REFILL: Duration = Duration::from_secs(1);

/// How long a line waits for the first time, and how long at most: it doubles.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Waits that double.
pub(super) struct Pauses {
    pause: Duration,
    /// When the last one is over.
    until: Instant,
}

impl Pauses {
    pub(super) fn new() -> Self {
        Self { pause: SHORTEST, until: Instant::now() }
    }

    /// When it may be done again: at once, if the last time was long enough ago.
    pub(super) fn over(&self) -> Instant {
        self.until.max(Instant::now())
    }

    /// Begins the next one; when it is over.
    pub(super) fn begin(&mut self) -> Instant {
        self.until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST);
        self.until
    }
}

/// The questions of a line so far.
pub(super) struct Pace {
    /// Up to when questions about refused keys are paid for.
    paid_until: Instant,
    last: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { paid_until: now, last: now }
    }

    /// Whether one more refused key may be asked about now.
    pub(super) fn may_ask(&mut self) -> bool {
        let now = Instant::now();
        let paid = self.paid_until.max(now) + REFILL;
        if paid > now + REFILL * REFUSALS {
            return false;
        }
        self.paid_until = paid;
        true
    }

    /// Somebody was asked.
    pub(super) fn asked(&mut self) {
        self.last = Instant::now();
    }

    /// When a key that is due at this time is asked for, if the wall's clock stands at `wall` now.
    pub(super) fn due(&self, at: SystemTime, wall: SystemTime) -> Option<Instant> {
        let wait = at.duration_since(wall).unwrap_or_default();
        let now = Instant::now();
        (wait <= FURTHEST).then(|| (now + wait).max(self.last + RENEW_GAP))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use tokio::time::{Instant, advance};

    use super::{Pace, RENEW_GAP};

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_wrong_costs_a_question_in_ten_seconds() {
        let (mut pace, wall) = (Pace::new(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
        pace.asked();
        for past in [Duration::ZERO, Duration::from_secs(999_999)] {
            assert_eq!(pace.due(wall - past, wall), Some(Instant::now() + RENEW_GAP));
        }
        assert_eq!(
            pace.due(wall + Duration::from_secs(60), wall),
            Some(Instant::now() + Duration::from_secs(60))
        );
        assert_eq!(pace.due(wall + Duration::from_secs(1 << 38), wall), None);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_without_end_are_asked_about_once_a_second() {
        let mut pace = Pace::new();
        assert_eq!((0..100).filter(|_| pace.may_ask()).count(), 20);
        advance(Duration::from_secs(3)).await;
        assert_eq!((0..100).filter(|_| pace.may_ask()).count(), 3);
    }
}
