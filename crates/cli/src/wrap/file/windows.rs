//! Access lists.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use linetender_holder::trusted::copy_access;

/// Writes a new file that has the access list of another.
pub(super) fn write_like(mut file: File, path: &Path, like: &Path, text: &[u8]) -> io::Result<()> {
    copy_access(like, path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// Names are in the journal of the file system, and folders cannot be synchronised.
#[expect(clippy::unnecessary_wraps, reason = "as elsewhere")]
pub(super) const fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
