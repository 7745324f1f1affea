//! By volume and index.

#![allow(unsafe_code, reason = "the number of a file has no safe wrapper yet")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

pub(crate) use linetender_wire::windows::{can_be_moved, cut};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_FLAG_OPEN_REPARSE_POINT, GetFileInformationByHandle,
};

/// What a file is called by the system: volume and index.
pub(crate) type Number = (u64, u64);

/// The number of an open file.
pub(crate) fn number(file: &File) -> io::Result<Number> {
    let about = about(file)?;
    let index = u64::from(about.nFileIndexHigh) << 32 | u64::from(about.nFileIndexLow);
    Ok((about.dwVolumeSerialNumber.into(), index))
}

/// The number of the file that has this name now; a link counts as itself.
pub(crate) fn number_at(path: &Path) -> io::Result<Number> {
    number(&OpenOptions::new().read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?)
}

/// Whether an open file still has a name.
pub(crate) fn is_named(file: &File) -> io::Result<bool> {
    about(file).map(|about| about.nNumberOfLinks > 0)
}

/// Reads so much at this place.
pub(crate) fn read_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.seek_read(buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (buffer, at) = (&mut buffer[read..], at + read as u64),
        }
    }
    Ok(())
}

fn about(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut about = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open, and there is room for what is told.
    match unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut about) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(about),
    }
}

/// Names are in the journal of the file system, and folders cannot be synchronised.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(crate) const fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
