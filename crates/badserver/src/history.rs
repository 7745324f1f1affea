//! What happened in a run: every call and what it was told, every state, every change of a list.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::failure::Failure;

/// A run, or a part of one.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By nonce.
    pub calls: BTreeMap<String, Asked>,
    /// When a state was entered, and which.
    pub states: Vec<(Duration, &'static str)>,
    /// Lists that changed.
    pub changes: u32,
    /// Events that the recorder was too slow for.
    pub missed: u64,
    /// Refusals after which a call may be sent again, since their servers promise that they did not run it: words of
    /// `retry_on`, or `redirect`. Without them no call may run twice.
    pub believed: &'static [&'static str],
}

/// A call.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When it was made.
    pub at: Duration,
    /// Whether it may be run twice.
    pub safe: bool,
    /// What it was told, and when.
    pub told: Option<(Duration, Result<(), Failure>)>,
}
