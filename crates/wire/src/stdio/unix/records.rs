//! Where records are kept that outlive this process, and only this user reads.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Below the user's folder, where state is kept.
const STATE: &str = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };

/// The folder for records of containers: among this user's state, or, for a program that knows of no user, among temporary files.
// XDG Base Directory Specification: "All paths set in these environment variables must be absolute."
#[expect(clippy::disallowed_methods, reason = "a program without configuration finds it too")]
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(in crate::stdio) fn record_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(STATE)));
    let user = rustix::process::geteuid().as_raw();
    // In a folder that others write to, only the last part of a path can be trusted.
    let otherwise = || std::env::temp_dir().join(format!("linetender-{user}-containers"));
    Some(state.map_or_else(otherwise, |state| state.join("linetender").join("containers")))
}

/// Makes a folder that is this user's alone, or takes one that is.
pub(in crate::stdio) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = fs::symlink_metadata(folder)?;
    let is_open_to_others = about.mode() & 0o077 != 0;
    if about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && !is_open_to_others {
        return Ok(());
    }
    let folder = folder.display();
    Err(io::Error::other(format!("{folder} is not a folder that only this user can read and write")))
}

/// Makes a file that only this user reads, and that was not there.
pub(in crate::stdio) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Whether two files are one.
pub(in crate::stdio) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
