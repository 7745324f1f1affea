//! Time as a number.
//!
//! The core never reads a clock: each `handle_*` method is told what time it is. The number counts
//! nanoseconds of a monotonic clock that *stands still while the machine sleeps*; that it slept is an input
//! of its own ([`Machine::handle_sleep`](crate::Machine::handle_sleep)), so timers need no repair afterwards.

use core::ops::Add;
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the driver chose.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// The driver's zero.
    pub const ORIGIN: Self = Self(0);

    /// The instant that lies `nanos` after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(nanos(length)))
    }
}

/// A length of time in nanoseconds, as far as they can be counted: 584 years.
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A length of time in whole milliseconds, as far as they can be counted.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// Twice this length `doublings` times over, but no more than `cap`.
pub(crate) fn doubled(length: Duration, doublings: u32, cap: Duration) -> Duration {
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    length.saturating_mul(factor).min(cap)
}

/// A length of time in configuration: whole milliseconds.
#[cfg(feature = "serde")]
pub(crate) mod as_millis {
    use core::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(super::millis(*length))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::{Instant, doubled, millis, nanos};

    #[test]
    fn lengths_convert_and_saturate() {
        assert_eq!(nanos(Duration::from_millis(3)), 3_000_000);
        assert_eq!(millis(Duration::from_nanos(3_999_999)), 3);
        assert_eq!((nanos(Duration::MAX), millis(Duration::MAX)), (u64::MAX, u64::MAX));
        assert_eq!(Instant::ORIGIN + Duration::MAX, Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn an_instant_ahead_is_zero_ago() {
        let later = Instant::ORIGIN + Duration::from_millis(5);
        assert_eq!(later.nanos(), 5_000_000);
        assert_eq!(later.since(Instant::ORIGIN), Duration::from_millis(5));
        assert_eq!(Instant::ORIGIN.since(later), Duration::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX) + Duration::from_millis(1), Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn doubling_stops_at_the_cap() {
        let base = Duration::from_millis(100);
        let cap = Duration::from_secs(30);
        assert_eq!(doubled(base, 0, cap), base);
        assert_eq!(doubled(base, 3, cap), Duration::from_millis(800));
        assert_eq!(doubled(base, 9, cap), cap);
        assert_eq!(doubled(base, 64, cap), cap);
        assert_eq!(doubled(base, u32::MAX, cap), cap);
    }
}
