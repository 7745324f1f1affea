//! A Job Object: the server, everything that it starts, and a handle whose end is theirs.

#![allow(
    unsafe_code,
    reason = "jobs have no safe wrapper; every call here takes handles that are owned or borrowed"
)]

use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};

/// The status of a process that we ended: no program's own (`LT`, with the bits of an error that Microsoft leaves to others). The end
/// of the job's handle would give it 0, as if it had ended well.
pub(super) const KILLED: u32 = 0xe000_4c54;

/// Between two looks at a job that was ended.
const LOOK: Duration = Duration::from_millis(2);

/// How often it is looked at. A process that is stuck in a driver ends when the driver lets go of it, and the line must come back all
/// the same.
const LOOKS: u32 = 5000;

/// A job, which ends with this handle.
pub(super) struct Job(OwnedHandle);

impl Job {
    /// An empty one. Nothing that is in it gets out (no limit allows a breakaway), and nothing that crashes in it waits for somebody
    /// to look at a dialog.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: neither attributes, so that nobody inherits the handle, nor a name.
        let handle = unsafe { CreateJobObjectW(null(), null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is a new handle, and nobody else's.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags =
            JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
        // SAFETY: the information is of the kind and size that are named.
        let set = unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_u32::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            )
        };
        if set == 0 { Err(io::Error::last_os_error()) } else { Ok(job) }
    }

    /// Takes a process in, and whatever it starts from now on.
    pub(super) fn take(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open.
        match unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Ends everything in it.
    pub(super) fn end(&self) {
        // SAFETY: the handle is open. If it fails, everything in it has ended.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), KILLED) };
    }

    /// Ends everything in it, and returns when that is gone, or as good as that.
    pub(super) async fn clear(&self) {
        for _ in 0..LOOKS {
            self.end();
            if self.is_empty() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn is_empty(&self) -> bool {
        let mut about = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        // SAFETY: there is room for information of the kind and size that are named, and nobody wants its length.
        let told = unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                (&raw mut about).cast(),
                size_of_u32::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>(),
                null_mut(),
            )
        };
        told != 0 && about.ActiveProcesses == 0
    }
}

/// Structures of the system are small.
#[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
const fn size_of_u32<T>() -> u32 {
    size_of::<T>() as u32
}
