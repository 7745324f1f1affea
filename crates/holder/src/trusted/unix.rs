//! A file is trusted if it belongs to this user or to root, others cannot write to it, and it is what it should be: no FIFO
//! that would wait for somebody, no link that another user has put there. If it is not, it is refused with the reason: its
//! mode is not changed, it is not read, and nothing is written to it.
//!
//! A group may write if it is the owner's own, which has the owner's number by convention. If root runs this by way of `sudo`,
//! the user who asked for that counts as root does.

use std::fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, StatVfsMountFlags};

use super::Log;

/// In a folder with this mode, only its owner can rename or delete a file.
const STICKY: u32 = 0o1000;

/// The most links that are followed from one file to the next.
const MOST_LINKS: usize = 16;

/// Makes a folder that is this user's alone, or takes one that is there.
///
/// # Errors
/// If it cannot be made, is not trusted, or is a link.
pub fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check_folder(path)
}

/// Checks a folder that is there.
///
/// # Errors
/// If it is not trusted, or is a link.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_dir() {
        return Err(refused(format!("{} instead of a folder", kind(about.file_type()))));
    }
    check_owner(&about)?;
    check_writers(&about)?;
    let within = fs::canonicalize(path)?;
    check_way(&within)
}

/// A file of ours, to be read: never through a link.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn read(path: &Path) -> io::Result<File> {
    let file = open(OpenOptions::new().read(true), path)?;
    check_file(&file.metadata()?)?;
    Ok(file)
}

/// A file of ours, to be appended to; made if it is not there.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn append(path: &Path) -> io::Result<File> {
    let file = open(OpenOptions::new().read(true).append(true).create(true).mode(0o600), path)?;
    check_file(&file.metadata()?)?;
    Ok(file)
}

/// A new file, that was not there before.
///
/// # Errors
/// If it cannot be made, or is there.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Puts a file into the place of another.
///
/// # Errors
/// If it cannot be moved there.
pub fn replace(new: &Path, place: &Path) -> io::Result<()> {
    fs::rename(new, place)
}

/// A file that a user has named, to be read, and where it really is: links are followed as long as nobody else could have put
/// them there, and nobody else may be able to put another file in its place.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn read_named(path: &Path) -> io::Result<(File, PathBuf)> {
    let path = resolve(path)?;
    let file = read(&path)?;
    check_way(&path)?;
    Ok((file, path))
}

/// A file that a user has named for a log: a file to append to, a device, or a FIFO of the user's own.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn log(path: &Path) -> io::Result<Log> {
    let path = resolve(path)?;
    if let Ok(about) = fs::symlink_metadata(&path)
        && !is_of_process(&path)
    {
        check_log(&about)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    match open(&mut options, &path) {
        Ok(file) => {
            check_log(&file.metadata()?)?;
            // It was opened just now, so the flag is nobody else's.
            rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
            Ok(Log::Open(file))
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(Log::Fifo(path))
        }
        Err(error) => Err(error),
    }
}

/// Opens a FIFO for writing, and waits for somebody to read it.
///
/// # Errors
/// If it cannot be opened or is not trusted.
pub fn fifo(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().append(true).custom_flags(flags).open(path)?;
    check_log(&file.metadata()?)?;
    Ok(file)
}

/// Checks the socket of a process that is to be believed.
///
/// # Errors
/// If it is no socket, or another user's.
pub fn check_socket(path: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if !about.file_type().is_socket() {
        return Err(refused(format!("{} instead of a socket", kind(about.file_type()))));
    }
    check_owner(&about)
}

/// Checks who is at the other end of a socket.
///
/// # Errors
/// If it is another user.
pub fn check_user(uid: u32) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    if uid == us || uid == 0 || us == 0 && Some(uid) == asked_by() {
        return Ok(());
    }
    Err(refused(format!("belongs to user {uid}, not to you (user {us}) or root")))
}

/// Opens without following a link, and without waiting for somebody at the other end of a FIFO.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Links in there are the kernel's own.
    let links = if is_of_process(path) { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (links | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    options.custom_flags(flags).open(path).map_err(|error| {
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            refused("is a symbolic link, which is not followed here".into())
        } else {
            error
        }
    })
}

/// Where a file really is. Every link on the way from file to file has to be trusted.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let name =
            path.file_name().ok_or_else(|| refused("is a folder, not a regular file".into()))?.to_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder)?;
        path = folder.join(name);
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_symlink() && !is_of_process(&path) => {
                let link = |error: io::Error| refused(format!("is a symbolic link that {error}"));
                check_owner(&about).map_err(link)?;
                check_way(&path)?;
                path = folder.join(fs::read_link(&path)?);
            }
            _ => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// `/dev/stderr` leads here.
fn is_of_process(path: &Path) -> bool {
    path.starts_with("/proc")
}

fn check_file(about: &Metadata) -> io::Result<()> {
    if !about.is_file() {
        return Err(refused(format!("is {}, not a regular file", kind(about.file_type()))));
    }
    check_owner(about)?;
    check_writers(about)
}

fn check_log(about: &Metadata) -> io::Result<()> {
    let kind_of = about.file_type();
    if kind_of.is_char_device() {
        return check_owner(about);
    }
    if !kind_of.is_file() && !kind_of.is_fifo() {
        return Err(refused(format!("is {}, not a regular file", kind(kind_of))));
    }
    check_owner(about)?;
    check_writers(about)
}

fn check_owner(about: &Metadata) -> io::Result<()> {
    check_user(about.uid())
}

fn check_writers(about: &Metadata) -> io::Result<()> {
    match writers(about) {
        None => Ok(()),
        Some(who) => {
            let mode = about.mode() & 0o7777;
            Err(refused(format!("can be written by {who} (mode {mode:04o}); to fix it: chmod go-w")))
        }
    }
}

/// Who else can write, if anybody can.
fn writers(about: &Metadata) -> Option<String> {
    if about.mode() & 0o002 != 0 {
        return Some("every user".to_owned());
    }
    let is_own_group = about.gid() == about.uid();
    (about.mode() & 0o020 != 0 && !is_own_group).then(|| format!("group {}", about.gid()))
}

/// Checks that nobody else can put something in a file's place. The path has no links in it.
fn check_way(path: &Path) -> io::Result<()> {
    for (steps, folder) in path.ancestors().skip(1).enumerate() {
        let about = fs::symlink_metadata(folder)?;
        let shown = folder.display();
        // Further up an owner is whoever gave this place to the user.
        if steps == 0 {
            check_owner(&about).map_err(|error| refused(format!("lies in {shown}, which {error}")))?;
        }
        if let Some(who) = writers(&about)
            && about.mode() & STICKY == 0
            && !is_read_only(folder)
        {
            return Err(refused(format!(
                "lies in {shown}, where {who} can replace it; to fix it: chmod go-w {shown}"
            )));
        }
    }
    Ok(())
}

/// Volumes that a container gets its config in are read-only, and their folders have every bit set.
fn is_read_only(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|about| about.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The user who had root run this.
fn asked_by() -> Option<u32> {
    #[expect(clippy::disallowed_methods, reason = "sudo leaves no other trace of who asked")]
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

fn kind(of: FileType) -> &'static str {
    if of.is_symlink() {
        "a symbolic link"
    } else if of.is_fifo() {
        "a FIFO"
    } else if of.is_socket() {
        "a socket"
    } else if of.is_dir() {
        "a folder"
    } else if of.is_file() {
        "a regular file"
    } else {
        "a device"
    }
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests;
