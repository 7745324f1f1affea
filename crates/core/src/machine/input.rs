//! What the driver can tell the machine, and what it is told back.

use crate::cause::{Cause, Plan};
use crate::generation::Generation;
use crate::time::Instant;

/// Something that happened to a generation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event<D> {
    /// It passed the rig's dial limit: its start time runs from now.
    Started,
    /// A process was started for it, on this machine.
    Spawned,
    /// That process wrote to stderr for the first time.
    Wrote,
    /// Its first byte arrived: the handshake's time runs from now.
    FirstByte,
    /// The handshake is done.
    Dialled,
    /// It ended, or could not begin.
    Lost(Cause<D>),
    /// A call of its own failed in a way that makes the server suspect: refused, reset, cut, 5xx.
    Trouble,
    /// A connection for a call of its own was refused: nobody listens there now.
    Refused,
    /// A call has passed its deadline or quiet limit.
    Overdue,
    /// Some correlated reply to the probe came, be it an error.
    ProbeAnswered,
    /// The probe failed before its time was up.
    ProbeFailed,
    /// A connection for the probe was refused.
    ProbeRefused,
    /// The probe could not be sent, for want of something on this machine, or was put off. That says nothing about the server.
    ProbeUnsent,
    /// What was readable has been read.
    Drained,
    /// Nobody holds the other end of its pipe any more, so the residue can be measured.
    NoReader,
    /// Its whole tree is gone; what went wrong on the way is a note.
    Gone(Option<D>),
}

/// Something somebody wants of the line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// Dial, if nobody did yet.
    Open,
    /// A new generation in place of the one that was `seen`, if that one still lives. Of many that saw the same one,
    /// the first is heard; and whoever is late leaves the rest to the budget.
    RedialIf {
        /// The generation the asker saw.
        seen: Generation,
    },
    /// A new generation, because somebody says so: whatever the budget, and from any state.
    Redial,
    /// A new generation once calls in flight have ended: this one is old enough.
    Recycle,
    /// Somebody logged in: a line that is down is dialled. One that lives goes on, with the new credentials.
    Credentials,
    /// No generation until somebody needs one.
    IdleStop,
    /// An operator takes it out of service: calls in flight may finish, and then there is no generation until `Wake` or
    /// `Redial`. Use, credentials and timers do not bring it back.
    Park,
    /// An operator wants it in service: a line that is down is dialled, whatever the budget. One that lives goes on.
    Wake,
    /// The end.
    Close,
}

impl<D> Event<D> {
    /// The word for this event in logs and tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Spawned => "spawned",
            Self::Wrote => "wrote",
            Self::FirstByte => "first-byte",
            Self::Dialled => "dialled",
            Self::Lost(_) => "lost",
            Self::Trouble => "trouble",
            Self::Refused => "refused",
            Self::Overdue => "overdue",
            Self::ProbeAnswered => "probe-answered",
            Self::ProbeFailed => "probe-failed",
            Self::ProbeRefused => "probe-refused",
            Self::ProbeUnsent => "probe-unsent",
            Self::Drained => "drained",
            Self::NoReader => "no-reader",
            Self::Gone(_) => "gone",
        }
    }
}

impl Command {
    /// The word for this command in logs and tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::RedialIf { .. } => "redial-if",
            Self::Redial => "redial",
            Self::Recycle => "recycle",
            Self::Credentials => "credentials",
            Self::IdleStop => "idle-stop",
            Self::Park => "park",
            Self::Wake => "wake",
            Self::Close => "close",
        }
    }
}

/// What became of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard {
    /// It counted.
    Taken,
    /// It came from a generation that is no longer the line's. Nothing changed.
    Stale,
    /// It cannot happen in this state: a slip of the driver's, or a late reply. Nothing changed.
    OutOfPlace,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommandOutcome {
    /// It set something in motion.
    Started,
    /// What it wants is under way already, or done.
    Joined,
    /// Not now: the line is being dialled for somebody, or is down for a better reason.
    Declined,
    /// The line is closed.
    Closed,
}

/// How a generation is doing, read from its ledger after draining what is readable.
///
/// The machine sees these numbers, not the calls: a call costs it nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Vitals {
    /// Calls of callers that have no outcome yet.
    pub in_flight: u32,
    /// Whether a caller cancelled a call that the server has, since the server was last heard. Nobody waits for that
    /// call, but the server may be busy with it. Never set together with `exchanges`.
    pub owed: bool,
    /// The first give-up since the server was last heard, of a call that was older than every call still waited for.
    /// A give-up behind an older call is not one: the server may be busy with the older call.
    pub abandoned_at: Option<Instant>,
    /// Whether every call has an exchange of its own, which the end of the generation does not cut (HTTP).
    pub exchanges: bool,
    /// Whether its processes work, as far as that can be seen from outside: a server that works does not hang.
    pub works: bool,
    /// Requests *of callers* that this generation has answered. Our own traffic does not count.
    pub answered: u64,
    /// When anything was last heard from the server.
    pub heard_at: Instant,
}

impl Vitals {
    /// Whether the server may be busy with something.
    pub const fn busy(&self) -> bool {
        self.in_flight > 0 || self.owed
    }
}

impl Command {
    /// The plan behind a command that ends a generation.
    pub(super) const fn plan(self) -> Option<Plan> {
        match self {
            Self::Open | Self::Credentials | Self::Wake => None,
            Self::RedialIf { .. } | Self::Redial => Some(Plan::Redial),
            Self::Recycle => Some(Plan::Recycle),
            Self::IdleStop => Some(Plan::IdleStop),
            Self::Park => Some(Plan::Park),
            Self::Close => Some(Plan::Close),
        }
    }
}
