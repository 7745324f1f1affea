//! How many lines there may be, and who has one of its own.

use std::sync::{Mutex, PoisonError};

use linetender::session::{Agent, Who};
use linetender_wire::frame::Passed;
use tokio::sync::mpsc;

/// What one principal may have of so many: all but an eighth, so that whoever comes next gets something too.
pub(crate) const fn share(most: usize) -> usize {
    most - most / 8
}

/// The agents that have a line of their own, and whose they are. A line that is being closed counts no more: its time is bounded, and
/// it takes nothing from anybody.
#[derive(Debug, Default)]
pub(crate) struct LineLimit(Mutex<Vec<(u64, mpsc::WeakSender<Passed>)>>);

impl LineLimit {
    /// Opens a line for one agent, unless there are as many as there may be.
    pub(crate) fn take(&self, most: usize, who: Who, open: impl FnOnce() -> Agent) -> Option<Agent> {
        // Held while it is opened: whoever comes at the same time is counted too.
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|(_, agent)| agent.strong_count() > 0);
        let own = taken.iter().filter(|(principal, _)| *principal == who.principal).count();
        if taken.len() >= most || own >= share(most).max(1) {
            return None;
        }
        let agent = open();
        taken.push((who.principal, agent.to.downgrade()));
        Some(agent)
    }
}
