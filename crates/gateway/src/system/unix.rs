//! Numbers of users, modes, inodes.

mod table;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

pub(crate) use table::connected_from;

/// The file that says which names there are.
const PASSWD: &str = "/etc/passwd";

/// The user that we run as.
pub(crate) fn ourselves() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user that started us.
pub(crate) fn acts_for() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The number of a user.
///
/// # Errors
/// A name that this machine does not know.
pub(crate) fn user_called(name: &str) -> Result<u32, String> {
    let passwd = fs::read_to_string(PASSWD).unwrap_or_default();
    uid_of(name, &passwd)
        .ok_or_else(|| format!("no user `{name}` in {PASSWD}; name the user by its uid (`id -u {name}`)"))
}

/// `name:password:uid:…`
fn uid_of(name: &str, passwd: &str) -> Option<u32> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        fields.nth(1)?.parse().ok()
    })
}

/// In a user namespace that does not have all users, those that it lacks are all shown under one number.
pub(crate) fn unmapped_user() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if map.split_ascii_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    Some(number.and_then(|number| number.trim().parse().ok()).unwrap_or(65_534))
}

/// Which file it is, and when it changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    size: u64,
    /// The time of its last change of any kind: also when it was moved to its place, or its mode was mended.
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(about: &Metadata) -> Self {
        let (file, changed) = ((about.dev(), about.ino()), (about.ctime(), about.ctime_nsec()));
        Self { file, size: about.size(), changed }
    }
}

/// Opens a file to be read. Nothing but a file is waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// If every user of this machine can read this file: how that is seen, and what to run.
pub(crate) fn too_open(path: &Path, about: &Metadata) -> Option<(String, String)> {
    let mode = about.mode();
    (mode & 0o007 != 0)
        .then(|| (format!("mode {:04o}", mode & 0o7777), format!("chmod o= {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::uid_of;

    #[test]
    fn a_name_is_looked_up() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nalice:x:1001:1001::/home/alice:/bin/sh\n";
        assert_eq!(uid_of("alice", passwd), Some(1001));
        assert_eq!(uid_of("ali", passwd), None);
    }
}
