//! Files and folders that are this user's alone from the moment they are made.

#![allow(
    unsafe_code,
    reason = "the standard library makes no file with a descriptor; handles are owned at once"
)]

use std::fs::File;
use std::io;
use std::os::windows::io::FromRawHandle as _;
use std::path::Path;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_APPEND_DATA, FILE_ATTRIBUTE_NORMAL,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_WRITE, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FILE_WRITE_DATA, OPEN_ALWAYS,
};

use super::private::{OnlyUser, Thing};
use super::wide::wide;

/// A new file, to be written; an error if something of this name is there.
///
/// # Errors
/// If it cannot be made.
pub fn create_new(path: &Path) -> io::Result<File> {
    open(path, GENERIC_WRITE, CREATE_NEW)
}

/// A file, to be read and appended to; made if it is not there. A link is opened itself, and not followed.
///
/// # Errors
/// If it cannot be opened or made.
pub fn open_append(path: &Path) -> io::Result<File> {
    // Without this right every write goes to the end.
    let appends = (FILE_GENERIC_WRITE | FILE_APPEND_DATA) & !FILE_WRITE_DATA;
    open(path, GENERIC_READ | appends, OPEN_ALWAYS)
}

/// Makes a folder, and those above it that are not there.
///
/// # Errors
/// If one of them cannot be made.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_folder(above)?;
    }
    let descriptor = OnlyUser::of(Thing::Folder)?;
    let (name, attributes) = (wide(path.as_os_str())?, descriptor.attributes());
    // SAFETY: the name ends with a zero, and both outlive the call.
    match unsafe { CreateDirectoryW(name.as_ptr(), &raw const attributes) } {
        0 => match io::Error::last_os_error() {
            // Another process was faster.
            error if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

fn open(path: &Path, access: u32, how: u32) -> io::Result<File> {
    let descriptor = OnlyUser::of(Thing::File)?;
    let (name, attributes) = (wide(path.as_os_str())?, descriptor.attributes());
    // SAFETY: the name ends with a zero, and both outlive the call.
    let handle = unsafe {
        CreateFileW(
            name.as_ptr(),
            access,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            &raw const attributes,
            how,
            FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT,
            null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a new handle, and nobody else's.
    Ok(unsafe { File::from_raw_handle(handle) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::{create_folder, create_new, open_append};

    #[test]
    fn a_file_is_made_once_and_appended_to() {
        let folder = std::env::temp_dir().join(format!("linetender own é {}", std::process::id()));
        let within = folder.join("a").join("b");
        create_folder(&within).unwrap();
        create_folder(&within).unwrap();
        let path = within.join("file");
        create_new(&path).unwrap().write_all(b"one").unwrap();
        assert!(create_new(&path).is_err());
        open_append(&path).unwrap().write_all(b" two").unwrap();
        let mut text = String::new();
        open_append(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
