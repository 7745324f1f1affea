//! How a simulated host on the network behaves, until everything is repaired.

use crate::rng::Rng;

/// How a session that is not known is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unknown {
    NotFound,
    BadRequest,
    Unavailable,
}

/// What a legacy host makes of a GET.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Own {
    No,
    /// A stream that lasts so many milliseconds.
    Lasts(u64),
}

/// Manners. Rates are per mille of calls; times are milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    pub(crate) modern: bool,
    pub(crate) unknown: Unknown,
    pub(crate) own: Own,
    pub(crate) work: (u64, u64),
    /// Per cent of answers that are events.
    pub(crate) events: u64,
    /// Cuts the connection before its answer, and in the middle of it.
    pub(crate) cuts: (u64, u64),
    /// Says something else than the result. Whether it runs the call is drawn apart from that.
    pub(crate) refuses: u64,
    /// Refuses the key too. Its client always has another one.
    pub(crate) challenges: bool,
    pub(crate) mute: u64,
    /// Forgets all sessions.
    pub(crate) forgets: u64,
    /// Falls.
    pub(crate) falls: u64,
}

impl Manners {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let rate =
            |rng: &mut Rng, often: u64, most: u64| if rng.percent(often) { rng.range(1, most) } else { 0 };
        Self {
            modern: rng.percent(50),
            unknown: rng.pick(&[
                Unknown::NotFound,
                Unknown::NotFound,
                Unknown::BadRequest,
                Unknown::Unavailable,
            ]),
            own: rng.pick(&[Own::No, Own::Lasts(0), Own::Lasts(2000), Own::Lasts(120_000)]),
            work: rng.pick(&[(0, 3), (1, 20), (10, 200), (500, 3000)]),
            events: rng.pick(&[0, 50, 100]),
            cuts: (rate(rng, 40, 50), rate(rng, 40, 25)),
            refuses: rate(rng, 60, 80),
            challenges: rng.percent(50),
            mute: rate(rng, 25, 8),
            forgets: rate(rng, 30, 20),
            falls: rate(rng, 20, 8),
        }
    }

    /// A host without faults, whose calls take so many milliseconds.
    #[cfg(test)]
    pub(crate) const fn good(work: u64) -> Self {
        Self {
            modern: false,
            unknown: Unknown::NotFound,
            own: Own::No,
            work: (work, work + 1),
            events: 0,
            cuts: (0, 0),
            refuses: 0,
            challenges: false,
            mute: 0,
            forgets: 0,
            falls: 0,
        }
    }

    /// The same host, as it was meant to be.
    pub(crate) fn heal(&mut self) {
        *self =
            Self { work: (0, 5), cuts: (0, 0), refuses: 0, mute: 0, forgets: 0, falls: 0, ..self.clone() };
    }
}
