//! Acknowledgements that wake nobody: a counter in the kernel, which outlives whoever counted.
//!
//! Each acknowledgement as a line on the stream wakes the asker, which has nothing to do then. On Linux the asker hands a counter
//! (an `eventfd`) over with its order, and looks at it when it wants to know. Elsewhere, acknowledgements are lines.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The counter.
#[derive(Debug)]
pub(in crate::hop) struct Tally(OwnedFd);

impl Tally {
    /// A new one, at zero; `None` if there are no descriptors left.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Option<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok().map(Self)
    }

    /// One that was handed over, if it is such a counter: to anything else a write might wait.
    pub(super) fn handed(fd: OwnedFd) -> Option<Self> {
        use std::os::fd::AsRawFd as _;
        let kind = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
        let flags = rustix::fs::fcntl_getfl(&fd).ok()?;
        // One that is full would make whoever counts wait.
        rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).ok()?;
        (kind.as_os_str() == "anon_inode:[eventfd]").then_some(Self(fd))
    }

    /// So many more.
    pub(in crate::hop) fn add(&self, bytes: u64) -> io::Result<()> {
        rustix::io::write(&self.0, &bytes.to_ne_bytes())?;
        Ok(())
    }

    /// How many came since this was last asked.
    pub(in crate::hop) fn take(&self) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::read(&self.0, &mut bytes) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }
}

impl AsFd for Tally {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Tally;

    #[test]
    fn what_was_counted_is_there_once() {
        let tally = Tally::new().unwrap();
        let other = Tally::handed(tally.0.try_clone().unwrap()).unwrap();
        assert_eq!(tally.take(), 0);
        other.add(7).unwrap();
        other.add(5).unwrap();
        drop(other);
        assert_eq!((tally.take(), tally.take()), (12, 0));
    }

    #[test]
    fn what_is_no_counter_is_not_written_to() {
        let (_read, write) = rustix::pipe::pipe().unwrap();
        assert!(Tally::handed(write).is_none());
    }
}
