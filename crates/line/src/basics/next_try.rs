//! When a server is tried next: a value for programs, which prints as words for people.

use std::fmt;
use std::time::Duration;

use super::clock::Clock;

/// When linetender tries a server next, as seen from the moment in which it was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NextTry {
    /// The server takes calls now.
    Now,
    /// After this long.
    In(Duration),
    /// The server is being started or connected to.
    UnderWay,
    /// As soon as somebody calls.
    NextCall,
    /// When the last process of the server has ended, which does not react to signals.
    OldProcessGone,
    /// When the server that it replaces has ended.
    PredecessorGone,
    /// When its turn to start comes: many servers are being started.
    ItsTurn,
    /// When an operator wakes it: it was parked on purpose.
    WhenWoken,
    /// Never: it was closed.
    Never,
}

impl NextTry {
    pub(crate) const fn after(wait: Duration) -> Self {
        if wait.as_millis() == 0 { Self::Now } else { Self::In(wait) }
    }

    pub(crate) fn of(next: linetender_core::NextTry, clock: Clock) -> Self {
        match next {
            linetender_core::NextTry::At(at) => Self::after(at.since(clock.now())),
            linetender_core::NextTry::Underway => Self::UnderWay,
            linetender_core::NextTry::NextCall => Self::NextCall,
            linetender_core::NextTry::WhenGone => Self::OldProcessGone,
            linetender_core::NextTry::WhenWoken => Self::WhenWoken,
            linetender_core::NextTry::Never => Self::Never,
        }
    }
}

impl fmt::Display for NextTry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => f.write_str("now"),
            Self::In(wait) => match wait.as_millis() {
                millis if millis < 1000 => write!(f, "in {millis} ms"),
                millis => write!(f, "in {}.{} s", millis / 1000, millis % 1000 / 100),
            },
            Self::UnderWay => f.write_str("under way"),
            Self::NextCall => f.write_str("on the next call"),
            Self::OldProcessGone => f.write_str("when the old process has exited"),
            Self::PredecessorGone => f.write_str("when the replaced server has exited"),
            Self::ItsTurn => f.write_str("when a start slot is free"),
            Self::WhenWoken => f.write_str("when an operator wakes it"),
            Self::Never => f.write_str("never"),
        }
    }
}
