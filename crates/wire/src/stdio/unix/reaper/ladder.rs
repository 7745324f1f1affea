//! How a server is ended, rung by rung: end of file or a signal, then SIGTERM, then SIGKILL.
//!
//! The ladder is the reaper's, so that it is climbed to its end also if linetender is killed on the way: agents send SIGINT,
//! SIGTERM and SIGKILL within half a second, and a server may save its work for longer.

use std::time::Duration;

use super::super::handed::Ends;

/// A time of the reaper's clock.
pub(super) type Time = Duration;

/// Where the reaper stands on the ladder.
pub(super) struct Ladder {
    ends: Ends,
    /// When end of file or the first signal came.
    begun: Option<Time>,
    /// The server's group has had SIGTERM from the ladder, or a signal from outside, and then the ladder sends none.
    is_asked: bool,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rung {
    Term,
    Kill,
}

impl Ladder {
    pub(super) const fn new(ends: Ends) -> Self {
        Self { ends, begun: None, is_asked: false }
    }

    /// Whether the server's group was asked to go.
    pub(super) const fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Its stdin is closed then. Of several times the first counts.
    pub(super) fn close(&mut self, at: Time) {
        self.begun.get_or_insert(at);
    }

    /// Its group gets a signal now. The first one gives it the whole time again.
    pub(super) fn signal(&mut self, now: Time) {
        if !std::mem::replace(&mut self.is_asked, true) {
            self.begun = Some(now);
        }
    }

    /// What is due.
    pub(super) fn due(&mut self, now: Time) -> Option<Rung> {
        if self.kill_at().is_some_and(|at| now >= at) {
            return Some(Rung::Kill);
        }
        let is_due = !self.is_asked && self.begun.is_some_and(|begun| now >= begun + self.ends.stdin);
        self.is_asked |= is_due;
        is_due.then_some(Rung::Term)
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Time> {
        let rest = if self.is_asked { self.ends.term } else { Duration::ZERO };
        Some(self.begun? + self.ends.stdin + rest)
    }

    /// When everything is killed.
    pub(super) fn kill_at(&self) -> Option<Time> {
        Some(self.begun? + self.ends.stdin + self.ends.term)
    }

    /// When what the server leaves behind is killed, if it ends now.
    pub(super) fn kill_rest_at(&self, now: Time) -> Time {
        self.kill_at().unwrap_or_default().max(now + self.ends.crash)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ends, Ladder, Rung, Time};

    fn at(millis: u64) -> Time {
        Time::from_millis(1_000_000 + millis)
    }

    fn ladder() -> Ladder {
        Ladder::new(Ends::default())
    }

    #[test]
    fn after_end_of_file_come_term_and_kill() {
        let mut ladder = ladder();
        assert_eq!((ladder.due(at(0)), ladder.next()), (None, None));
        ladder.close(at(0));
        ladder.close(at(1000));
        assert_eq!((ladder.due(at(1999)), ladder.next()), (None, Some(at(2000))));
        assert_eq!((ladder.due(at(2000)), ladder.next()), (Some(Rung::Term), Some(at(4000))));
        assert_eq!((ladder.due(at(3999)), ladder.due(at(4000))), (None, Some(Rung::Kill)));
    }

    #[test]
    fn after_a_signal_comes_nothing_but_kill_and_another_signal_changes_nothing() {
        let mut ladder = ladder();
        ladder.signal(at(0));
        ladder.signal(at(100));
        ladder.close(at(500));
        assert_eq!((ladder.due(at(3999)), ladder.next()), (None, Some(at(4000))));
        assert_eq!(ladder.due(at(4000)), Some(Rung::Kill));
    }

    #[test]
    fn a_signal_after_end_of_file_gives_the_server_its_whole_time() {
        let mut ladder = ladder();
        ladder.close(at(0));
        ladder.signal(at(1900));
        assert_eq!((ladder.due(at(5899)), ladder.due(at(5900))), (None, Some(Rung::Kill)));
    }

    #[test]
    fn what_is_left_behind_has_its_grace_or_what_is_left_of_the_ladder() {
        let mut ladder = ladder();
        assert_eq!(ladder.kill_rest_at(at(0)), at(3000));
        ladder.signal(at(0));
        assert_eq!((ladder.kill_rest_at(at(100)), ladder.kill_rest_at(at(3900))), (at(4000), at(6900)));
    }
}
