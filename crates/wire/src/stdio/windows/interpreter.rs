//! Where `cmd.exe` is.

#![allow(unsafe_code, reason = "the folder of the system has no safe wrapper")]

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt as _;
use std::path::PathBuf;

use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;

/// The longest path of a folder that the system itself may be in.
const LONGEST: u32 = 260;

/// The system's own: not one that an environment or a folder on `PATH` puts in its place.
pub(super) fn path() -> io::Result<PathBuf> {
    let mut folder = [0; LONGEST as usize];
    // SAFETY: there is as much room as is said.
    let length = unsafe { GetSystemDirectoryW(folder.as_mut_ptr(), LONGEST) };
    match folder.get(..length as usize) {
        Some(folder @ [_, ..]) => Ok(PathBuf::from(OsString::from_wide(folder)).join("cmd.exe")),
        _ => Err(io::Error::last_os_error()),
    }
}
