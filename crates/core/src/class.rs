//! What kinds of failure there are, and what each kind costs.

/// What kind of failure ended a generation. The particulars (an exit status, an error number, a body) are the
/// wire's detail; a class holds what decides.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
#[non_exhaustive]
pub enum Class {
    /// The pipe or stream ended or broke.
    Transport,
    /// The process ended by itself.
    Exit,
    /// It did not start, or did not shake hands, in time or at all.
    Handshake,
    /// What it said cannot be MCP: no frame end in sight, nonsense where an answer had to be.
    Protocol,
    /// It answers no probe.
    Silent,
    /// The server no longer knows our session.
    SessionLost,
    /// It wants credentials that we do not have.
    Auth,
    /// It cannot work as configured: no such command, bad address, bad certificate, not an MCP endpoint.
    Config,
    /// It asked us to come back later.
    Overload,
    /// It ended because we probed for its era; the other era is tried next.
    EraProbe,
    /// This machine ran out of something (descriptors, processes). Not the server's fault.
    Local,
}

/// Whether a failure takes a token from the line's budget.
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

/// Where a line goes after a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Route {
    /// Waits out the backoff, then dials; parks when the budget is spent.
    Wait,
    /// Parks at once: the same dial would fail the same way.
    Park,
    /// Asks for credentials.
    NeedsAuth,
}

/// A class's line in the policy table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Row {
    /// Does it cost a token?
    pub charge: Charge,
    /// Where does the line go?
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
