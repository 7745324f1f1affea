//! When a changed file is believed: once it has been left alone for a while.
//!
//! Many programs write a file in steps: they empty it and fill it, or write its first half and later the rest. Each step may
//! read as a config, one that lacks the servers of the second half. So a change counts when the file has stayed the same for
//! [`STILL`], and one that takes servers away only after [`REMOVAL`].

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// How long a file has to stay the same before it is believed.
pub(super) const STILL: Duration = Duration::from_millis(500);

/// The same for a file that takes a server away.
pub(super) const REMOVAL: Duration = Duration::from_secs(3);

/// A file at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Look {
    /// Its text, or why it cannot be read.
    pub(super) text: Result<String, String>,
    /// When it was written last: whoever has just touched it may not be done.
    pub(super) written: Option<SystemTime>,
}

/// A file that differs from what is in force, and since when it has been as it is.
#[derive(Debug)]
pub(super) struct Pending<C> {
    pub(super) look: Look,
    since: Instant,
    /// What it says, if that was read and takes a server away.
    pub(super) removes: Option<C>,
}

impl<C> Pending<C> {
    /// A file that was seen now, and before that as `earlier`. If it is not the same file any more, its time begins anew.
    pub(super) fn seen(earlier: Option<Self>, look: Look, now: Instant) -> Self {
        earlier.filter(|earlier| earlier.look == look).unwrap_or(Self { look, since: now, removes: None })
    }

    /// It says this, which takes a server away.
    pub(super) fn removing(self, config: C) -> Self {
        Self { removes: Some(config), ..self }
    }

    /// When it will have been still for long enough.
    pub(super) fn due(&self) -> Instant {
        self.since + if self.removes.is_some() { REMOVAL } else { STILL }
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Pending, REMOVAL, STILL};
    use std::time::{Duration, SystemTime};
    use tokio::time::Instant;

    fn look(text: &str, written: u64) -> Look {
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(written);
        Look { text: Ok(text.to_owned()), written: Some(written) }
    }

    #[test]
    fn g06_a_file_is_believed_when_it_was_neither_written_nor_touched_for_a_while() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let half = Pending::<()>::seen(None, look("half", 1), at(0));
        assert_eq!(half.due(), at(0) + STILL);
        let half = Pending::seen(Some(half), look("half", 1), at(300));
        assert_eq!(half.due(), at(0) + STILL, "looking at it changes nothing");
        let touched = Pending::seen(Some(half), look("half", 2), at(400));
        assert_eq!(touched.due(), at(400) + STILL);
        let whole = Pending::seen(Some(touched), look("whole", 2), at(800));
        assert_eq!(whole.due(), at(800) + STILL);
        let removing = whole.removing(());
        assert_eq!(removing.due(), at(800) + REMOVAL);
        let other = Pending::seen(Some(removing), look("other", 3), at(3700));
        assert_eq!((other.due(), other.removes), (at(3700) + STILL, None));
    }
}
