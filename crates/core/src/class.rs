//! What kinds of failure there are, and what each kind costs.

/// Failure class of a generation's end. The particulars (an exit status, an error number, a body) are the
/// wire's detail; a class holds what decides.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[non_exhaustive]
pub enum Class {
    /// Transport error: the pipe or stream closed or broke.
    Transport,
    /// The server process exited or was killed.
    Exit,
    /// Start or handshake timeout, or the handshake was rejected.
    Handshake,
    /// Protocol error: unterminated frame, or an invalid response.
    Protocol,
    /// Health checks unanswered.
    Silent,
    /// The server no longer recognizes the session.
    SessionLost,
    /// Authentication required.
    Auth,
    /// Configuration error: no such command, bad URL, bad certificate, not an MCP endpoint.
    Config,
    /// Overload: the server asked to retry later.
    Overload,
    /// The server failed on protocol version detection; the other era is tried next.
    EraProbe,
    /// This machine ran out of something (descriptors, processes). Not the server's fault.
    Local,
}

/// Whether a failure costs a token of the restart budget.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Charge {
    /// Each time.
    Always,
    /// Never.
    Never,
    /// Unless that generation had answered a caller: a balancer without affinity must not loop for free.
    UnlessServed,
    /// From the second time on, counted until the next proven generation.
    AfterTheFirst,
}

/// Next state of a line after a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// Waits out the backoff, then dials; parks when the budget is spent.
    Wait,
    /// Parks at once: the same dial would fail the same way.
    Park,
    /// Asks for credentials.
    NeedsAuth,
}

/// Row of the policy table for a class.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// Whether it costs a token.
    pub charge: Charge,
    /// Next state.
    pub route: Route,
}

impl Class {
    /// Every class, in the order of the table.
    pub const ALL: [Self; 11] = [
        Self::Transport,
        Self::Exit,
        Self::Handshake,
        Self::Protocol,
        Self::Silent,
        Self::SessionLost,
        Self::Auth,
        Self::Config,
        Self::Overload,
        Self::EraProbe,
        Self::Local,
    ];

    /// What this class costs and where it leads.
    pub const fn row(self) -> Row {
        use Charge::{AfterTheFirst, Always, Never, UnlessServed};
        use Route::{NeedsAuth, Park, Wait};
        let (charge, route) = match self {
            Self::Transport => (Always, Wait),
            Self::Exit => (Always, Wait),
            Self::Handshake => (Always, Wait),
            Self::Protocol => (Always, Wait),
            Self::Silent => (Always, Wait),
            Self::SessionLost => (UnlessServed, Wait),
            Self::Auth => (Never, NeedsAuth),
            Self::Config => (Never, Park),
            Self::Overload => (Always, Wait),
            Self::EraProbe => (AfterTheFirst, Wait),
            Self::Local => (Never, Wait),
        };
        Row { charge, route }
    }

    /// The word for this class in logs, metrics and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Exit => "exit",
            Self::Handshake => "handshake",
            Self::Protocol => "protocol",
            Self::Silent => "silent",
            Self::SessionLost => "session-lost",
            Self::Auth => "auth",
            Self::Config => "config",
            Self::Overload => "overload",
            Self::EraProbe => "era-probe",
            Self::Local => "local",
        }
    }
}
