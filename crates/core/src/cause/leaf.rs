//! The leaves of a cause, and sets of them.

use core::fmt;

use crate::class::{Class, Route};

/// Why somebody ended a generation on purpose.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[non_exhaustive]
pub enum Plan {
    /// The line is closed, for good.
    Close,
    /// Somebody asked for a new generation.
    Redial,
    /// It was old enough (lifetime, memory).
    Recycle,
    /// Nobody used it.
    IdleStop,
    /// The server ended by itself, and nobody used it.
    Finished,
    /// An operator took it out of service.
    Park,
}

/// One reason for an end.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Leaf {
    /// On purpose.
    Planned(Plan),
    /// Not on purpose.
    Failed(Class),
}

/// A non-empty set of leaves. Union is all that can be done with it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Leaves(u32);

/// Plans take the low bits, classes those from here on.
const CLASSES: u32 = 16;

impl Plan {
    /// Every plan.
    pub const ALL: [Self; 6] =
        [Self::Close, Self::Redial, Self::Recycle, Self::IdleStop, Self::Finished, Self::Park];

    /// The word for this plan in logs, metrics and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Redial => "redial",
            Self::Recycle => "recycle",
            Self::IdleStop => "idle-stop",
            Self::Finished => "finished",
            Self::Park => "park",
        }
    }
}

impl Leaf {
    /// Whether this leaf alone would be a planned end.
    pub const fn planned(self) -> bool {
        matches!(self, Self::Planned(_))
    }

    /// The word for this leaf.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planned(plan) => plan.name(),
            Self::Failed(class) => class.name(),
        }
    }

    const fn bit(self) -> u32 {
        match self {
            Self::Planned(plan) => 1 << plan as u32,
            Self::Failed(class) => 1 << (CLASSES + class as u32),
        }
    }
}

impl Leaves {
    /// The set of one leaf.
    pub const fn of(leaf: Leaf) -> Self {
        Self(leaf.bit())
    }

    /// All leaves of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set holds this leaf.
    pub const fn has(self, leaf: Leaf) -> bool {
        self.0 & leaf.bit() != 0
    }

    /// An end is planned only if *every* leaf is.
    pub const fn planned(self) -> bool {
        self.0 >> CLASSES == 0
    }

    /// The failures of the set.
    pub fn failures(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |&class| self.has(Leaf::Failed(class)))
    }

    /// The leaves of the set, plans first.
    pub fn iter(self) -> impl Iterator<Item = Leaf> {
        let plans = Plan::ALL.into_iter().map(Leaf::Planned);
        plans.filter(move |&leaf| self.has(leaf)).chain(self.failures().map(Leaf::Failed))
    }

    /// Whether the line is to stay down until somebody needs it: nobody used it, and no redial was asked for.
    pub(crate) const fn unused(self) -> bool {
        let was_unused = self.has(Leaf::Planned(Plan::IdleStop)) || self.has(Leaf::Planned(Plan::Finished));
        was_unused && !self.has(Leaf::Planned(Plan::Redial))
    }

    /// Whether an operator took the line out of service, and nobody asked for it back since.
    pub(crate) const fn out_of_service(self) -> bool {
        self.has(Leaf::Planned(Plan::Park)) && !self.has(Leaf::Planned(Plan::Redial))
    }

    /// Where the failures lead together: credentials first; parked only if no failure could pass by itself.
    pub fn route(self) -> Route {
        if self.failures().any(|class| class.row().route == Route::NeedsAuth) {
            Route::NeedsAuth
        } else if !self.planned() && self.failures().all(|class| class.row().route == Route::Park) {
            Route::Park
        } else {
            Route::Wait
        }
    }
}

impl fmt::Debug for Leaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Leaf::name)).finish()
    }
}
