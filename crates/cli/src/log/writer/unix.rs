//! By the descriptor. Not through `Stderr`: its lock would be held for as long as a write blocks.

use std::fs::File;
use std::io::{self, Stderr};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// What is written to.
pub(super) enum Sink {
    File(File),
    Stderr(Stderr),
}

impl Sink {
    /// A file, or else stderr.
    pub(super) fn new(file: Option<File>) -> Self {
        file.map_or_else(|| Self::Stderr(io::stderr()), Self::File)
    }

    pub(super) fn write_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        let to = match self {
            Self::File(file) => file.as_fd(),
            Self::Stderr(stderr) => stderr.as_fd(),
        };
        while !bytes.is_empty() {
            match rustix::io::write(to, bytes) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                // Somebody else made it not block: only this thread waits for its reader.
                Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&to, PollFlags::OUT)], None)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
