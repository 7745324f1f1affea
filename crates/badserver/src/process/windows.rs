//! Processes on Windows, by their numbers.

#![allow(
    unsafe_code,
    reason = "processes of others can only be reached by raw calls; every handle is owned at once"
)]

use std::ffi::c_void;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

use windows_sys::Win32::Foundation::{FILETIME, HANDLE, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessHandleCount, GetProcessTimes, OpenProcess, PROCESS_QUERY_INFORMATION,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SUSPEND_RESUME, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    PROCESS_VM_READ, TerminateProcess, WaitForSingleObject,
};

/// Where the block of a process is that describes it, of that its parameters, and of these its environment: for 64 bits, and the same
/// since the first of them.
const PARAMETERS: usize = 0x20;
const ENVIRONMENT: usize = 0x80;

/// The longest environment that is looked through, in characters.
const LONGEST: usize = 64 * 1024;

/// The status of a process that [`kill`] ended: the number of SIGKILL.
const KILLED: u32 = 9;

// Not in the documentation, and in every debugger: there is no other way to stop a whole process, or to read its environment.
#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtSuspendProcess(process: HANDLE) -> i32;
    fn NtResumeProcess(process: HANDLE) -> i32;
    fn NtQuerySystemInformation(class: i32, into: *mut c_void, size: u32, told: *mut u32) -> i32;
    fn NtQueryInformationProcess(
        process: HANDLE,
        class: i32,
        into: *mut c_void,
        size: u32,
        told: *mut u32,
    ) -> i32;
}

/// Kills a process.
pub fn kill(pid: i32) {
    if let Some(process) = open(pid, PROCESS_TERMINATE) {
        // SAFETY: the handle is open.
        unsafe { TerminateProcess(process.as_raw_handle(), KILLED) };
    }
}

/// Stops a process, all threads of it.
pub fn stop(pid: i32) {
    if let Some(process) = open(pid, PROCESS_SUSPEND_RESUME) {
        // SAFETY: the handle is open.
        unsafe { NtSuspendProcess(process.as_raw_handle()) };
    }
}

/// Stops this process, all threads of it.
pub(crate) fn stop_this() {
    // SAFETY: the handle of the own process is always open.
    unsafe { NtSuspendProcess(GetCurrentProcess()) };
}

/// Lets a stopped process go on.
pub fn go_on(pid: i32) {
    if let Some(process) = open(pid, PROCESS_SUSPEND_RESUME) {
        // SAFETY: the handle is open.
        unsafe { NtResumeProcess(process.as_raw_handle()) };
    }
}

/// Asks a process to end, if it has our console and a group of its own. Whether it was.
pub fn ask_to_end(pid: i32) -> bool {
    // SAFETY: it takes numbers.
    unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, pid.cast_unsigned()) != 0 }
}

/// How much lies unread in the pipe to a process: nobody tells.
pub const fn unread(_: i32) -> u64 {
    0
}

/// Whether it has this in its environment, as `NAME=value`: wherever it went, it could not shake that off.
pub fn carries(pid: i32, mark: &str) -> bool {
    let mark: Vec<u16> = mark.encode_utf16().collect();
    environment(pid).unwrap_or_default().split(|unit| *unit == 0).any(|entry| entry == mark)
}

/// Everything that carries this mark and lives, whoever its parent is.
pub fn marked(mark: &str) -> Vec<i32> {
    let numbers = all().into_iter().map(|(pid, _)| pid.cast_signed());
    numbers.filter(|pid| carries(*pid, mark) && lives(*pid)).collect()
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let found = all().into_iter().find(|(found, _)| *found == pid.cast_unsigned());
    found.map(|(_, parent)| parent.cast_signed())
}

/// The environment of a process, with a zero behind each variable.
fn environment(pid: i32) -> Option<Vec<u16>> {
    let process = open(pid, PROCESS_QUERY_INFORMATION | PROCESS_VM_READ)?;
    // The second of these is where the block is that describes it.
    let mut about = [0_usize; 6];
    #[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
    let size = size_of_val(&about) as u32;
    let mut told = 0;
    // SAFETY: the handle is open, and there is room for what is told of this class.
    let code = unsafe {
        NtQueryInformationProcess(process.as_raw_handle(), 0, about.as_mut_ptr().cast(), size, &raw mut told)
    };
    if code < 0 {
        return None;
    }
    let [parameters] = look_into::<usize, 1>(&process, about[1].checked_add(PARAMETERS)?)?;
    let [mut at] = look_into::<usize, 1>(&process, parameters.checked_add(ENVIRONMENT)?)?;
    let mut found: Vec<u16> = Vec::new();
    // By small pieces: what is behind the end may not be there.
    while found.len() < LONGEST {
        let Some(piece) = look_into::<u16, 64>(&process, at) else { break };
        found.extend(piece);
        at = at.checked_add(size_of_val(&piece))?;
        // A variable without a name is the end.
        if let Some(end) = found.windows(2).position(|pair| pair == [0, 0]) {
            found.truncate(end);
            break;
        }
    }
    Some(found)
}

/// So much of the memory of a process.
fn look_into<T: Copy + Default, const N: usize>(process: &OwnedHandle, at: usize) -> Option<[T; N]> {
    let mut found = [T::default(); N];
    let mut read = 0;
    // SAFETY: the handle is open, the system checks the other's address, and there is as much room as is said.
    let done = unsafe {
        ReadProcessMemory(
            process.as_raw_handle(),
            at as *const c_void,
            found.as_mut_ptr().cast(),
            size_of_val(&found),
            &raw mut read,
        )
    };
    (done != 0 && read == size_of_val(&found)).then_some(found)
}

/// Whether a process lives.
pub fn lives(pid: i32) -> bool {
    open(pid, PROCESS_SYNCHRONIZE).is_some_and(|process| {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_TIMEOUT }
    })
}

/// Everything below a process.
pub fn descendants(of: &str) -> Vec<i32> {
    let of = if of == "self" { std::process::id() } else { of.parse().unwrap_or(0) };
    let (all, mut found) = (all(), vec![of]);
    let mut looked = 0;
    while let Some(parent) = found.get(looked).copied() {
        let below = all.iter().filter(|(pid, of)| *of == parent && *pid != parent && !found.contains(pid));
        // Numbers are used again: a child is younger than its parent.
        let below = below.filter(|(pid, _)| begun(*pid) >= begun(parent));
        let below: Vec<u32> = below.map(|(pid, _)| *pid).collect();
        found.extend(below);
        looked += 1;
    }
    found.split_off(1).into_iter().map(u32::cast_signed).collect()
}

/// When a process began, in the system's ticks; 0 if it is gone.
fn begun(pid: u32) -> u64 {
    let [mut begun, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    if let Some(process) = open(pid.cast_signed(), PROCESS_QUERY_LIMITED_INFORMATION) {
        // SAFETY: the handle is open, and there is room for four times.
        unsafe {
            GetProcessTimes(
                process.as_raw_handle(),
                &raw mut begun,
                &raw mut ended,
                &raw mut kernel,
                &raw mut user,
            )
        };
    }
    u64::from(begun.dwHighDateTime) << 32 | u64::from(begun.dwLowDateTime)
}

/// How many handles it has open.
pub fn descriptors(of: &str) -> usize {
    let pid = if of == "self" { std::process::id().cast_signed() } else { of.parse().unwrap_or(0) };
    let mut handles = 0;
    if let Some(process) = open(pid, PROCESS_QUERY_LIMITED_INFORMATION) {
        // SAFETY: the handle is open, and there is room for the number.
        unsafe { GetProcessHandleCount(process.as_raw_handle(), &raw mut handles) };
    }
    // wine does not count.
    if handles == 0 { listed(pid.cast_unsigned()).unwrap_or(0) } else { handles as usize }
}

/// How many of the handles of all processes are this one's. The list may grow while it is made.
fn listed(pid: u32) -> Option<usize> {
    /// Of every handle: the object, the process, its number, and more.
    const EXTENDED: i32 = 64;
    const TOO_SMALL: i32 = 0xc000_0004_u32.cast_signed();
    const WORDS: usize = 5;
    let mut list = vec![0_usize; 1 << 16];
    for _ in 0..8 {
        let size = u32::try_from(size_of_val(list.as_slice())).ok()?;
        let mut told = 0;
        // SAFETY: there is as much room as is said.
        match unsafe { NtQuerySystemInformation(EXTENDED, list.as_mut_ptr().cast(), size, &raw mut told) } {
            0.. => break,
            TOO_SMALL => list = vec![0; list.len() * 4],
            _ => return None,
        }
    }
    let (count, entries) = (*list.first()?, list.get(2..)?);
    Some(entries.chunks_exact(WORDS).take(count).filter(|entry| entry[1] == pid as usize).count())
}

/// Each process, and the number of the one that started it.
fn all() -> Vec<(u32, u32)> {
    // SAFETY: it takes numbers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return Vec::new();
    }
    // SAFETY: it is a new handle, and nobody else's.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    #[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut found = Vec::new();
    // SAFETY: the handle is open, and the entry says how large it is.
    let mut there = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while there != 0 {
        found.push((entry.th32ProcessID, entry.th32ParentProcessID));
        // SAFETY: as above.
        there = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    found
}

fn open(pid: i32, access: u32) -> Option<OwnedHandle> {
    // SAFETY: it takes numbers.
    let process = unsafe { OpenProcess(access, 0, pid.cast_unsigned()) };
    // SAFETY: it is a new handle, and nobody else's.
    (!process.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(process) })
}
