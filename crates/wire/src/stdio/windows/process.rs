//! A process: how it is created, and how its end is noticed.

#![allow(
    unsafe_code,
    reason = "a process in a job, with three handles and no others, can only be created by a raw call"
)]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsHandle as _, AsRawHandle, BorrowedHandle, FromRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use tokio::sync::SetOnce;
use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent, GetConsoleCP};
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW,
    DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, INFINITE,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION, RegisterWaitForSingleObject, ResumeThread,
    STARTF_USESTDHANDLES, STARTUPINFOEXW, TerminateProcess, UnregisterWaitEx, UpdateProcThreadAttribute,
    WT_EXECUTEINWAITTHREAD, WT_EXECUTEONLYONCE, WaitForSingleObject,
};

use crate::windows::{Job, KILLED};

/// What is to be run, as the system wants it: each text with a zero behind it.
pub(super) struct Order {
    pub(super) program: Vec<u16>,
    pub(super) line: Vec<u16>,
    pub(super) env: Option<Vec<u16>>,
    pub(super) dir: Option<Vec<u16>>,
    pub(super) stdin: OwnedHandle,
    pub(super) stdout: OwnedHandle,
    pub(super) stderr: OwnedHandle,
}

/// A process that was created.
pub(super) struct Process {
    // Before the handle that it is about.
    end: End,
    handle: OwnedHandle,
    pid: u32,
    /// It shares our console, so that it can be asked to go.
    has_console: bool,
}

impl Process {
    /// Creates one, in this job from its first instruction on.
    pub(super) fn create(mut order: Order, job: &Job) -> io::Result<Self> {
        let handles = [&order.stdin, &order.stdout, &order.stderr].map(AsRawHandle::as_raw_handle);
        for handle in handles {
            // It is so for the moment only: whoever else starts a process just now, and lets it have all that can be inherited, would
            // hold the server's pipes open.
            // SAFETY: the handle is open.
            if unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) } == 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let jobs = [job.as_raw_handle()];
        let inherited = Attributes::of(&handles, &jobs)?;
        let mut startup = STARTUPINFOEXW { lpAttributeList: inherited.list(), ..Default::default() };
        #[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
        let size = size_of::<STARTUPINFOEXW>() as u32;
        startup.StartupInfo.cb = size;
        startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
        [startup.StartupInfo.hStdInput, startup.StartupInfo.hStdOutput, startup.StartupInfo.hStdError] =
            handles;
        // SAFETY: it takes nothing.
        let has_console = unsafe { GetConsoleCP() } != 0;
        // A server that shares our console opens no window, gets none of our Ctrl-C, and can be sent a Ctrl-Break.
        let group = if has_console { CREATE_NEW_PROCESS_GROUP } else { CREATE_NO_WINDOW };
        let mut made = PROCESS_INFORMATION::default();
        // SAFETY: every text ends with a zero and outlives the call, and so do the list of handles and the structures.
        let created = unsafe {
            CreateProcessW(
                order.program.as_ptr(),
                order.line.as_mut_ptr(),
                null(),
                null(),
                1,
                CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT | group,
                order.env.as_ref().map_or(null(), |env| env.as_ptr().cast()),
                order.dir.as_ref().map_or(null(), Vec::as_ptr),
                &raw const startup.StartupInfo,
                &raw mut made,
            )
        };
        if created == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: they are new handles, and nobody else's.
        let (handle, thread) = unsafe {
            (OwnedHandle::from_raw_handle(made.hProcess), OwnedHandle::from_raw_handle(made.hThread))
        };
        // Systems before Windows 10 do not create a process in a job.
        let taken = if job.has(handle.as_handle()) { Ok(()) } else { job.take(handle.as_handle()) };
        let prepared = taken.and_then(|()| End::of(handle.as_handle()));
        let end = prepared.and_then(|end| {
            // SAFETY: the handle is open.
            if unsafe { ResumeThread(thread.as_raw_handle()) } == u32::MAX {
                return Err(io::Error::last_os_error());
            }
            Ok(end)
        });
        match end {
            Ok(end) => Ok(Self { end, handle, pid: made.dwProcessId, has_console }),
            Err(error) => {
                // It has not run, and must not wait for ever to do so.
                // SAFETY: the handle is open.
                unsafe { TerminateProcess(handle.as_raw_handle(), KILLED) };
                Err(error)
            }
        }
    }

    /// Its number.
    pub(super) fn pid(&self) -> i32 {
        self.pid.cast_signed()
    }

    /// Whether it has ended.
    pub(super) fn has_exited(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(self.handle.as_raw_handle(), 0) == WAIT_OBJECT_0 }
    }

    /// Returns when it has ended.
    pub(super) async fn exited(&self) {
        self.end.told.wait().await;
    }

    /// Its status, once it has ended.
    pub(super) fn status(&self) -> u32 {
        let mut status = 0;
        // SAFETY: the handle is open, and there is room for the number.
        unsafe { GetExitCodeProcess(self.handle.as_raw_handle(), &raw mut status) };
        status
    }

    /// Asks it to go, where that can be asked.
    pub(super) fn ask(&self) {
        if self.has_console {
            // SAFETY: it takes numbers. The process leads a group of its own, by its own number.
            unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, self.pid) };
        }
    }
}

/// What a process inherits, and the job that it is created in: were it put there later, and we killed before that, it would wait for
/// ever to be resumed.
struct Attributes<'a> {
    memory: Vec<usize>,
    _of: [&'a [HANDLE]; 2],
}

impl<'a> Attributes<'a> {
    const COUNT: u32 = 2;

    fn of(handles: &'a [HANDLE], jobs: &'a [HANDLE]) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: this only asks how much room such a list takes.
        unsafe { InitializeProcThreadAttributeList(null_mut(), Self::COUNT, 0, &raw mut size) };
        let mut list = Self { memory: vec![0; size.div_ceil(size_of::<usize>())], _of: [handles, jobs] };
        let memory = list.memory.as_mut_ptr().cast();
        // SAFETY: there is as much room as was asked for.
        if unsafe { InitializeProcThreadAttributeList(memory, Self::COUNT, 0, &raw mut size) } == 0 {
            // Nothing to be deleted.
            list.memory.clear();
            return Err(io::Error::last_os_error());
        }
        list.add(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles)?;
        // A system that does not know it lets us put the process there.
        let _ = list.add(PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs);
        Ok(list)
    }

    fn add(&mut self, what: u32, of: &'a [HANDLE]) -> io::Result<()> {
        // SAFETY: the list was initialised, and what it is of outlives it.
        let updated = unsafe {
            UpdateProcThreadAttribute(
                self.list(),
                0,
                what as usize,
                of.as_ptr().cast(),
                size_of_val(of),
                null_mut(),
                null(),
            )
        };
        if updated == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn list(&self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.memory.as_ptr().cast_mut().cast()
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        if !self.memory.is_empty() {
            // SAFETY: it was initialised, and nobody uses it any more.
            unsafe { DeleteProcThreadAttributeList(self.list()) };
        }
    }
}

/// Tells when a process has ended. The system waits for it, for many at a time on one thread.
struct End {
    wait: HANDLE,
    told: Arc<SetOnce<()>>,
}

// SAFETY: the number of a wait belongs to no thread.
unsafe impl Send for End {}
// SAFETY: it is used only once, when the last owner drops it.
unsafe impl Sync for End {}

impl End {
    fn of(process: BorrowedHandle<'_>) -> io::Result<Self> {
        let mut end = Self { wait: null_mut(), told: Arc::new(SetOnce::new()) };
        // SAFETY: what the callback gets lives as long as this does, which ends the wait before it goes; and this goes before the
        // handle of the process is closed.
        let waits = unsafe {
            RegisterWaitForSingleObject(
                &raw mut end.wait,
                process.as_raw_handle(),
                Some(tell),
                Arc::as_ptr(&end.told).cast(),
                INFINITE,
                WT_EXECUTEINWAITTHREAD | WT_EXECUTEONLYONCE,
            )
        };
        if waits == 0 { Err(io::Error::last_os_error()) } else { Ok(end) }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.wait.is_null() {
            // SAFETY: it was registered, and is ended once. This returns when nobody is in the callback any more.
            unsafe { UnregisterWaitEx(self.wait, INVALID_HANDLE_VALUE) };
        }
    }
}

unsafe extern "system" fn tell(told: *mut c_void, _: bool) {
    // SAFETY: see above: it lives until the wait is ended.
    let told = unsafe { &*told.cast_const().cast::<SetOnce<()>>() };
    let _ = told.set(());
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Order, Process};
    use crate::stdio::windows::interpreter;
    use crate::stdio::windows::pipes::Pipe;
    use crate::windows::wide::wide;
    use crate::windows::{Job, KILLED};

    /// A process that waits for a command, which never comes: our ends of its pipes stay open, and nobody has them.
    pub(in crate::stdio::windows) fn waiting(job: &Job) -> Process {
        let (stdin, stdout, stderr) = (Pipe::down().unwrap(), Pipe::up().unwrap(), Pipe::up().unwrap());
        let program = wide(interpreter::path().unwrap().as_os_str()).unwrap();
        let order = Order {
            line: program.clone(),
            program,
            env: None,
            dir: None,
            stdin: stdin.theirs,
            stdout: stdout.theirs,
            stderr: stderr.theirs,
        };
        let process = Process::create(order, job).unwrap();
        std::mem::forget((stdin.ours, stdout.ours, stderr.ours));
        process
    }

    #[tokio::test]
    async fn a_process_that_is_ended_with_its_job_has_our_status() {
        let job = Job::new().unwrap();
        let process = waiting(&job);
        assert!(!process.has_exited() && process.pid() > 0);
        job.clear().await;
        process.exited().await;
        assert!(process.has_exited());
        assert_eq!(process.status(), KILLED);
    }
}
