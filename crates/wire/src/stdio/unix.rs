//! Servers on Unix: under a reaper where the kernel has what it needs (Linux), else in a process group that we watch ourselves.

mod descriptors;
pub mod guard;
mod handed;
mod lifeline;
mod local;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod orphans;
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[path = "unix/no_orphans.rs"]
mod orphans;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
mod os;
#[cfg(all(target_os = "linux", not(linetender_portable)))]
pub mod reaper;
#[cfg(not(all(target_os = "linux", not(linetender_portable))))]
#[path = "unix/no_reaper.rs"]
pub mod reaper;
mod reaper_program;
mod remains;
pub mod signals;
mod start;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::io::Errno;

pub use descriptors::raise_descriptor_limit;
pub use lifeline::Lifeline;
pub(super) use start::start;

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

/// Whether two variables of an environment are one.
pub(super) fn same_name(one: &OsStr, other: &OsStr) -> bool {
    one == other
}

/// Whether a process may run in this folder.
pub(super) fn may_enter(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK)?)
}
