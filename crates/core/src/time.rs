//! Time as a number.
//!
//! The core never reads a clock: each `handle_*` method is told what time it is. The number counts
//! nanoseconds of a monotonic clock that *stands still while the machine sleeps*; that it slept is an input
//! of its own ([`Machine::handle_sleep`](crate::Machine::handle_sleep)), so timers need no repair afterwards.

use core::ops::Add;

/// A point in time: nanoseconds since an origin that the driver chose.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

/// A length of time, in nanoseconds. Serialized as whole milliseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span(u64);

const NANOS_PER_MILLI: u64 = 1_000_000;

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
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_millis(secs.saturating_mul(1000))
    }

    /// Length in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Length in whole milliseconds.
    pub const fn millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Twice this span `doublings` times over, but no more than `cap`.
    #[must_use]
    pub fn doubled(self, doublings: u32, cap: Self) -> Self {
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        Self(self.0.saturating_mul(factor)).min(cap)
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.millis())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, Span};

    #[test]
    fn spans_convert_and_saturate() {
        assert_eq!(Span::from_secs(2), Span::from_millis(2000));
        assert_eq!(Span::from_millis(3).nanos(), 3_000_000);
        assert_eq!(Span::from_nanos(3_999_999).millis(), 3);
        assert_eq!(Span::from_secs(u64::MAX) + Span::from_millis(1), Span::from_nanos(u64::MAX));
        assert!(Span::ZERO.is_zero() && !Span::from_nanos(1).is_zero());
    }

    #[test]
    fn an_instant_ahead_is_zero_ago() {
        let later = Instant::ORIGIN + Span::from_millis(5);
        assert_eq!(later.nanos(), 5_000_000);
        assert_eq!(later.since(Instant::ORIGIN), Span::from_millis(5));
        assert_eq!(Instant::ORIGIN.since(later), Span::ZERO);
        assert_eq!(Instant::from_nanos(u64::MAX) + Span::from_millis(1), Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn doubling_stops_at_the_cap() {
        let base = Span::from_millis(100);
        let cap = Span::from_secs(30);
        assert_eq!(base.doubled(0, cap), base);
        assert_eq!(base.doubled(3, cap), Span::from_millis(800));
        assert_eq!(base.doubled(9, cap), cap);
        assert_eq!(base.doubled(64, cap), cap);
        assert_eq!(base.doubled(u32::MAX, cap), cap);
    }
}
