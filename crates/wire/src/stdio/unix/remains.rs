//! What can be found of a server whose reaper is gone: its process, by pidfd, and its group.
//!
//! What has left the server's family is not found: who that was is what the reaper knew.

use std::pin::Pin;
use std::time::Duration;

use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;

#[cfg(target_os = "linux")]
use crate::readable::readable;
use crate::stdio::platform;

/// How often it is killed again and looked for.
const LOOK: Duration = Duration::from_millis(10);

/// After the server itself is gone, how often its group is looked for. A dead member whom nobody buries counts as one
/// for ever, but it holds no port and no lock.
const LOOKS: u32 = 200;

/// A server process that may have lost its reaper.
pub(super) struct Remains(Option<Watched>);

struct Watched {
    pid: Pid,
    #[cfg(target_os = "linux")]
    fd: Option<AsyncFd<OwnedFd>>,
}

impl Remains {
    /// Of a server that just started: its number is not somebody else's yet.
    pub(super) fn of(pid: i32) -> Self {
        Self(Pid::from_raw(pid).map(|pid| Watched {
            pid,
            #[cfg(target_os = "linux")]
            fd: pidfd(pid),
        }))
    }
}

impl platform::Found for Remains {
    fn pid(&self) -> Option<i32> {
        self.0.as_ref().map(|found| found.pid.as_raw_nonzero().get())
    }

    fn has_exited(&self) -> bool {
        self.0.as_ref().is_some_and(Watched::has_exited)
    }

    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            #[cfg(target_os = "linux")]
            if let Some(Watched { fd: Some(fd), .. }) = &self.0
                && let Ok(mut ended) = fd.readable().await
            {
                return ended.retain_ready();
            }
            std::future::pending::<()>().await;
        })
    }

    /// A process that cannot die keeps this waiting: its place must not be taken before.
    fn clear(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let Some(found) = &self.0 else { return };
            found.kill_below();
            while found.kill() {
                tokio::time::sleep(LOOK).await;
            }
            clear_group(found.pid).await;
        })
    }
}

/// A process to be waited for, where the kernel allows that.
#[cfg(target_os = "linux")]
fn pidfd(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    readable(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?)
}

/// Kills a group whose leader is gone, and returns when it is empty, or as good as that.
pub(super) async fn clear_group(group: Pid) {
    for _ in 0..LOOKS {
        if rustix::process::kill_process_group(group, Signal::KILL).is_err() {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Kills a session whose leader was a reaper, and returns when nobody living is left in it. Bounded: a process of another
/// user cannot be killed, and the line must come back all the same.
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub(super) async fn clear_session(leader: Pid) {
    for _ in 0..LOOKS {
        let left = super::os::session(leader);
        if left.is_empty() {
            return;
        }
        for member in left {
            let _ = rustix::process::kill_process(member, Signal::KILL);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// There are no reapers here.
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
pub(super) async fn clear_session(_: Pid) {}

impl Watched {
    /// Kills what is below it, whatever group or session that is in. It is stopped meanwhile, so that nothing new comes.
    ///
    /// It is looked at before that too: its reaper may still be on its way out, and the kernel then hangs up on a stopped
    /// group that nobody leads. The server dies of that at once, and with it goes the knowledge of what was below.
    #[cfg(target_os = "linux")]
    fn kill_below(&self) {
        let Some(fd) = &self.fd else { return };
        // Nothing is below the dead, and its number may be somebody else's.
        if self.has_exited() {
            return;
        }
        let mut below = descendants(self.pid, 0);
        if rustix::process::pidfd_send_signal(fd, Signal::STOP).is_ok() {
            below.extend(descendants(self.pid, 0));
        }
        for below in below {
            let _ = rustix::process::kill_process(below, Signal::KILL);
        }
    }

    #[cfg(not(target_os = "linux"))]
    const fn kill_below(&self) {}

    /// Kills it; whether it was there. Without a pidfd its group is all there is.
    #[cfg(target_os = "linux")]
    fn kill(&self) -> bool {
        let Some(fd) = &self.fd else { return false };
        let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
        !self.has_exited()
    }

    /// A pidfd is readable once its process has ended.
    #[cfg(target_os = "linux")]
    fn has_exited(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(fd) = &self.fd else { return false };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut fds, Some(&now)), Ok(0))
    }

    #[cfg(not(target_os = "linux"))]
    const fn kill(&self) -> bool {
        false
    }

    #[cfg(not(target_os = "linux"))]
    const fn has_exited(&self) -> bool {
        false
    }
}

/// Everything below a process, as deep as anybody nests.
#[cfg(target_os = "linux")]
fn descendants(of: Pid, depth: u32) -> Vec<Pid> {
    const DEEPEST: u32 = 32;
    let of = of.as_raw_nonzero();
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let listed = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let mut found = Vec::new();
    for children in listed {
        for child in children.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
            found.push(child);
            if depth < DEEPEST {
                found.extend(descendants(child, depth + 1));
            }
        }
    }
    found
}
