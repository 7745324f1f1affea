//! By a handle of our own: the lock of `Stderr` would be held for as long as a write blocks. A console is the exception, since only
//! the standard library writes its text as it is meant.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::windows::io::AsHandle as _;

/// What is written to.
pub(super) enum Sink {
    File(File),
    Console,
    /// There is none.
    Nothing,
}

impl Sink {
    /// A file, or else stderr.
    pub(super) fn new(file: Option<File>) -> Self {
        if let Some(file) = file {
            return Self::File(file);
        }
        let stderr = io::stderr();
        if stderr.is_terminal() {
            return Self::Console;
        }
        stderr.as_handle().try_clone_to_owned().map_or(Self::Nothing, |handle| Self::File(handle.into()))
    }

    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => (&*file).write_all(bytes),
            Self::Console => io::stderr().write_all(bytes),
            Self::Nothing => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
