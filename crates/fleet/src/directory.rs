//! What all gateways of a fleet reach: one entry for each line, changed by compare-and-swap, and one for each call that must not run
//! twice.

use std::pin::Pin;
use std::time::Duration;

use linetender_core::lease::{Entry, Revision};
use tokio::sync::mpsc;

/// What a directory promises to say later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Away>> + Send + 'a>>;

/// What is there of a line.
pub type There = Option<(Revision, Entry)>;

/// What is noted of a call.
pub type Recalled = Option<(Revision, Vec<u8>)>;

/// The directory did not answer. Whether it did what it was asked is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the fleet's directory does not answer: {0}")]
pub struct Away(pub String);

/// Where it is written who owns which line.
pub trait Directory: Send + Sync + 'static {
    /// What is there of a line. It may be old by a moment.
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There>;

    /// Writes an entry if what is there has this revision, or if nothing is there: its revision; `None` if something else is there.
    fn put<'a>(
        &'a self,
        line: &'a str,
        expected: Option<Revision>,
        entry: Entry,
    ) -> Later<'a, Option<Revision>>;

    /// Every change from now on. A gap ends it: whoever wants more asks again, and looks.
    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>>;

    /// What is noted of a call that must not run twice. It is not old.
    fn recall<'a>(&'a self, call: &'a str) -> Later<'a, Recalled>;

    /// Notes something of a call if what is noted has this revision, or if nothing is: the note's revision; `None` if something else is
    /// noted.
    fn note<'a>(
        &'a self,
        call: &'a str,
        expected: Option<Revision>,
        note: &'a [u8],
    ) -> Later<'a, Option<Revision>>;

    /// How long a note of a call is kept by itself, if not for ever.
    fn keeps(&self) -> Option<Duration> {
        None
    }

    /// Whether what is noted of calls takes memory of this process, until it is forgotten.
    fn is_memory(&self) -> bool {
        false
    }

    /// A call need not be remembered any longer, if this is still what is noted. A directory that others use too forgets by itself, when the
    /// time for it is over.
    fn forget(&self, _call: &str, _noted: Revision) {}
}

/// A change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Changed {
    /// The line.
    pub line: String,
    /// What is there now.
    pub there: There,
}
