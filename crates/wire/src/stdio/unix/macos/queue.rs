//! A kqueue that tells of the end of one process.

use std::os::fd::OwnedFd;

use rustix::event::kqueue::{EventFilter, ProcessEvents, kqueue};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::Pid;

use super::calls;

/// An empty one, which is not handed on to the processes that we start.
pub(super) fn open() -> Result<OwnedFd, Errno> {
    let queue = kqueue()?;
    fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
    Ok(queue)
}

/// One that can be read once this process has ended. `None` if it has ended already.
pub(super) fn of_exit(pid: Pid) -> Result<Option<OwnedFd>, Errno> {
    let queue = open()?;
    match calls::add(&queue, EventFilter::Proc { pid, flags: ProcessEvents::EXIT }) {
        Ok(()) => Ok(Some(queue)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error),
    }
}
