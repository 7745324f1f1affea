//! Access lists, times, jobs.

#![allow(
    unsafe_code,
    reason = "the handle of a child is borrowed from the runtime, which has it as a raw one only"
)]

use std::fs::{DirEntry, Metadata};
use std::io;
use std::os::windows::fs::MetadataExt as _;
use std::os::windows::io::BorrowedHandle;
use std::path::Path;
use std::time::{Duration, SystemTime};

use linetender_wire::stdio::Process;
use linetender_wire::windows;
pub(crate) use linetender_wire::windows::lives;
use tokio::process::Command;
use tokio::time::sleep;

/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// From the first day of this system's time to that of the others, in its ticks of 100 ns.
const EPOCH: u64 = 116_444_736_000_000_000;

/// Whether the disk has a trouble of the kind that passes: it is full, or somebody has the file open and shares it with nobody.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        Interrupted, OutOfMemory, QuotaExceeded, ReadOnlyFilesystem, ResourceBusy, StorageFull, TimedOut,
    };
    /// Too many open files; written to a faulty device; used by another process; locked by one; no resources.
    const PASSING: [i32; 5] = [4, 29, 32, 33, 1450];
    matches!(
        error.kind(),
        Interrupted
            | OutOfMemory
            | QuotaExceeded
            | ReadOnlyFilesystem
            | ResourceBusy
            | StorageFull
            | TimedOut
    ) || error.raw_os_error().is_some_and(|code| PASSING.contains(&code))
}

/// Names are in the journal of the file system, and folders cannot be synchronised.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(crate) const fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether this is a file that others can read.
pub(crate) fn is_open_to_others(entry: &DirEntry) -> bool {
    entry.metadata().is_ok_and(|about| about.is_file()) && windows::is_open_to_others(&entry.path())
}

/// What there is to see of a file without opening it, in ticks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sight {
    length: u64,
    created: u64,
    written: u64,
}

impl Sight {
    pub(crate) fn of(about: &Metadata) -> Self {
        Self { length: about.file_size(), created: about.creation_time(), written: about.last_write_time() }
    }

    /// When it changed last. A copy has the time of its original, and was created when it was made.
    pub(crate) fn changed(&self) -> SystemTime {
        let ticks = self.written.max(self.created).saturating_sub(EPOCH);
        SystemTime::UNIX_EPOCH + Duration::from_micros(ticks / 10)
    }

    #[cfg(test)]
    pub(crate) const fn changed_at(second: u64) -> Self {
        Self { length: 3, created: EPOCH, written: EPOCH + second * 10_000_000 }
    }
}

/// The job of a command, until it was killed.
pub(crate) struct Group {
    job: Option<windows::Group>,
    pid: Option<u32>,
}

impl Group {
    /// Starts a command in a job of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Process, Self)> {
        let child = Process::spawn(command.creation_flags(windows::Group::SUSPENDED).kill_on_drop(true))?;
        let Some(handle) = child.raw_handle() else { return Ok((child, Self { job: None, pid: None })) };
        // SAFETY: the child has it open, and is not dropped here.
        let job = windows::Group::begin(unsafe { BorrowedHandle::borrow_raw(handle) })?;
        let group = Self { job: Some(job), pid: child.id() };
        Ok((child, group))
    }

    /// Waits for the end of the command itself. Its number stays its own as long as its handle is open.
    pub(crate) async fn leader_ended(&self) {
        let Some(pid) = self.pid.filter(|_| self.job.is_some()) else { return };
        while lives(pid) {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn kill(&mut self) {
        drop(self.job.take());
    }
}
