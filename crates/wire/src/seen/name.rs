//! Words by which programs tell apart what was seen.

use super::{Exit, Seen};

impl Seen {
    /// The word for what was seen, in journals and reports. It does not change when the sentence for people does.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotRunnable { .. } => "not-runnable",
            Self::NoDir { .. } => "no-dir",
            Self::NoReaper { .. } => "no-reaper",
            Self::NotAServer { .. } => "not-a-server",
            Self::NoProcess { .. } => "no-process",
            Self::NoSocket { .. } => "no-socket",
            Self::Exited { .. } => "exited",
            Self::NameTaken { .. } => "name-taken",
            Self::CidfileRefused { .. } => "cidfile-refused",
            Self::ContainerStays { .. } => "container-stays",
            Self::Closed { .. } => "closed-pipe",
            Self::ReaperDied => "reaper-died",
            Self::LeaseOver => "lease-over",
            Self::NodeGone => "node-gone",
            Self::NodeLeft => "node-left",
            Self::NodeRefused { .. } => "node-refused",
            Self::OwnerGone => "keeper-gone",
            Self::OwnerLeft => "keeper-left",
            Self::OwnerHangs => "keeper-hangs",
            Self::Handshake { .. } => "handshake-rejected",
            Self::EndedOnProbe { .. } => "ended-on-probe",
            Self::Unreachable { .. } => "unreachable",
            Self::Broken { .. } => "connection-broken",
            Self::Refused { .. } => "connection-refused",
            Self::NoSuchHost { .. } => "no-such-host",
            Self::Http { .. } => "http-status",
            Self::Unusable { .. } => "unusable-response",
            Self::SessionLost => "session-lost",
            Self::SessionNeverKnown => "session-never-known",
            Self::NotInitialized { .. } => "not-initialized",
            Self::StreamEnded { .. } => "stream-ended",
            Self::BadEndpoint { .. } => "bad-endpoint",
            Self::BadSession { .. } => "bad-session",
            Self::NotMcp { .. } => "not-mcp",
            Self::WantsAuth { .. } => "wants-auth",
            Self::NeedsLogin { .. } => "needs-login",
            Self::NoKey { .. } => "no-key",
            Self::Throttled { .. } => "throttled",
            Self::OtherEra => "other-era",
            Self::Internal { .. } => "internal",
            Self::Teardown { .. } => "teardown",
        }
    }

    /// How the server process ended, if that was seen.
    pub const fn exit(&self) -> Option<Exit> {
        match self {
            Self::Exited { exit, .. } | Self::NameTaken { exit, .. } => Some(*exit),
            Self::EndedOnProbe { exit } => *exit,
            _ => None,
        }
    }

    /// The HTTP status that ended it.
    pub const fn http(&self) -> Option<u16> {
        match self {
            Self::Http { status, .. } | Self::Throttled { status, .. } => Some(*status),
            _ => None,
        }
    }
}
