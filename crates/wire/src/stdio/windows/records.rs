//! Where records are kept that outlive this process, and only this user reads.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::windows;

/// The folder for records of containers.
#[expect(clippy::disallowed_methods, reason = "a program without configuration finds it too")]
pub(in crate::stdio) fn record_folder() -> Option<PathBuf> {
    let local = std::env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(local.join("linetender").join("containers"))
}

/// Makes a folder that is this user's alone, or takes one that is there: it is below the user's own.
pub(in crate::stdio) fn make_private(folder: &Path) -> io::Result<()> {
    windows::create_folder(folder)
}

/// Makes a file that only this user reads, and that was not there.
pub(in crate::stdio) fn create_private(path: &Path) -> io::Result<File> {
    windows::create_new(path)
}

/// Whether two files are one. A file that is open here cannot be replaced.
pub(in crate::stdio) const fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}
