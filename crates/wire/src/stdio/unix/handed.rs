//! What a reaper finds open when it is started, and the variables that say so.

use std::os::fd::RawFd;
use std::time::Duration;

use linetender_core::{ClosePolicy, Tree};

/// Where the reaper finds the control socket.
pub(super) const CONTROL_FD: RawFd = 3;

/// Where it finds what it is to hold open as long as it lives, if its environment says that there is something.
pub(super) const HELD_FD: RawFd = 4;

/// The variable that says so. The reaper takes it out of the server's environment.
pub(super) const HELD: &str = "LINETENDER_REAPER_HOLDS";

/// Where it finds the timer that its server does not outlive, and the variable that says that there is one.
pub(super) const LIFELINE_FD: RawFd = 5;
pub(super) const LIFELINE: &str = "LINETENDER_REAPER_LIFELINE";

/// The variable that says how the server is ended.
pub(super) const ENDS: &str = "LINETENDER_REAPER_ENDS";

/// The word for a tree that what left it on purpose is not of.
const SPARES: &str = "server";

/// How a server is ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ends {
    /// Whether what left the tree on purpose is spared.
    pub(super) spares: bool,
    /// From end of file to SIGTERM.
    pub(super) stdin: Duration,
    /// From there to SIGKILL.
    pub(super) term: Duration,
    /// For what it leaves behind, from SIGTERM to SIGKILL.
    pub(super) crash: Duration,
    /// How long a start may go on whose parent is gone.
    pub(super) start: Duration,
}

#[cfg(all(target_os = "linux", not(linetender_portable)))]
impl Default for Ends {
    fn default() -> Self {
        Self::of(&ClosePolicy::default(), None)
    }
}

impl Ends {
    pub(super) fn of(close: &ClosePolicy, start: Option<Duration>) -> Self {
        Self {
            spares: close.tree == Tree::Server,
            stdin: close.stdin,
            term: close.term,
            crash: close.crash,
            start: start.unwrap_or_default(),
        }
    }

    /// As a reaper is told.
    pub(super) fn encode(&self) -> String {
        let times = [self.stdin, self.term, self.crash, self.start].map(|time| time.as_millis().to_string());
        format!("{} {}", if self.spares { SPARES } else { "all" }, times.join(" "))
    }

    /// As it was told. macOS keeps to the order of its parent.
    #[cfg(all(target_os = "linux", not(linetender_portable)))]
    pub(super) fn decode(text: &str) -> Self {
        let (tree, times) = text.split_once(' ').unwrap_or_default();
        let times: Vec<_> =
            times.split(' ').map_while(|time| time.parse().ok().map(Duration::from_millis)).collect();
        match times[..] {
            [stdin, term, crash, start] => Self { spares: tree == SPARES, stdin, term, crash, start },
            _ => Self::default(),
        }
    }
}

#[cfg(all(test, target_os = "linux", not(linetender_portable)))]
mod tests {
    use super::{ClosePolicy, Duration, Ends, Tree};

    #[test]
    fn a_reaper_is_told_what_was_set() {
        let mut close = ClosePolicy::default();
        (close.term, close.tree) = (Duration::from_millis(60_001), Tree::Server);
        let ends = Ends::of(&close, Some(Duration::from_secs(7)));
        assert_eq!(Ends::decode(&ends.encode()), ends);
        assert_eq!(Ends::decode("1 2"), Ends::default());
    }
}
