//! How many lines there may be, and who has one of its own.

use std::sync::{Mutex, PoisonError};

use linetender::session::Agent;
use linetender_wire::frame::Passed;
use tokio::sync::mpsc;

/// The agents that have a line of their own. A line that is being closed counts no more: its time is bounded, and it takes
/// nothing from anybody.
#[derive(Debug, Default)]
pub(crate) struct LineLimit(Mutex<Vec<mpsc::WeakSender<Passed>>>);

impl LineLimit {
    /// Opens a line for one agent, unless there are as many as there may be.
    pub(crate) fn take(&self, most: usize, open: impl FnOnce() -> Agent) -> Option<Agent> {
        // Held while it is opened: whoever comes at the same time is counted too.
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|agent| agent.strong_count() > 0);
        if taken.len() >= most {
            return None;
        }
        let agent = open();
        taken.push(agent.to.downgrade());
        Some(agent)
    }
}
