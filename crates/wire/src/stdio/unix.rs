//! Servers on Unix: under a reaper where the kernel has what it needs (Linux, macOS), else in a process group that we watch ourselves.

mod descriptors;
pub mod guard;
mod handed;
mod lifeline;
mod local;
mod reaper_program;
mod records;
mod remains;
pub mod signals;
mod start;
mod stdin;
mod tree;

// What finds a server's tree: of these three blocks one holds, and everything else asks for the names in it.

// Linux: pidfds and subreapers.
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub(super) mod orphans;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod os;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub mod reaper;

// macOS: a kqueue and libproc.
#[cfg(all(target_os = "macos", not(linetender_portable)))]
mod macos;
#[cfg(all(target_os = "macos", not(linetender_portable)))]
pub use macos::reaper;
#[cfg(all(target_os = "macos", not(linetender_portable)))]
use macos::watched;

// Any other system, and one that `--cfg linetender_portable` makes look like another: nothing.
#[cfg(any(linetender_portable, not(any(target_os = "linux", target_os = "macos"))))]
#[path = "unix/no_reaper.rs"]
pub mod reaper;

// What two of them share.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
mod asked;
#[cfg(any(test, all(target_os = "macos", not(linetender_portable))))]
mod descent;
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(linetender_portable)))]
mod inherited;
#[cfg(any(linetender_portable, not(target_os = "linux")))]
#[path = "unix/no_orphans.rs"]
pub(super) mod orphans;
// A pidfd is there without a reaper too.
#[cfg(target_os = "linux")]
#[path = "unix/watched/pidfd.rs"]
mod watched;
#[cfg(all(not(target_os = "linux"), any(linetender_portable, not(target_os = "macos"))))]
#[path = "unix/watched/not.rs"]
mod watched;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::io::Errno;

pub use descriptors::raise_descriptor_limit;
pub use lifeline::Lifeline;
pub(super) use records::{create_private, is_same, make_private, record_folder};
pub(super) use start::{helper, start};

/// Why a program cannot be started that the configuration names, beside what has a kind in the standard library.
pub(super) const NOT_RUNNABLE: [i32; 4] = [
    Errno::NOEXEC.raw_os_error(),
    Errno::LOOP.raw_os_error(),
    Errno::NAMETOOLONG.raw_os_error(),
    Errno::TOOBIG.raw_os_error(),
];

/// This machine has no descriptors or memory left.
pub(crate) const EXHAUSTED: [i32; 4] = [
    Errno::MFILE.raw_os_error(),
    Errno::NFILE.raw_os_error(),
    Errno::NOBUFS.raw_os_error(),
    Errno::NOMEM.raw_os_error(),
];

/// What there is under a number: when it started, what it is called, and its memory.
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub(super) fn look(pid: i32) -> Option<(u64, String, u64)> {
    let pid = rustix::process::Pid::from_raw(pid)?;
    let process = os::look(pid)?;
    Some((process.start, os::name_of(pid)?, os::memory(pid).unwrap_or(0)))
}

/// Nothing is spared here.
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
pub(super) fn look(_: i32) -> Option<(u64, String, u64)> {
    None
}

/// Whether two variables of an environment are one.
pub(super) fn same_name(one: &OsStr, other: &OsStr) -> bool {
    one == other
}

/// Whether a process may run in this folder.
pub(super) fn may_enter(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK)?)
}
