//! Who else can read a file, by its access list.

#![allow(unsafe_code, reason = "access lists have no safe wrapper")]

use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{GENERIC_ALL, GENERIC_READ};
use windows_sys::Win32::Security::{ACCESS_ALLOWED_ACE, ACL, GetAce};
use windows_sys::Win32::Storage::FileSystem::FILE_READ_DATA;

use super::descriptor::AccessList;
use super::user::{Sid, this_user};

/// Those who can read everything anyway: the system, administrators; and a file's owner, whoever that is.
const ANYWAY: [&str; 4] = ["S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4"];

/// The kind of an entry that allows something.
const ALLOWS: u8 = 0;

/// The entry is for what is made in a folder, not for itself.
const INHERIT_ONLY: u8 = 8;

/// Whether another user can read this file, by its access list. `false` if that cannot be told.
pub fn is_open_to_others(path: &Path) -> bool {
    let (Ok(list), Ok(user)) = (AccessList::of(path), this_user()) else { return false };
    // SAFETY: it is the system's, and lives until it was looked at.
    unsafe { others(list.list(), &user) }
}

/// Gives a file the access list of another.
///
/// # Errors
/// If the one cannot be read, or the other cannot be set.
pub fn copy_access(from: &Path, to: &Path) -> io::Result<()> {
    AccessList::of(from)?.give_to(to)
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
    use super::{copy_access, is_open_to_others};
    use crate::windows::create_new;

    #[test]
    fn what_we_make_is_ours_alone() {
        let path = std::env::temp_dir().join(format!("linetender-readers-{}", std::process::id()));
        let like = path.with_extension("like");
        for path in [&path, &like] {
            let _ = std::fs::remove_file(path);
            drop(create_new(path).unwrap());
        }
        let open = is_open_to_others(&path);
        // wine forgets that a list inherits nothing, so what it is afterwards is not looked at.
        let copied = copy_access(&like, &path);
        for path in [&path, &like] {
            std::fs::remove_file(path).unwrap();
        }
        copied.unwrap();
        assert!(!open);
        assert!(copy_access(&like, &path).is_err(), "neither is there");
    }
}
