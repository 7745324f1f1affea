//! The set of lines of a program, and what they share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::line::Line;
use crate::server::Server;

/// Lines that share a dial gate: no more than so many servers are started at once, and waiting for that is neither start
/// time nor failure.
#[derive(Clone, Debug)]
pub struct Rig {
    dial_gate: Arc<Semaphore>,
}

impl Rig {
    /// A rig that starts at most twice as many servers at once as there are cores.
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self::with_dials_at_once(cores * 2)
    }

    /// A rig that starts at most so many servers at once.
    pub fn with_dials_at_once(dials: usize) -> Self {
        Self { dial_gate: Arc::new(Semaphore::new(dials.clamp(1, Semaphore::MAX_PERMITS))) }
    }

    /// A line to a server, dialled at once.
    pub fn open(&self, server: Server) -> Line {
        let line = self.lazy(server);
        line.wake();
        line
    }

    /// A line to a server, dialled when somebody needs it.
    pub fn lazy(&self, server: Server) -> Line {
        Line::on(server, Arc::clone(&self.dial_gate), None)
    }

    pub(crate) fn dial_gate(&self) -> Arc<Semaphore> {
        Arc::clone(&self.dial_gate)
    }
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}
