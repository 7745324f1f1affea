//! Servers on Windows: each in a Job Object of its own, which is what the reaper is elsewhere.
//!
//! A job has the server and everything that it starts, and nothing gets out of it. Its only handle is ours, and nobody inherits it:
//! when this process ends, however it ends, the kernel closes the handle and kills what is in the job. So no process of ours is
//! needed between us and the server.
//!
//! What is lost beside Linux: nobody can tell what a dead server left unread in its stdin, so a call that was written and not
//! answered is unknown, never "not executed"; and the polite end has no SIGTERM, only Ctrl-Break where there is a console.

mod command_line;
mod down;
mod environment;
pub mod guard;
mod helper;
mod interpreter;
mod lifeline;
pub(super) mod orphans;
mod pipes;
mod process;
mod program;
pub mod reaper;
mod records;
mod server;
pub mod signals;
mod start;
mod up;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use windows_sys::Win32::Foundation as codes;
use windows_sys::Win32::Networking::WinSock;

pub(super) use helper::helper;
pub use lifeline::Lifeline;
pub(super) use records::{create_private, is_same, make_private, record_folder};
pub(super) use start::start;

/// Why a program cannot be started that the configuration names, beside what has a kind in the standard library.
pub(super) const NOT_RUNNABLE: [i32; 4] = [
    codes::ERROR_BAD_EXE_FORMAT.cast_signed(),
    codes::ERROR_EXE_MACHINE_TYPE_MISMATCH.cast_signed(),
    codes::ERROR_ELEVATION_REQUIRED.cast_signed(),
    codes::ERROR_FILENAME_EXCED_RANGE.cast_signed(),
];

/// This machine has no sockets, handles or memory left.
pub(crate) const EXHAUSTED: [i32; 5] = [
    WinSock::WSAEMFILE,
    WinSock::WSAENOBUFS,
    codes::ERROR_TOO_MANY_OPEN_FILES.cast_signed(),
    codes::ERROR_NOT_ENOUGH_MEMORY.cast_signed(),
    codes::ERROR_NO_SYSTEM_RESOURCES.cast_signed(),
];

/// A job spares nothing but what breaks away from it, and that is not looked for.
pub(super) const fn look(_: i32) -> Option<(u64, String, u64)> {
    None
}

/// Whether two variables of an environment are one: `Path` and `PATH` are.
pub(super) fn same_name(one: &OsStr, other: &OsStr) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Whether a process may run in this folder. Whoever may not is told so when the process is started.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(super) const fn may_enter(_: &Path) -> io::Result<()> {
    Ok(())
}

/// There is no limit to be raised: a process may have millions of handles.
pub const fn raise_descriptor_limit() {}
