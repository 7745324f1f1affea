//! A process of this user's that is no child of ours, by its number and when it started.

use rustix::process::{Pid, Signal};

use super::calls;
use super::kernel::Mac;
use crate::stdio::unix::descent::{Look, Process, Processes as _};

/// A process that is not mistaken for another which gets its number later.
#[derive(Debug)]
pub struct Named(Process);

impl Named {
    /// The process that has this number now; `None` if there is none, or it is another user's.
    pub fn of(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        match Mac.look(pid) {
            Look::Lives { start, .. } => Some(Self(Process { pid, start })),
            Look::Gone | Look::Others => None,
        }
    }

    /// Whether it lives.
    pub fn lives(&self) -> bool {
        !Mac.look(self.0.pid).is_end_of(Some(self.0.start))
    }

    /// Whether it was stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        calls::is_stopped(self.0.pid) && self.lives()
    }

    /// Kills it, if it is still there.
    pub fn kill(&self) {
        Mac.signal(self.0, Signal::KILL);
    }
}
