//! Lines that have to be closed before another one dials: two servers of one name never live at once (G11).

use linetender_core::StateKind;
use tokio::sync::watch;

use crate::status::Status;

/// Where lines stand that had a server's name before, as long as they are not closed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Predecessors(Vec<watch::Receiver<Status>>);

impl Predecessors {
    /// One more. Those that are closed by now are forgotten.
    pub(crate) fn add(&mut self, line: watch::Receiver<Status>) {
        self.0.retain(is_open);
        self.0.push(line);
    }

    /// True if one of them is not closed.
    pub(crate) fn are_any(&self) -> bool {
        self.0.iter().any(is_open)
    }

    /// Waits until all of them are closed.
    pub(crate) async fn closed(&self) {
        for line in &self.0 {
            // Its tender being gone is as good.
            let _ = line.clone().wait_for(|status| status.state == StateKind::Closed).await;
        }
    }
}

impl Extend<watch::Receiver<Status>> for Predecessors {
    fn extend<I: IntoIterator<Item = watch::Receiver<Status>>>(&mut self, lines: I) {
        lines.into_iter().for_each(|line| self.add(line));
    }
}

fn is_open(line: &watch::Receiver<Status>) -> bool {
    line.has_changed().is_ok() && line.borrow().state != StateKind::Closed
}
