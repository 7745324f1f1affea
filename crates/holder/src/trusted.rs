//! Files and folders that linetender believes: the one rule for config, journal, cache, log, status sockets and their folders.
//!
//! What makes a file trusted is each system's to say: owners and modes on Unix, the user's own folders on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use unix::{
    append, check_folder, check_socket, check_user, create, fifo, folder, log, read, read_named, replace,
};
#[cfg(windows)]
pub use windows::{append, check_folder, copy_access, create, fifo, folder, log, read, read_named, replace};

/// No config file is larger; what is, is something else.
const LARGEST: u64 = 16 << 20;

/// The text of a config file that a user has named, or a sentence about why it cannot be read. It says which programs are
/// started, so it is read only if nobody but this user and root could have written it.
///
/// # Errors
/// If it cannot be read, is not trusted, is too large, or is no text.
pub fn config_text(path: &Path) -> Result<String, String> {
    let read = read_named(path).and_then(|(file, _)| {
        let mut text = String::new();
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => io::Error::other("is not UTF-8 text"),
            _ => error,
        })?;
        if text.len() as u64 > LARGEST {
            return Err(io::Error::other(format!("is larger than {} MiB", LARGEST >> 20)));
        }
        Ok(text)
    });
    read.map_err(|error| match error.raw_os_error() {
        Some(_) => format!("cannot read {}: {error}", path.display()),
        None => format!("cannot use {} as config: it {error}", path.display()),
    })
}

/// What a log can be written to.
#[derive(Debug)]
pub enum Log {
    /// A file or a device, open.
    Open(File),
    /// A FIFO that nobody reads yet: opening it would wait. See [`fifo`].
    Fifo(PathBuf),
}
