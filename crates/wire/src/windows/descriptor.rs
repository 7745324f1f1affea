//! What the system tells of who may do what with a thing, and whose it is.

#![allow(unsafe_code, reason = "security descriptors have no safe wrapper; each is freed with its owner")]

use std::io;
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    GetNamedSecurityInfoW, GetSecurityInfo, SE_FILE_OBJECT, SE_KERNEL_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetSecurityDescriptorControl, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SE_DACL_PROTECTED,
    UNPROTECTED_DACL_SECURITY_INFORMATION,
};

use super::user::Sid;
use super::wide::wide;

/// What was told. Lists and owners lie in it, and go with it.
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for us to free.
        unsafe { LocalFree(self.0) };
    }
}

/// The access list of a file.
pub(super) struct AccessList {
    list: *mut ACL,
    of: Descriptor,
}

impl AccessList {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let name = wide(path.as_os_str())?;
        let (mut list, mut descriptor) = (null_mut(), null_mut());
        // SAFETY: the name ends with a zero, and there is room for both pointers.
        let code = unsafe {
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
        told(code)?;
        Ok(Self { list, of: Descriptor(descriptor) })
    }

    /// The list itself, for as long as this lives; null, if there is none, and everybody may do everything.
    pub(super) const fn list(&self) -> *const ACL {
        self.list
    }

    /// Gives this list to another file. One that inherits goes on to do so.
    pub(super) fn give_to(&self, path: &Path) -> io::Result<()> {
        let name = wide(path.as_os_str())?;
        let (mut control, mut revision) = (0, 0);
        // SAFETY: the descriptor is whole, and there is room for both numbers.
        if unsafe { GetSecurityDescriptorControl(self.of.0, &raw mut control, &raw mut revision) } == 0 {
            return Err(io::Error::last_os_error());
        }
        let inherits = if control & SE_DACL_PROTECTED == 0 {
            UNPROTECTED_DACL_SECURITY_INFORMATION
        } else {
            PROTECTED_DACL_SECURITY_INFORMATION
        };
        // SAFETY: the name ends with a zero, and the list lives as long as this.
        told(unsafe {
            SetNamedSecurityInfoW(
                name.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION | inherits,
                null_mut(),
                null_mut(),
                self.list,
                null(),
            )
        })
    }
}

/// Whose a pipe is: of the user who opened its first instance, at whichever end.
///
/// # Errors
/// If the system does not tell.
pub fn owner_of_pipe(pipe: BorrowedHandle<'_>) -> io::Result<Sid> {
    let (mut owner, mut descriptor): (PSID, PSECURITY_DESCRIPTOR) = (null_mut(), null_mut());
    // SAFETY: the handle is open, and there is room for both pointers.
    let code = unsafe {
        GetSecurityInfo(
            pipe.as_raw_handle(),
            SE_KERNEL_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &raw mut owner,
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut descriptor,
        )
    };
    told(code)?;
    let _of = Descriptor(descriptor);
    if owner.is_null() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it has no owner"));
    }
    // SAFETY: the number lies in the descriptor, which is freed after this.
    unsafe { Sid::of(owner) }
}

fn told(code: u32) -> io::Result<()> {
    if code == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(code.cast_signed())) }
}
