//! Where a line can be. What a state needs to know lives in it and nowhere else.

use core::fmt;

use super::ending::Ending;
use super::live::Live;
use crate::cause::Cause;
use crate::time::Instant;

/// The state of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State<D> {
    /// Nobody needed it yet, or not for a while.
    Idle(Option<Rest<D>>),
    /// A generation is being made.
    Dialing(Dialing<D>),
    /// It serves.
    Up(Live),
    /// It serves, but something is odd: a probe is on its way or went unanswered.
    Suspect(Live),
    /// It will be replaced: calls in flight may finish, new ones wait for the next generation.
    Draining {
        /// The generation that still answers.
        live: Live,
        /// Why it is to end.
        cause: Cause<D>,
        /// When it ends at the latest.
        until: Instant,
    },
    /// A generation is being laid to rest, step by step.
    Ending(Ending<D>),
    /// Between two generations.
    Waiting {
        /// When the next dial begins.
        until: Instant,
        /// Why the last generation ended.
        last: Cause<D>,
    },
    /// The budget is spent, or the server cannot work as configured: slow probes only.
    Parked {
        /// Why.
        cause: Cause<D>,
        /// The next probe.
        next_probe_at: Instant,
        /// From when on a call may wake it.
        wake_from: Instant,
    },
    /// An operator took it out of service: nothing but another command brings it back.
    OutOfService {
        /// Why the last generation ended; that it was parked, if none had to.
        cause: Cause<D>,
    },
    /// It needs credentials.
    NeedsAuth {
        /// What it wants; the detail says how.
        cause: Cause<D>,
        /// The next probe: credentials may have changed without anybody saying so.
        next_probe_at: Instant,
    },
    /// Closed on purpose. The only state without a way out.
    Closed,
}

/// Which state a connection is in.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum StateKind {
    /// Not started: no call has needed it yet, or not for a while.
    Idle,
    /// The server is being started or connected to.
    Dialing,
    /// It serves calls.
    Up,
    /// It serves calls, and a health check is under way or went unanswered.
    Suspect,
    /// It will be replaced: calls in flight may finish, new ones wait.
    Draining,
    /// The server process or connection is being shut down.
    Ending,
    /// Waiting before the next start.
    Waiting,
    /// It failed too often, or cannot work as configured: retried seldom. Or an operator took it out of service: not
    /// retried until woken.
    Parked,
    /// The server wants credentials.
    NeedsAuth,
    /// Closed on purpose, for good.
    Closed,
}

impl StateKind {
    /// Its word in logs, metrics and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Dialing => "dialing",
            Self::Up => "up",
            Self::Suspect => "suspect",
            Self::Draining => "draining",
            Self::Ending => "ending",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::NeedsAuth => "needs-auth",
            Self::Closed => "closed",
        }
    }

    /// Whether a server is there that answers calls.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Up | Self::Suspect | Self::Draining)
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A line that was stopped because nobody needed it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rest<D> {
    /// Before that no use can dial it: a free path must not spin.
    pub not_before: Instant,
    /// Why the last generation ended.
    pub last: Cause<D>,
}

/// A generation in the making.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Dialing<D> {
    /// How far it got.
    pub phase: DialPhase,
    /// What made us dial.
    pub origin: Origin,
    /// True once the server's process has written to stderr.
    pub wrote: bool,
    /// Why the generation before it ended.
    pub last: Option<Cause<D>>,
}

/// How far a dial got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DialPhase {
    /// The driver has yet to be told.
    Wanted,
    /// It waits its turn; that is neither start time nor failure.
    AtGate,
    /// The server has yet to say its first byte.
    Starting {
        /// The start limit.
        until: Instant,
    },
    /// The start limit is over, but the server writes to stderr and never had a chance to answer before: somebody may be
    /// logging in.
    Slow {
        /// The limit of such a start.
        until: Instant,
    },
    /// It talks, but the handshake is not done.
    Shaking {
        /// The handshake limit.
        until: Instant,
    },
}

/// What made us dial. Decides whether calls wait for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The line's first dial: calls wait as long as a server may take to start.
    First,
    /// Another one: calls wait a little.
    Again,
    /// A parked line tries its luck: calls are refused until it worked, but the one that woke it waits.
    FromPark,
    /// The same, without credentials.
    FromAuth,
}

impl<D> State<D> {
    /// The word for this state in logs, metrics and tables.
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Which state it is, without what it knows.
    pub const fn kind(&self) -> StateKind {
        match self {
            Self::Idle(_) => StateKind::Idle,
            Self::Dialing(_) => StateKind::Dialing,
            Self::Up(_) => StateKind::Up,
            Self::Suspect(_) => StateKind::Suspect,
            Self::Draining { .. } => StateKind::Draining,
            Self::Ending(_) => StateKind::Ending,
            Self::Waiting { .. } => StateKind::Waiting,
            Self::Parked { .. } | Self::OutOfService { .. } => StateKind::Parked,
            Self::NeedsAuth { .. } => StateKind::NeedsAuth,
            Self::Closed => StateKind::Closed,
        }
    }

    /// Why the line is not up, as far as something ended.
    pub const fn cause(&self) -> Option<&Cause<D>> {
        match self {
            Self::Dialing(dialing) => dialing.last.as_ref(),
            Self::Idle(Some(rest)) => Some(&rest.last),
            Self::Ending(ending) => Some(ending.cause()),
            Self::Draining { cause, .. }
            | Self::Waiting { last: cause, .. }
            | Self::Parked { cause, .. }
            | Self::OutOfService { cause }
            | Self::NeedsAuth { cause, .. } => Some(cause),
            Self::Idle(None) | Self::Up(_) | Self::Suspect(_) | Self::Closed => None,
        }
    }

    pub(super) const fn live(&self) -> Option<&Live> {
        match self {
            Self::Up(live) | Self::Suspect(live) | Self::Draining { live, .. } => Some(live),
            Self::Idle(_)
            | Self::Dialing(_)
            | Self::Ending(_)
            | Self::Waiting { .. }
            | Self::Parked { .. }
            | Self::OutOfService { .. }
            | Self::NeedsAuth { .. }
            | Self::Closed => None,
        }
    }

    pub(super) const fn live_mut(&mut self) -> Option<&mut Live> {
        match self {
            Self::Up(live) | Self::Suspect(live) | Self::Draining { live, .. } => Some(live),
            Self::Idle(_)
            | Self::Dialing(_)
            | Self::Ending(_)
            | Self::Waiting { .. }
            | Self::Parked { .. }
            | Self::OutOfService { .. }
            | Self::NeedsAuth { .. }
            | Self::Closed => None,
        }
    }
}

impl<D> Dialing<D> {
    pub(super) const fn timeout(&self) -> Option<Instant> {
        match self.phase {
            DialPhase::Wanted | DialPhase::AtGate => None,
            DialPhase::Starting { until } | DialPhase::Slow { until } | DialPhase::Shaking { until } => {
                Some(until)
            }
        }
    }
}
