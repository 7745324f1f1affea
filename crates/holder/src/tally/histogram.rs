//! How long things took, in a fixed number of buckets: four for each doubling, from 16 µs to over an hour.

use std::time::Duration;

/// The exponents of the smallest and the largest bound, in microseconds.
const FIRST: u32 = 4;
const LAST: u32 = 32;

/// Buckets for each doubling.
const STEPS: u32 = 4;

/// Number of buckets; the last one has no bound.
pub const BUCKETS: usize = ((LAST - FIRST) * STEPS) as usize + 2;

/// Durations, counted.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    sum: Duration,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), count: 0, sum: Duration::ZERO }
    }

    pub(super) fn record(&mut self, took: Duration) {
        self.buckets[bucket(took)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(took);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (one, more) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *one += more;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub const fn sum(&self) -> Duration {
        self.sum
    }

    /// How many took at most as long as each of these bounds; the bounds are doublings in microseconds, so each is exact.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let mut sum = 0;
        self.buckets.iter().take(BUCKETS - 1).enumerate().filter_map(move |(at, count)| {
            sum += count;
            (at as u64).is_multiple_of(STEPS.into()).then(|| (bound(at), sum))
        })
    }

    /// Within which time this share of them ended: the bound of the bucket, which is at most a quarter too long. `None` if there
    /// were none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count"
        )]
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut sum = 0;
        let at = self.buckets.iter().position(|count| {
            sum += count;
            sum >= rank
        });
        at.map(|at| bound(at.min(BUCKETS - 2)))
    }
}

/// The bucket of a duration: the first whose bound is not below it.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    if micros <= 1 << FIRST {
        return 0;
    }
    if micros > 1 << LAST {
        return BUCKETS - 1;
    }
    let octave = (micros - 1).ilog2();
    let within = ((micros - (1 << octave)) * u64::from(STEPS)).div_ceil(1 << octave);
    usize::try_from(u64::from((octave - FIRST) * STEPS) + within).unwrap_or(BUCKETS - 1)
}

/// The bound of a bucket, which belongs to it.
fn bound(at: usize) -> Duration {
    let (at, steps) = (at as u64, u64::from(STEPS));
    let octave = 1u64 << (u64::from(FIRST) + at / steps);
    Duration::from_micros(octave + octave / steps * (at % steps))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{BUCKETS, Histogram, bound, bucket};

    proptest! {
        #[test]
        fn a_duration_lies_within_the_bounds_of_its_bucket(micros in 1u64..(1 << 33)) {
            let (took, at) = (Duration::from_micros(micros), bucket(Duration::from_micros(micros)));
            if at < BUCKETS - 1 {
                prop_assert!(took <= bound(at), "{took:?} {:?}", bound(at));
            }
            if at > 0 {
                prop_assert!(took > bound(at - 1), "{took:?} {:?}", bound(at - 1));
            }
        }
    }

    #[test]
    fn quantiles_are_bounds_of_buckets_and_cumulative_counts_never_fall() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        for millis in 1..=100 {
            histogram.record(Duration::from_millis(millis));
        }
        histogram.record(Duration::from_secs(100_000));
        let median = histogram.quantile(0.5).unwrap();
        assert!(median >= Duration::from_millis(51) && median <= Duration::from_millis(64), "{median:?}");
        assert!(histogram.quantile(1.0).unwrap() > Duration::from_secs(4000));
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert!(counts.is_sorted() && counts.last() == Some(&100), "{counts:?}");
        let exact =
            histogram.cumulative().find(|(bound, _)| *bound == Duration::from_micros(65_536)).unwrap();
        assert_eq!(exact.1, 65);
    }
}
