//! Owners and modes.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// Writes a new file that has the mode, the owner and the group of another.
pub(super) fn write_like(mut file: File, _: &Path, like: &Path, text: &[u8]) -> io::Result<()> {
    let like = fs::metadata(like)?;
    own_like(&file, &like)?;
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))?;
    file.write_all(text)?;
    file.sync_all()
}

/// A name is on disk when its folder is.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Gives a file the owner and the group of another.
fn own_like(file: &File, like: &fs::Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(file, Some(like.uid()), Some(like.gid())).map_err(|error| {
        let (uid, gid) = (like.uid(), like.gid());
        io::Error::new(error.kind(), format!("cannot set its owner {uid} and group {gid}: {error}"))
    })
}
