//! How long a call may take, and who says so.

use std::time::Duration;

use linetender_core::CallPolicy;

/// Whose the deadline is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Deadline {
    /// Ours, by the policy: progress extends it, up to the cap.
    #[default]
    Policy,
    /// Ours, and these.
    Within {
        /// How long the server may be quiet about it: progress begins this anew.
        quiet: Duration,
        /// How long it may take in all, whatever the server says.
        total: Duration,
    },
    /// The agent's. We only look for life when it has been quiet for the policy's limit.
    Agent,
}

impl Deadline {
    /// Ours, and this long, whatever the server says.
    pub const fn after(span: Duration) -> Self {
        Self::Within { quiet: span, total: span }
    }

    /// How long the server may be quiet, and how long it may take in all.
    pub(crate) fn limits(self, policy: &CallPolicy) -> (Duration, Duration) {
        match self {
            Self::Policy | Self::Agent => (policy.limit, policy.cap.max(policy.limit)),
            Self::Within { quiet, total } => (quiet.min(total), total),
        }
    }
}
