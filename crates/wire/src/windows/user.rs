//! Users, by the numbers that this system gives them.

#![allow(unsafe_code, reason = "tokens and their users have no safe wrapper; every handle is owned at once")]

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_INSUFFICIENT_BUFFER, HANDLE, LocalFree, WAIT_TIMEOUT};
use windows_sys::Win32::Security::Authorization::ConvertSidToStringSidW;
use windows_sys::Win32::Security::{GetTokenInformation, PSID, TOKEN_QUERY, TOKEN_USER, TokenUser};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};

/// The longest text of a number, and more than any has.
const LONGEST: usize = 256;

/// The number of a user, as text: `S-1-5-21-…`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sid(String);

impl Sid {
    /// # Safety
    /// There is a whole number at this place.
    pub(super) unsafe fn of(sid: PSID) -> io::Result<Self> {
        let mut text = null_mut();
        // SAFETY: there is a number, and room for a pointer.
        if unsafe { ConvertSidToStringSidW(sid, &raw mut text) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the text ends with a zero; it is freed as what the system allocated for us is, and not used after that.
        let sid = unsafe {
            let length = (0..LONGEST).find(|at| *text.add(*at) == 0).unwrap_or_default();
            let sid = String::from_utf16_lossy(std::slice::from_raw_parts(text, length));
            LocalFree(text.cast());
            sid
        };
        if sid.is_empty() { Err(io::Error::other("this user has no number")) } else { Ok(Self(sid)) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its last part, which tells users of one machine apart.
    pub fn last_part(&self) -> u32 {
        self.0.rsplit('-').next().and_then(|part| part.parse().ok()).unwrap_or_default()
    }
}

/// The user that we run as.
///
/// # Errors
/// If the system does not say.
pub fn this_user() -> io::Result<Sid> {
    // SAFETY: the handle of the own process is always open.
    user_of(unsafe { GetCurrentProcess() })
}

/// The user that a process runs as.
///
/// # Errors
/// If there is no such process, or we may not look at it.
pub fn process_user(pid: u32) -> io::Result<Sid> {
    user_of(open(pid, PROCESS_QUERY_LIMITED_INFORMATION)?.as_raw_handle())
}

/// Whether there is a process of this number. One that we may not look at lives.
pub fn lives(pid: u32) -> bool {
    match open(pid, PROCESS_SYNCHRONIZE) {
        // SAFETY: the handle is open.
        Ok(process) => unsafe { WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_TIMEOUT },
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

fn open(pid: u32, access: u32) -> io::Result<OwnedHandle> {
    // SAFETY: it takes numbers.
    let process = unsafe { OpenProcess(access, 0, pid) };
    if process.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a new handle, and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(process) })
}

fn user_of(process: HANDLE) -> io::Result<Sid> {
    let mut token = null_mut();
    // SAFETY: the handle is open, and there is room for another.
    if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a new handle, and nobody else's.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut size = 0;
    // SAFETY: this only asks how much room is needed.
    unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, null_mut(), 0, &raw mut size) };
    let error = io::Error::last_os_error();
    if error.raw_os_error() != Some(ERROR_INSUFFICIENT_BUFFER.cast_signed()) {
        return Err(error);
    }
    // As wide as a pointer, since it begins with one.
    let mut room = vec![0_usize; (size as usize).div_ceil(size_of::<usize>())];
    // SAFETY: there is as much room as was asked for.
    let told = unsafe {
        GetTokenInformation(token.as_raw_handle(), TokenUser, room.as_mut_ptr().cast(), size, &raw mut size)
    };
    if told == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system filled it with this structure, and it is aligned for one.
    let user = unsafe { &*room.as_ptr().cast::<TOKEN_USER>() };
    // SAFETY: the number lies in `room`.
    unsafe { Sid::of(user.User.Sid) }
}

#[cfg(test)]
mod tests {
    use super::{lives, process_user, this_user};

    #[test]
    fn this_user_is_the_one_of_this_process() {
        let user = this_user().unwrap();
        assert!(user.as_str().starts_with("S-1-"), "{user:?}");
        assert_eq!(process_user(std::process::id()).unwrap(), user);
        assert!(lives(std::process::id()));
        // Numbers of processes are divisible by four.
        assert!(!lives(1) && process_user(1).is_err());
    }
}
