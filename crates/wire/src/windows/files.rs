//! Files and folders that are this user's alone from the moment they are made.

#![allow(
    unsafe_code,
    reason = "the standard library makes no file with a descriptor; handles are owned at once"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _};
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_SHARING_VIOLATION, GENERIC_READ, GENERIC_WRITE, HANDLE, INVALID_HANDLE_VALUE,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, DELETE, FILE_APPEND_DATA, FILE_ATTRIBUTE_NORMAL,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_WRITE, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FILE_WRITE_DATA, OPEN_ALWAYS, ReOpenFile,
};

use super::private::{OnlyUser, Thing};
use super::wide::wide;

/// Others may do with it what they like meanwhile.
const SHARED: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// Between two tries to move a file.
const PAUSES: [Duration; 8] = {
    let millis = Duration::from_millis;
    [millis(5), millis(10), millis(20), millis(40), millis(80), millis(100), millis(100), millis(100)]
};

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

/// Makes a file that was opened to be appended to shorter. That takes a right which such a file lacks, so it is opened once more.
///
/// # Errors
/// If it cannot be.
pub fn cut(file: &File, length: u64) -> io::Result<()> {
    // SAFETY: the handle is open.
    let again = unsafe { ReOpenFile(file.as_raw_handle(), GENERIC_WRITE, SHARED, 0) };
    owned(again)?.set_len(length)
}

/// Whether a file can be moved now: somebody who has it open may not let it go, as editors and scanners do not. Nothing is there: it can.
///
/// # Errors
/// If that cannot be told.
pub fn can_be_moved(path: &Path) -> io::Result<bool> {
    let opened = OpenOptions::new().access_mode(DELETE).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path);
    match opened {
        Err(error) if is_held(&error) => Ok(false),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(true),
    }
}

/// Moves a file to a place, where another may be. Whoever has that one open for a moment is waited for: scanners look at every file
/// that was written. Takes half a second at most, and is not for a thread that others wait for.
///
/// # Errors
/// If it cannot be moved.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    for pause in PAUSES {
        match std::fs::rename(from, to) {
            // Of a file that is held the system says either.
            Err(error) if is_held(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            renamed => return renamed,
        }
        #[expect(clippy::disallowed_methods, reason = "nothing tells when somebody else closes a file")]
        std::thread::sleep(pause);
    }
    std::fs::rename(from, to)
}

fn is_held(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed())
}

fn open(path: &Path, access: u32, how: u32) -> io::Result<File> {
    let descriptor = OnlyUser::of(Thing::File)?;
    let (name, attributes) = (wide(path.as_os_str())?, descriptor.attributes());
    // SAFETY: the name ends with a zero, and both outlive the call.
    let handle = unsafe {
        CreateFileW(
            name.as_ptr(),
            access,
            SHARED,
            &raw const attributes,
            how,
            FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT,
            null_mut(),
        )
    };
    owned(handle)
}

fn owned(handle: HANDLE) -> io::Result<File> {
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a new handle, and nobody else's.
    Ok(unsafe { File::from_raw_handle(handle) })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::{Read as _, Write as _};
    use std::os::windows::fs::OpenOptionsExt as _;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use super::{FILE_SHARE_READ, can_be_moved, create_folder, create_new, cut, open_append, rename};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linetender {name} é {}", std::process::id()));
            create_folder(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// As scanners and editors open files: others may read it, and nobody may move it.
    fn held(path: &Path) -> File {
        OpenOptions::new().read(true).share_mode(FILE_SHARE_READ).open(path).unwrap()
    }

    #[test]
    fn a_file_is_made_once_and_appended_to() {
        let folder = Folder::new("own");
        let within = folder.0.join("a").join("b");
        create_folder(&within).unwrap();
        create_folder(&within).unwrap();
        let path = within.join("file");
        create_new(&path).unwrap().write_all(b"one").unwrap();
        assert!(create_new(&path).is_err());
        open_append(&path).unwrap().write_all(b" two").unwrap();
        let mut text = String::new();
        open_append(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
    }

    #[test]
    fn a_file_that_is_appended_to_can_be_cut_and_goes_on_at_its_end() {
        let folder = Folder::new("cut");
        let path = folder.0.join("file");
        let mut file = open_append(&path).unwrap();
        file.write_all(b"whole half").unwrap();
        cut(&file, 5).unwrap();
        file.write_all(b" next").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole next");
    }

    #[test]
    fn a_file_that_somebody_has_open_for_a_moment_is_replaced() {
        let folder = Folder::new("replaced");
        let (new, place) = (folder.0.join("new"), folder.0.join("place"));
        std::fs::write(&new, "new").unwrap();
        std::fs::write(&place, "old").unwrap();
        let scanner = held(&place);
        let closes = std::thread::spawn(move || {
            #[expect(clippy::disallowed_methods, reason = "a scanner takes its time")]
            std::thread::sleep(Duration::from_millis(60));
            drop(scanner);
        });
        rename(&new, &place).unwrap();
        closes.join().unwrap();
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "new");
    }

    #[test]
    fn a_file_that_is_held_cannot_be_moved() {
        let folder = Folder::new("held");
        let path = folder.0.join("file");
        assert!(can_be_moved(&path).unwrap(), "nothing is there");
        let ours = open_append(&path).unwrap();
        assert!(can_be_moved(&path).unwrap());
        let file = OpenOptions::new().read(true).share_mode(3).open(&path).unwrap();
        assert!(!can_be_moved(&path).unwrap());
        drop((file, ours));
        assert!(can_be_moved(&path).unwrap());
    }
}
