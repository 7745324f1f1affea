//! What can be found of a server whose reaper is gone: its process, as the system lets us watch it, and its group.
//!
//! What has left the server's family is not found: who that was is what the reaper knew.

use std::pin::Pin;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::watched::Watched;
use crate::stdio::platform;

/// How often it is killed again and looked for.
const LOOK: Duration = Duration::from_millis(10);

/// After the server itself is gone, how often its group is looked for. A dead member whom nobody buries counts as one
/// for ever, but it holds no port and no lock.
const LOOKS: u32 = 200;

/// A server process that may have lost its reaper.
pub(super) struct Remains(Option<Watched>);

impl Remains {
    /// Of a server that just started: its number is not somebody else's yet.
    pub(super) fn of(pid: i32) -> Self {
        Self(Pid::from_raw(pid).map(Watched::of))
    }
}

impl platform::Found for Remains {
    fn pid(&self) -> Option<i32> {
        self.0.as_ref().map(|found| found.pid().as_raw_nonzero().get())
    }

    fn has_exited(&self) -> bool {
        self.0.as_ref().is_some_and(Watched::has_exited)
    }

    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Some(found) = &self.0 {
                found.exited().await;
            }
        })
    }

    fn work(&self) -> Option<platform::Work> {
        self.0.as_ref().and_then(Watched::work)
    }

    /// A process that cannot die keeps this waiting: its place must not be taken before.
    fn clear(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            let Some(found) = &self.0 else { return };
            found.kill_below();
            while found.kill() {
                tokio::time::sleep(LOOK).await;
            }
            clear_group(found.pid()).await;
        })
    }
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

/// The same, by when each of them started.
#[cfg(all(target_os = "macos", not(linetender_portable)))]
pub(super) async fn clear_session(leader: Pid) {
    use super::descent::Processes as _;
    for _ in 0..LOOKS {
        let left = super::macos::session(leader);
        if left.is_empty() {
            return;
        }
        for member in left {
            super::macos::Mac.signal(member, Signal::KILL);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Elsewhere a session cannot be listed.
#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
#[expect(clippy::unused_async, reason = "as on Linux")]
pub(super) async fn clear_session(_: Pid) {}
