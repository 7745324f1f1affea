//! A seeded stream of choices. Each part of a world has one of its own, so that a choice more here changes nothing there.

use std::time::Duration;

/// Choices.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) ^ 0x9E37_79B9_7F4A_7C15 | 1);
        // Neighbouring seeds begin alike.
        for _ in 0..8 {
            rng.next();
        }
        rng
    }

    /// A stream of its own for a part.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 up to, not including, `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end.max(1)
    }

    pub(crate) fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    pub(crate) fn size(&mut self, from: usize, to: usize) -> usize {
        usize::try_from(self.range(from as u64, to as u64)).unwrap_or(from)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// So often in a thousand.
    pub(crate) fn mille(&mut self, mille: u64) -> bool {
        self.below(1000) < mille
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.range(from, to))
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.size(0, of.len())]
    }
}
