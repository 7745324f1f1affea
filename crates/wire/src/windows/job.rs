//! A Job Object: a server or another command, everything that it starts, and a handle whose end is theirs.

#![allow(
    unsafe_code,
    reason = "jobs have no safe wrapper; every call here takes handles that are owned or borrowed"
)]

use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle as _, OwnedHandle, RawHandle};
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{CREATE_SUSPENDED, TerminateProcess};

/// The status of a process that we ended: no program's own (`LT`, with the bits of an error that Microsoft leaves to others). The end
/// of the job's handle would give it 0, as if it had ended well.
pub(crate) const KILLED: u32 = 0xe000_4c54;

/// Between two looks at a job that was ended.
const LOOK: Duration = Duration::from_millis(2);

/// A job, which ends with this handle.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl AsRawHandle for Job {
    fn as_raw_handle(&self) -> RawHandle {
        self.0.as_raw_handle()
    }
}

impl Job {
    /// How long whatever is in it may take to be gone once it was ended. A process that is stuck in a driver ends when the driver lets
    /// go of it, and the line must come back all the same.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

    /// An empty one. Nothing that is in it gets out (no limit allows a breakaway), and nothing that crashes in it waits for somebody
    /// to look at a dialog.
    ///
    /// # Errors
    /// If the system has none to give.
    pub fn new() -> io::Result<Self> {
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

    /// Whether a process is in it.
    pub fn has(&self, process: BorrowedHandle<'_>) -> bool {
        let mut is_in = 0;
        // SAFETY: both handles are open, and there is room for the answer.
        let told = unsafe { IsProcessInJob(process.as_raw_handle(), self.0.as_raw_handle(), &raw mut is_in) };
        told != 0 && is_in != 0
    }

    /// Takes a process in, and whatever it starts from now on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn take(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        // SAFETY: both handles are open.
        match unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Ends everything in it.
    pub fn end(&self) {
        // SAFETY: the handle is open. If it fails, everything in it has ended.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), KILLED) };
    }

    /// Ends everything in it, and returns when that is gone, or as good as that.
    pub async fn clear(&self) {
        let cleared = async {
            loop {
                self.end();
                if self.is_empty() {
                    return;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        // By the clock: a short sleep takes several times as long on this system.
        let _ = tokio::time::timeout(Self::PATIENCE, cleared).await;
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

/// A command of ours in a job, with everything that it starts. It ends when this is dropped.
#[derive(Debug)]
pub struct Group(Job);

impl Group {
    /// Takes a process that was created with [`SUSPENDED`](Self::SUSPENDED), and lets it run.
    ///
    /// # Errors
    /// If the system refuses either. The process has then been ended.
    pub fn begin(process: BorrowedHandle<'_>) -> io::Result<Self> {
        let begun = Job::new().and_then(|job| {
            job.take(process)?;
            // SAFETY: the handle is open.
            if unsafe { NtResumeProcess(process.as_raw_handle()) } < 0 {
                return Err(io::Error::other("the process cannot be resumed"));
            }
            Ok(Self(job))
        });
        if begun.is_err() {
            // SAFETY: the handle is open.
            unsafe { TerminateProcess(process.as_raw_handle(), KILLED) };
        }
        begun
    }

    /// How the process has to be created: it does not run before it is in its job.
    pub const SUSPENDED: u32 = CREATE_SUSPENDED;

    /// Ends everything in it.
    pub fn kill(&self) {
        self.0.end();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.0.end();
    }
}

// Not in the documentation, and in every debugger: the handle of a process' first thread is not handed out by the standard library.
#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtResumeProcess(process: HANDLE) -> i32;
}
