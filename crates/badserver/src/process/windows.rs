//! Processes on Windows, by their numbers.

#![allow(
    unsafe_code,
    reason = "processes of others can only be reached by raw calls; every handle is owned at once"
)]

use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};

use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessHandleCount, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SUSPEND_RESUME, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

/// The status of a process that [`kill`] ended: the number of SIGKILL.
const KILLED: u32 = 9;

// Not in the documentation, and in every debugger: there is no other way to stop a whole process.
#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtSuspendProcess(process: HANDLE) -> i32;
    fn NtResumeProcess(process: HANDLE) -> i32;
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
        found
            .extend(all.iter().filter(|(pid, below)| *below == parent && *pid != parent).map(|(pid, _)| pid));
        looked += 1;
    }
    found.split_off(1).into_iter().map(u32::cast_signed).collect()
}

/// How many handles it has open.
pub fn descriptors(of: &str) -> usize {
    let pid = if of == "self" { std::process::id().cast_signed() } else { of.parse().unwrap_or(0) };
    let mut handles = 0;
    if let Some(process) = open(pid, PROCESS_QUERY_LIMITED_INFORMATION) {
        // SAFETY: the handle is open, and there is room for the number.
        unsafe { GetProcessHandleCount(process.as_raw_handle(), &raw mut handles) };
    }
    handles as usize
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
