//! One connection attempt of a line, numbered.

use core::fmt;

/// The number of a connection attempt. A generation dies whole; an event that carries an older number than
/// the line's own changes nothing.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Generation(u64);

impl Generation {
    /// What a line that never dialled has.
    pub const NONE: Self = Self(0);

    /// The generation of this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The plain number, for logs and metrics.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The next attempt's number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Generation;
    use std::string::ToString as _;

    #[test]
    fn generations_count_up_from_none() {
        let second = Generation::NONE.next().next();
        assert_eq!(second, Generation::new(2));
        assert_eq!(second.number(), 2);
        assert_eq!(second.to_string(), "2");
    }
}
