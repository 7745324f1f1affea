//! What a process can do against its own servers, which run as the same user: it hides what it holds, and it is who their
//! orphans come to.
//!
//! Both change the whole process, so nothing here happens by itself. The `linetender` binary asks for both, and the reaper
//! hides too. A program that uses the library is changed only if it calls these functions.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

#[cfg(all(target_os = "macos", not(linetender_portable)))]
#[doc(hidden)]
pub use super::macos::Named;

/// What every reaper holds open.
static HELD: OnceLock<OwnedFd> = OnceLock::new();

/// Every reaper that is started from now on holds this open as long as it lives, and its server does not. With the descriptor of
/// a file lock, the lock is free when this process *and* all of its servers are gone. Of several calls the first counts.
pub fn let_reapers_hold(held: OwnedFd) {
    let _ = HELD.set(held);
}

pub(super) fn held_by_reapers() -> Option<&'static OwnedFd> {
    HELD.get()
}

/// Hides this process from others of the same user: they can neither trace it nor read its memory, environment and
/// descriptors in `/proc`. It leaves no core dumps then, and debuggers need root. Servers are not affected: the attribute
/// ends with `exec`.
///
/// Root can still look. Where the system knows no such attribute, nothing happens.
pub fn hide() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Makes this process the one that orphans come to whose reaper was killed by its own server, so that they are found and
/// killed with the rest of the tree. To be called before the first server is started.
///
/// For programs that start no children but through this crate: a child that came from elsewhere after this call may be taken
/// for such an orphan. Children that are there already are left alone.
pub fn adopt_orphans() {
    #[cfg(all(target_os = "linux", not(linetender_portable)))]
    super::orphans::adopt();
}

/// Closes what whoever started this program left open for it, beyond stdin, stdout and stderr. Only first thing in a program, before it
/// has opened anything itself.
pub fn close_inherited() {
    #[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
    super::inherited::close();
}
