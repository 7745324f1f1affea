//! Modes, inodes, signals.

use std::fs::{DirEntry, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use linetender_wire::stdio::Process;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process, waitid};
use tokio::process::Command;
use tokio::time::sleep;

/// How often it is looked whether a command has ended: whoever waits for that in another way also reaps it.
const LOOK: Duration = Duration::from_millis(20);

/// What passes without anybody doing anything.
const PASSING: [Errno; 11] = [
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::ROFS,
    Errno::IO,
    Errno::STALE,
    Errno::TIMEDOUT,
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::BUSY,
    Errno::INTR,
];

/// Whether the disk has a trouble of the kind that passes.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| PASSING.contains(&errno))
}

/// A name is on disk when its folder is.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether there is a process of this number.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Whether this is a file that others can read.
pub(crate) fn is_open_to_others(entry: &DirEntry) -> bool {
    entry.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o077 != 0)
}

/// What there is to see of a file without reading it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sight {
    file: (u64, u64),
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Sight {
    pub(crate) fn of(about: &Metadata) -> Self {
        Self {
            file: (about.dev(), about.ino()),
            length: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    /// When it changed last, in whichever way; to the second.
    pub(crate) fn changed(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(self.changed.0).unwrap_or_default())
    }

    #[cfg(test)]
    pub(crate) const fn changed_at(second: i64) -> Self {
        Self { file: (1, 2), length: 3, modified: (50, 0), changed: (second, 999) }
    }
}

/// The process group of a command, until it was killed. That is done before its leader is reaped: its number is then nobody
/// else's.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// Starts a command in a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Process, Self)> {
        let child = Process::spawn(command.process_group(0).kill_on_drop(true))?;
        let group = Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        Ok((child, group))
    }

    /// Waits for the end of the command itself, and leaves it to be reaped.
    pub(crate) async fn leader_ended(&self) {
        let Some(leader) = self.0 else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while let Ok(None) = waitid(WaitId::Pid(leader), options) {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// At the limit, and when nobody waits for the command any more.
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
