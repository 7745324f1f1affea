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
    /// By itself after this long, and with a call before that: a server that never answered is started seldom.
    InOrCall {
        /// When linetender tries it by itself.
        wait: Duration,
        /// From when on a call starts it.
        call: Duration,
    },
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

    /// After how long linetender tries the server by itself, where that is a matter of time.
    pub const fn wait(self) -> Option<Duration> {
        match self {
            Self::Now => Some(Duration::ZERO),
            Self::In(wait) | Self::InOrCall { wait, .. } => Some(wait),
            Self::UnderWay
            | Self::NextCall
            | Self::OldProcessGone
            | Self::PredecessorGone
            | Self::ItsTurn
            | Self::WhenWoken
            | Self::Never => None,
        }
    }

    pub(crate) fn of(next: linetender_core::NextTry, clock: Clock) -> Self {
        match next {
            linetender_core::NextTry::At(at) => Self::after(at.since(clock.now())),
            linetender_core::NextTry::AtOrCall { at, call } => {
                let now = clock.now();
                Self::InOrCall { wait: at.since(now), call: call.since(now) }
            }
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
            Self::In(wait) => within(f, *wait),
            Self::InOrCall { wait, call } => {
                within(f, *wait)?;
                if call.is_zero() {
                    return f.write_str(", or with the next call");
                }
                f.write_str(", or with the first call after ")?;
                length(f, *call)
            }
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

fn within(f: &mut fmt::Formatter<'_>, wait: Duration) -> fmt::Result {
    f.write_str("in ")?;
    length(f, wait)
}

fn length(f: &mut fmt::Formatter<'_>, wait: Duration) -> fmt::Result {
    match wait.as_millis() {
        millis if millis < 1000 => write!(f, "{millis} ms"),
        millis => write!(f, "{}.{} s", millis / 1000, millis % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::NextTry;

    #[test]
    fn a_server_that_a_call_may_start_sooner_says_from_when_on() {
        let next =
            |call| NextTry::InOrCall { wait: Duration::from_secs(540), call: Duration::from_millis(call) };
        assert_eq!(next(42_190).to_string(), "in 540.0 s, or with the first call after 42.1 s");
        assert_eq!(next(900).to_string(), "in 540.0 s, or with the first call after 900 ms");
        assert_eq!(next(0).to_string(), "in 540.0 s, or with the next call");
        assert_eq!(next(0).wait(), Some(Duration::from_secs(540)));
    }
}
