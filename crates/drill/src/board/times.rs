//! Times of many runs, some of which never ended.
//!
//! A run that did not come back within the bound has no time, and leaving it out would flatter whoever never comes back. So
//! it is counted as longer than all others.

/// Times in milliseconds, and how many there are not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Times {
    sorted: Vec<f64>,
    pub(super) never: usize,
}

/// A time of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Moment {
    /// After so many milliseconds.
    After(f64),
    /// Not within the bound.
    Never,
    /// Nothing was measured.
    Unmeasured,
}

impl Times {
    pub(super) fn of(times: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut own = Self::default();
        for time in times {
            match time {
                Some(time) if time.is_finite() => own.sorted.push(time.max(0.0)),
                _ => own.never += 1,
            }
        }
        own.sorted.sort_unstable_by(f64::total_cmp);
        own
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len() + self.never
    }

    /// The finite ones, in order.
    pub(super) fn ended(&self) -> &[f64] {
        &self.sorted
    }

    /// The time that this share of all runs is under.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small counts"
    )]
    pub(super) fn at(&self, share: f64) -> Moment {
        let Some(last) = self.len().checked_sub(1) else { return Moment::Unmeasured };
        let at = ((self.len() as f64 * share) as usize).min(last);
        self.sorted.get(at).map_or(Moment::Never, |time| Moment::After(*time))
    }
}

impl Moment {
    /// For comparing: never is longer than everything; what was not measured cannot be compared.
    pub(super) fn length(self) -> Option<f64> {
        match self {
            Self::After(time) => Some(time),
            Self::Never => Some(f64::INFINITY),
            Self::Unmeasured => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Moment, Times};

    #[test]
    fn a_run_that_never_came_back_is_the_longest() {
        let times = Times::of([Some(3.0), None, Some(1.0), Some(2.0)]);
        assert_eq!(times.at(0.5), Moment::After(3.0));
        assert_eq!(times.at(0.99), Moment::Never);
        assert_eq!((times.len(), times.ended()), (4, &[1.0, 2.0, 3.0][..]));
    }

    #[test]
    fn nothing_measured_is_neither_fast_nor_slow() {
        assert_eq!(Times::default().at(0.5), Moment::Unmeasured);
        assert_eq!(Times::of([Some(f64::NAN)]).at(0.5), Moment::Never);
    }
}
