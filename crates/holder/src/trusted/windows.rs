//! A file is trusted if it is what it should be, and no link.
//!
//! What is made here has an access list of this user alone. Whose a file is that is there already, and who may write to it, is not
//! looked at: what linetender keeps lies in the user's own folders, and a config file that is named elsewhere is taken as it is.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

pub use linetender_wire::windows::{copy_access, rename as replace};
use linetender_wire::windows::{create_folder, create_new, open_append};
use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT;

use super::Log;

/// Makes a folder that is this user's alone, or takes one that is there.
///
/// # Errors
/// If it cannot be made, or is a link.
pub fn folder(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    check_folder(path)
}

/// Checks a folder that is there.
///
/// # Errors
/// If it is none, or is a link.
pub fn check_folder(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { Ok(()) } else { Err(refused("is not a folder")) }
}

/// A file of ours, to be read: never through a link.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// A file of ours, to be appended to; made if it is not there.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn append(path: &Path) -> io::Result<File> {
    let file = open_append(path)?;
    check_file(&file.metadata()?)?;
    Ok(file)
}

/// A new file, that was not there before.
///
/// # Errors
/// If it cannot be made, or is there.
pub fn create(path: &Path) -> io::Result<File> {
    create_new(path)
}

/// A file that a user has named, to be read, and where it really is: links are followed.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn read_named(path: &Path) -> io::Result<(File, PathBuf)> {
    let path = plain(fs::canonicalize(path)?);
    Ok((read(&path)?, path))
}

/// A file that a user has named for a log.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn log(path: &Path) -> io::Result<Log> {
    append(path).map(Log::Open)
}

/// There are no FIFOs among the files of this system.
///
/// # Errors
/// Always.
pub fn fifo(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A path as people write it: `canonicalize` puts `\\?\` before it, which most programs do not expect. A long one needs it.
fn plain(path: PathBuf) -> PathBuf {
    const LONGEST: usize = 240;
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(text) if text.len() < LONGEST && text.as_bytes().get(1) == Some(&b':') => text.into(),
        _ => path,
    }
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).open(path)?;
    check_file(&file.metadata()?)?;
    Ok(file)
}

fn check_file(about: &Metadata) -> io::Result<()> {
    if about.is_symlink() {
        return Err(refused("is a symbolic link, which is not followed here"));
    }
    if about.is_file() { Ok(()) } else { Err(refused("is not a regular file")) }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
