//! Where a process that somebody else started cannot be watched: its group is all there is.

use rustix::process::Pid;

use crate::stdio::platform::Work;

/// A process that somebody else started.
pub(super) struct Watched {
    pid: Pid,
}

impl Watched {
    pub(super) const fn of(pid: Pid) -> Self {
        Self { pid }
    }

    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    #[expect(clippy::unused_async, reason = "elsewhere it is waited for")]
    pub(super) async fn exited(&self) {}

    pub(super) const fn has_exited(&self) -> bool {
        let _ = self;
        false
    }

    pub(super) const fn work(&self) -> Option<Work> {
        let _ = self;
        None
    }

    pub(super) const fn kill_below(&self) {
        let _ = self;
    }

    pub(super) const fn kill(&self) -> bool {
        let _ = self;
        false
    }
}
