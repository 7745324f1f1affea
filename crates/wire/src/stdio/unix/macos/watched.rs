//! A process that is watched by a kqueue, and known by when it started.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::unix::AsyncFd;

use super::kernel::Mac;
use super::queue;
use crate::readable::readable;
use crate::stdio::platform::Work;
use crate::stdio::unix::descent::{Family, Look, Process, Processes as _, Start};

/// How often in a row what is below it is stopped and listed again.
const STOPS: u32 = 32;

/// How often it is looked at while it is waited for.
const LOOK: Duration = Duration::from_secs(2);

/// A process that somebody else started.
pub(in super::super) struct Watched {
    pid: Pid,
    /// Unless it had ended when it was looked at first, or is another user's.
    start: Option<Start>,
    /// Whether it is known to have ended.
    ended: AtomicBool,
    queue: Option<AsyncFd<OwnedFd>>,
}

impl Watched {
    /// Of a process whose number is its own now.
    pub(in super::super) fn of(pid: Pid) -> Self {
        let look = Mac.look(pid);
        let start = match look {
            Look::Lives { start, .. } => Some(start),
            Look::Gone | Look::Others => None,
        };
        let (has_ended, queue) = match queue::of_exit(pid) {
            Ok(Some(queue)) => (look == Look::Gone, readable(queue)),
            Ok(None) => (true, None),
            Err(_) => (look == Look::Gone, None),
        };
        Self { pid, start, ended: AtomicBool::new(has_ended), queue }
    }

    pub(in super::super) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns when it has ended.
    pub(in super::super) async fn exited(&self) {
        // One that is on its way out when it is added to a queue may never be told of: so it is looked at too.
        while !self.has_exited() {
            let _ = tokio::time::timeout(LOOK, self.told()).await;
        }
    }

    /// Returns when the queue tells that it has ended.
    async fn told(&self) {
        // Nobody takes the event from the queue, so it can be read from then on.
        if let Some(queue) = &self.queue
            && let Ok(mut ended) = queue.readable().await
        {
            self.ended.store(true, Ordering::Release);
            return ended.retain_ready();
        }
        std::future::pending::<()>().await;
    }

    pub(in super::super) fn has_exited(&self) -> bool {
        self.ended.load(Ordering::Acquire) || Mac.look(self.pid).is_end_of(self.start)
    }

    /// What it does is not looked at here.
    pub(in super::super) const fn work(&self) -> Option<Work> {
        let _ = self;
        None
    }

    /// Kills what is below it, whatever group or session that is in. It is stopped meanwhile, so that nothing new comes.
    pub(in super::super) fn kill_below(&self) {
        let Some(start) = self.start else { return };
        // Whoever waits for it now is not us: its group is named only by `clear_group`.
        let mut family = Family::of(self.pid, Some(start), false);
        family.learn(&mut Mac);
        for _ in 0..STOPS {
            if !family.stop(&mut Mac) {
                break;
            }
        }
        family.kill(&mut Mac);
    }

    /// Kills it; whether it was there. Another user's cannot be killed, and is there: its place must not be taken.
    pub(in super::super) fn kill(&self) -> bool {
        if let Some(start) = self.start {
            Mac.signal(Process { pid: self.pid, start }, Signal::KILL);
        }
        !self.has_exited()
    }
}
