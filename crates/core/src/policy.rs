//! Every number a server's line obeys, as validated data.
//!
//! [`Settings`] is what a person may write; [`Policy`] is the same after it was checked, and the only form
//! that the machine takes. So a zero keepalive is an error where it was written, not a spin at night.

mod check;
mod settings;

pub use check::{Invalid, LONGEST};
pub use settings::{
    BackoffPolicy, BudgetPolicy, CallPolicy, ClosePolicy, DialPolicy, Limits, ParkPolicy, ProbePolicy,
    RetryPolicy, ServerState, Settings, Tree,
};

/// Checked [`Settings`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Settings", into = "Settings"))]
pub struct Policy(Settings);

impl Policy {
    /// Checks the settings.
    ///
    /// # Errors
    /// Names the first setting that breaks a rule, and the rule.
    pub fn new(settings: Settings) -> Result<Self, Invalid> {
        check::check(&settings).map(|()| Self(settings))
    }

    /// The same for a server that keeps this in memory.
    #[must_use]
    pub const fn with_state(mut self, state: ServerState) -> Self {
        self.0.state = state;
        self
    }

    /// What was checked.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }
}

impl TryFrom<Settings> for Policy {
    type Error = Invalid;

    fn try_from(settings: Settings) -> Result<Self, Invalid> {
        Self::new(settings)
    }
}

impl From<Policy> for Settings {
    fn from(policy: Policy) -> Self {
        policy.0
    }
}
