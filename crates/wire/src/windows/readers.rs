//! Who else can read a file, by its access list.

#![allow(unsafe_code, reason = "access lists have no safe wrapper")]

use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GENERIC_ALL, GENERIC_READ, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    GetNamedSecurityInfoW, SE_FILE_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACL, DACL_SECURITY_INFORMATION, GetAce, GetSecurityDescriptorControl,
    PROTECTED_DACL_SECURITY_INFORMATION, SE_DACL_PROTECTED, UNPROTECTED_DACL_SECURITY_INFORMATION,
};
use windows_sys::Win32::Storage::FileSystem::FILE_READ_DATA;

use super::user::{Sid, this_user};
use super::wide::wide;

/// Those who can read everything anyway: the system, administrators; and a file's owner, whoever that is.
const ANYWAY: [&str; 4] = ["S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4"];

/// The kind of an entry that allows something.
const ALLOWS: u8 = 0;

/// The entry is for what is made in a folder, not for itself.
const INHERIT_ONLY: u8 = 8;

/// Whether another user can read this file, by its access list. `false` if that cannot be told.
pub fn is_open_to_others(path: &Path) -> bool {
    let (Ok(name), Ok(user)) = (wide(path.as_os_str()), this_user()) else { return false };
    let (mut list, mut descriptor) = (null_mut(), null_mut());
    // SAFETY: the name ends with a zero, and there is room for both pointers.
    let told = unsafe {
        GetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            null_mut(),
            null_mut(),
            &raw mut list,
            null_mut(),
            &raw mut descriptor,
        )
    };
    if told != ERROR_SUCCESS {
        return false;
    }
    // SAFETY: the list lies in the descriptor, which is freed after it was looked at.
    unsafe {
        let open = others(list, &user);
        LocalFree(descriptor);
        open
    }
}

/// Gives a file the access list of another.
///
/// # Errors
/// If the one cannot be read, or the other cannot be set.
pub fn copy_access(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (wide(from.as_os_str())?, wide(to.as_os_str())?);
    let (mut list, mut descriptor) = (null_mut(), null_mut());
    // SAFETY: the name ends with a zero, and there is room for both pointers.
    let told = unsafe {
        GetNamedSecurityInfoW(
            from.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            null_mut(),
            null_mut(),
            &raw mut list,
            null_mut(),
            &raw mut descriptor,
        )
    };
    if told != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(told.cast_signed()));
    }
    let (mut control, mut revision) = (0, 0);
    // SAFETY: the descriptor is whole, and there is room for both numbers; the list lies in it, and is used before it is freed.
    let set = unsafe {
        GetSecurityDescriptorControl(descriptor, &raw mut control, &raw mut revision);
        // One that inherits goes on to do so.
        let inherits = if control & SE_DACL_PROTECTED == 0 {
            UNPROTECTED_DACL_SECURITY_INFORMATION
        } else {
            PROTECTED_DACL_SECURITY_INFORMATION
        };
        let set = SetNamedSecurityInfoW(
            to.as_ptr(),
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION | inherits,
            null_mut(),
            null_mut(),
            list,
            null(),
        );
        LocalFree(descriptor);
        set
    };
    if set == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(set.cast_signed())) }
}

/// # Safety
/// The list is one of the system's, or there is none.
unsafe fn others(list: *const ACL, user: &Sid) -> bool {
    // A file without a list is everybody's.
    // SAFETY: it is not null there.
    let Some(count) = (unsafe { list.as_ref() }).map(|list| list.AceCount) else { return true };
    (0..u32::from(count)).any(|at| {
        let mut entry: *mut c_void = null_mut();
        // SAFETY: the list is whole, and there is room for the pointer.
        if unsafe { GetAce(list, at, &raw mut entry) } == 0 {
            return false;
        }
        // SAFETY: every entry begins with a header, and one that allows something is of this kind.
        let entry = unsafe { &*entry.cast::<ACCESS_ALLOWED_ACE>() };
        if entry.Header.AceType != ALLOWS
            || entry.Header.AceFlags & INHERIT_ONLY != 0
            || entry.Mask & (FILE_READ_DATA | GENERIC_READ | GENERIC_ALL) == 0
        {
            return false;
        }
        // SAFETY: the number of whoever is allowed begins there, and lies in the list.
        let who = unsafe { Sid::of((&raw const entry.SidStart).cast_mut().cast()) };
        who.is_ok_and(|who| who != *user && !ANYWAY.contains(&who.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::is_open_to_others;
    use crate::windows::create_new;

    #[test]
    fn what_we_make_is_ours_alone() {
        let path = std::env::temp_dir().join(format!("linetender-readers-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        drop(create_new(&path).unwrap());
        let open = is_open_to_others(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(!open);
    }
}
