//! Files and folders that are this user's alone: what is written there others shall not read, and what others could have
//! put there is not believed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Makes a folder, or takes one that is there, if it is ours; nobody else can look into it then.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let about = fs::metadata(path)?;
    ours(about.uid())?;
    if about.mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// A file of ours, to be read: no link, no pipe that would wait for somebody, nothing of another's.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    ours(about.uid())?;
    if about.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// A new file, that was not there before.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn ours(owner: u32) -> io::Result<()> {
    if owner == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "owned by another user"))
    }
}
