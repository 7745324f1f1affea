//! Who may open a thing: this user, and nobody else.

#![allow(unsafe_code, reason = "security descriptors have no safe wrapper")]

use std::io;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};

use super::user::this_user;

/// What kind of thing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Thing {
    /// A file.
    File,
    /// A folder, and whatever is made in it.
    Folder,
    /// A named pipe. Without this everybody may read from it.
    Pipe,
}

/// A descriptor that admits this user alone, and inherits nothing. An administrator can always take a thing over.
#[derive(Debug)]
pub struct OnlyUser(PSECURITY_DESCRIPTOR);

impl OnlyUser {
    /// For a thing of this kind.
    ///
    /// # Errors
    /// If the system does not say who this user is.
    pub fn of(thing: Thing) -> io::Result<Self> {
        let user = this_user()?;
        let user = user.as_str();
        // Not the thing's owner (`OW`): what an elevated process makes is owned by all administrators, unless that is said. Of a pipe it
        // is, since whoever connects looks whose it is.
        let text = match thing {
            Thing::File => format!("D:P(A;;FA;;;{user})"),
            Thing::Folder => format!("D:P(A;OICI;FA;;;{user})"),
            Thing::Pipe => format!("O:{user}D:P(A;;GA;;;{user})"),
        };
        let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
        let mut descriptor = null_mut();
        // SAFETY: the text ends with a zero, there is room for the pointer, and nobody wants the length.
        let made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                null_mut(),
            )
        };
        if made == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(descriptor)) }
    }

    /// As the calls that make things want it, for as long as this lives. Nobody inherits the handle.
    pub fn attributes(&self) -> SECURITY_ATTRIBUTES {
        #[expect(clippy::cast_possible_truncation, reason = "structures of the system are small")]
        let length = size_of::<SECURITY_ATTRIBUTES>() as u32;
        SECURITY_ATTRIBUTES { nLength: length, lpSecurityDescriptor: self.0, bInheritHandle: 0 }
    }
}

impl Drop for OnlyUser {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for us to free.
        unsafe { LocalFree(self.0) };
    }
}
