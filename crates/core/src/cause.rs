//! Why a generation ended.
//!
//! An end can have several reasons at once: a planned close during which the server crashed, a broken pipe
//! beside an exit status. Three frameworks lost a budget (or a real failure) by looking at one of them only.
//! So a cause is a *set* of leaves, and joining two causes is set union: an end is planned only if every leaf
//! is. What went wrong while tearing down is a note, never a leaf, and no note displaces the first failure.

mod leaf;
#[cfg(test)]
mod tests;

pub use leaf::{Leaf, Leaves, Plan};

use core::time::Duration;

use crate::class::Class;

/// How many notes a cause keeps beside its headline; more are counted, not kept.
const NOTES: usize = 4;

/// Why a generation ended: a non-empty set of leaves, what to show first, and a few notes.
///
/// `D` is the wire's detail (an exit status, a status line, the tail of stderr): the core never looks inside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause<D> {
    leaves: Leaves,
    retry_after: Option<Duration>,
    login_refused: bool,
    /// The first failure, or the first plan if nothing failed.
    headline: Note<D>,
    notes: [Option<Note<D>>; NOTES],
    dropped: u32,
}

/// One thing that was seen or decided about an end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note<D> {
    /// What it is.
    pub kind: NoteKind,
    /// What was seen.
    pub detail: Detail<D>,
}

/// What a note speaks of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoteKind {
    /// A reason for the end.
    Leaf(Leaf),
    /// Something that went wrong after the end had begun. Never a reason.
    Teardown,
}

/// What stands behind a note.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Detail<D> {
    /// The wire saw it.
    Seen(D),
    /// The machine concluded it; there is nothing to quote.
    Concluded(Conclusion),
}

/// What the machine concludes by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conclusion {
    /// Somebody asked for it.
    Asked,
    /// Not a byte within the start limit.
    StartTimeout,
    /// No finished handshake within the handshake limit.
    HandshakeTimeout,
    /// Idle, and two probes went unanswered.
    ProbesUnanswered,
    /// Calls in flight, and nothing heard for as long as the hang limit.
    Hung,
    /// Calls were given up, and nothing was heard since, by probes neither, for as long as the limit for that.
    Abandoned,
}

impl Conclusion {
    /// The word for it, in journals and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::StartTimeout => "start-timeout",
            Self::HandshakeTimeout => "handshake-timeout",
            Self::ProbesUnanswered => "probes-unanswered",
            Self::Hung => "hung",
            Self::Abandoned => "abandoned",
        }
    }
}

impl<D> Cause<D> {
    /// Somebody asked for the end.
    pub const fn planned(plan: Plan) -> Self {
        Self::new(Leaf::Planned(plan), Detail::Concluded(Conclusion::Asked))
    }

    /// Something failed, and this was seen of it.
    pub const fn failed(class: Class, seen: D) -> Self {
        Self::new(Leaf::Failed(class), Detail::Seen(seen))
    }

    /// The server ended by itself while nobody used it, and this was seen of it.
    pub const fn finished(seen: D) -> Self {
        Self::new(Leaf::Planned(Plan::Finished), Detail::Seen(seen))
    }

    pub(crate) const fn concluded(class: Class, conclusion: Conclusion) -> Self {
        Self::new(Leaf::Failed(class), Detail::Concluded(conclusion))
    }

    const fn new(leaf: Leaf, detail: Detail<D>) -> Self {
        Self {
            leaves: Leaves::of(leaf),
            retry_after: None,
            login_refused: false,
            headline: Note { kind: NoteKind::Leaf(leaf), detail },
            notes: [const { None }; NOTES],
            dropped: 0,
        }
    }

    /// The server said when to come back.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = self.retry_after.max(Some(wait));
        self
    }

    /// The server says that its login was refused: the next start would be refused as well, and may lock the account.
    #[must_use]
    pub const fn with_login_refused(mut self) -> Self {
        self.login_refused = true;
        self
    }

    /// Both causes at once. The leaves are united; the first failure stays (or becomes) the headline.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        let promote = self.leaves.planned() && !other.leaves.planned();
        self.leaves = self.leaves.union(other.leaves);
        self.retry_after = self.retry_after.max(other.retry_after);
        self.login_refused |= other.login_refused;
        self.dropped = self.dropped.saturating_add(other.dropped);
        let second =
            if promote { core::mem::replace(&mut self.headline, other.headline) } else { other.headline };
        self.note(second);
        for note in other.notes.into_iter().flatten() {
            self.note(note);
        }
        self
    }

    /// What arrives once the server was told to die is a note: it changes neither the reasons nor the headline.
    pub(crate) fn add_notes_of(&mut self, late: Self) {
        for note in core::iter::once(late.headline).chain(late.notes.into_iter().flatten()) {
            self.note(Note { kind: NoteKind::Teardown, detail: note.detail });
        }
        self.dropped = self.dropped.saturating_add(late.dropped);
    }

    /// Adds something that went wrong while tearing down.
    pub fn add_teardown(&mut self, seen: D) {
        self.note(Note { kind: NoteKind::Teardown, detail: Detail::Seen(seen) });
    }

    fn note(&mut self, note: Note<D>) {
        match self.notes.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(note),
            None => self.dropped = self.dropped.saturating_add(1),
        }
    }

    /// The reasons.
    pub const fn leaves(&self) -> Leaves {
        self.leaves
    }

    /// What a person should read first: the first failure, or the plan if nothing failed.
    pub const fn headline(&self) -> &Note<D> {
        &self.headline
    }

    /// Everything else that was seen, in order.
    pub fn notes(&self) -> impl Iterator<Item = &Note<D>> {
        self.notes.iter().flatten()
    }

    /// How many notes did not fit.
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// True if the server says that its login was refused.
    pub const fn login_refused(&self) -> bool {
        self.login_refused
    }

    /// When the server asked us to come back.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
