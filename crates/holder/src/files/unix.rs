//! By device and inode.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

/// What a file is called by the system: device and inode.
pub(crate) type Number = (u64, u64);

/// The number of an open file.
pub(crate) fn number(file: &File) -> io::Result<Number> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

/// The number of the file that has this name now; a link counts as itself.
pub(crate) fn number_at(path: &Path) -> io::Result<Number> {
    std::fs::symlink_metadata(path).map(|about| (about.dev(), about.ino()))
}

/// Whether an open file still has a name.
pub(crate) fn is_named(file: &File) -> io::Result<bool> {
    file.metadata().map(|about| about.nlink() > 0)
}

/// Reads so much at this place.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(buffer, at)
}

/// Makes a file shorter that was opened to be appended to.
pub(crate) fn cut(file: &File, length: u64) -> io::Result<()> {
    file.set_len(length)
}

/// Whoever has a file open does not keep it from being moved.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(crate) const fn can_be_moved(_: &Path) -> io::Result<bool> {
    Ok(true)
}

/// A name is on disk when its folder is.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
