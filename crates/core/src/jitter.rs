//! Randomness without a source: a seed is handed in, so that a history can be replayed.
//!
//! Lines that lost the same server must not come back in step; nothing here has to be unguessable.

use core::time::Duration;

use crate::time;

/// A `SplitMix64` stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Jitter(u64);

impl Jitter {
    /// A stream that is the same for the same seed. Give each line its own.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Full jitter: anything from nothing to `most`.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let wide = u128::from(self.next()) * (u128::from(time::nanos(most)) + 1);
        // The high half of a product with a 64-bit number is at most that number.
        let nanos = (wide >> 64) as u64;
        Duration::from_nanos(nanos)
    }

    /// Anything from half of `most` to all of it: for waits that people are told about.
    pub fn around(&mut self, most: Duration) -> Duration {
        let half = most / 2;
        half + self.up_to(half)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Jitter;
    use core::time::Duration;
    use std::vec::Vec;

    #[test]
    fn full_jitter_covers_its_span_evenly_and_never_leaves_it() {
        let span = Duration::from_millis(100);
        let mut jitter = Jitter::new(1);
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let drawn = jitter.up_to(span);
            assert!(drawn <= span);
            tenths[usize::try_from(drawn.as_millis() / 10).unwrap().min(9)] += 1;
        }
        assert!(tenths.iter().all(|n| (800..1200).contains(n)), "{tenths:?}");
        assert_eq!(jitter.up_to(Duration::ZERO), Duration::ZERO);
        assert!(
            (0..100).any(|_| jitter.up_to(Duration::from_nanos(1)).as_nanos() == 1),
            "the end of the span is in it"
        );
    }

    #[test]
    fn around_stays_in_the_upper_half() {
        let span = Duration::from_millis(100);
        let mut jitter = Jitter::new(2);
        let drawn: Vec<_> = (0..1000).map(|_| jitter.around(span).as_millis()).collect();
        assert!(drawn.iter().all(|millis| (50..=100).contains(millis)));
        assert!(drawn.iter().any(|&m| m < 60) && drawn.iter().any(|&m| m > 90));
    }

    #[test]
    fn the_published_splitmix_sequence_comes_out() {
        // Reference values of SplitMix64 for seed 1234567.
        let mut jitter = Jitter::new(1_234_567);
        assert_eq!(jitter.next(), 6_457_827_717_110_365_317);
        assert_eq!(jitter.next(), 3_203_168_211_198_807_973);
    }
}
