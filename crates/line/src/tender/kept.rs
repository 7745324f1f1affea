//! A server process that outlives its session: the next generation is initialized on the same pipes.
//!
//! The process is not the server: it has restarted the server by itself, and lives. Ending it would cost the start of both, and
//! end what the user has started on purpose. It is kept only if the next generation begins at once, so that the line never waits
//! with a process that no generation has.

use linetender_core::{After, Class, Leaf, State};
use linetender_wire::seam;
use tokio::sync::mpsc;

use super::Running;
use crate::generation::{Process, Reach};

/// A process between two generations.
pub(super) struct Kept {
    pub(super) process: Process,
    /// What is told of it.
    pub(super) wire: mpsc::Receiver<seam::Event>,
    /// The last number of a request that was written to it. An answer that is late must not be taken for another's.
    pub(super) last_id: u64,
}

impl Running {
    /// True if the process of the generation that ends is kept.
    pub(super) fn keeps_process(&self) -> bool {
        let State::Ending(ending) = self.machine.state() else { return false };
        let session = Leaf::Failed(Class::SessionLost);
        let is_session = ending.cause().leaves().iter().all(|leaf| leaf == session);
        let now = self.tender.clock.now();
        let at_once = matches!(ending.after(), After::Dial { at } if at <= now);
        let was_initialized = self.current.as_ref().is_some_and(|current| {
            let live = current.connection.live();
            current.wire_open
                && !current.broken
                && live.is_some_and(|live| matches!(live.reach, Reach::Process(_)))
        });
        is_session && at_once && was_initialized && !self.tender.dial_limit.is_once()
    }

    /// Takes the process out of the generation that ends.
    pub(super) fn keep_process(&mut self) {
        let Some(current) = &mut self.current else { return };
        let Some(link) = current.connection.link() else { return };
        let Reach::Process(process) = &link.reach else { return };
        let (_, closed) = mpsc::channel(1);
        self.kept = Some(Kept {
            process: process.clone(),
            wire: std::mem::replace(&mut current.wire, closed),
            last_id: current.ledger.last_id(),
        });
        current.wire_open = false;
    }

    /// Ends a process that no generation took.
    pub(super) fn end_kept(&mut self) {
        if matches!(self.machine.state(), State::Ending(_) | State::Waiting { .. } | State::Dialing(_)) {
            return;
        }
        if let Some(kept) = self.kept.take() {
            kept.process.kill();
        }
    }
}
