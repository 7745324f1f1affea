//! Chance that can be repeated: the same seed, the same throws.

/// A generator of numbers (splitmix64): small, and good enough for choosing.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

#[cfg_attr(windows, allow(dead_code, reason = "those who use all of it need other systems"))]
impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Dice of their own for somebody, by number.
    pub(crate) fn for_one(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Self(dice.throw())
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.throw() % end.max(1)
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }
}
