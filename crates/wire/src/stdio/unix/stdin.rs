//! Our end of a server's stdin: a pipe, and who tells us that nobody reads it any more.

#[cfg(any(test, not(target_os = "linux")))]
mod told;

use tokio::net::unix::pipe::Sender;

#[cfg(target_os = "linux")]
pub(super) type ToServer = Sender;
#[cfg(not(target_os = "linux"))]
pub(super) type ToServer = told::Told;

/// The end of a pipe to a server.
pub(super) fn to_server(pipe: Sender) -> ToServer {
    #[cfg(target_os = "linux")]
    return pipe;
    #[cfg(not(target_os = "linux"))]
    told::Told::of(pipe)
}

/// The kernel tells by POLLERR on the write end: every read end is closed. What the other end of a pipe has not read is known from this
/// one on Linux alone: elsewhere it is not known to mean the same, and a proof is a proof.
#[cfg(target_os = "linux")]
impl crate::stdio::platform::Stdin for Sender {
    async fn broken(&self) {
        let _ = self.ready(tokio::io::Interest::ERROR).await;
    }

    fn unread(&self) -> Option<Vec<u8>> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = matches!(poll(&mut fds, Some(&now)), Ok(1));
        let no_reader = polled && fds[0].revents().contains(PollFlags::ERR);
        no_reader.then(|| read_back(self).unwrap_or_default())
    }
}

/// The most that is read back. A pipe holds 64 KiB; a server can enlarge it and fill it.
#[cfg(target_os = "linux")]
const READ_BACK_BYTES: usize = 1 << 20;

/// Reads what is left in a pipe that has no reader any more, through an end of its own.
#[cfg(target_os = "linux")]
fn read_back(pipe: &Sender) -> rustix::io::Result<Vec<u8>> {
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsRawFd as _;
    let left = usize::try_from(rustix::io::ioctl_fionread(pipe)?).unwrap_or(usize::MAX);
    if left > READ_BACK_BYTES {
        return Err(rustix::io::Errno::FBIG);
    }
    let mut unread = vec![0; left];
    if left == 0 {
        return Ok(unread);
    }
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let end = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    let mut read = 0;
    while read < left {
        match rustix::io::read(&end, &mut unread[read..])? {
            0 => return Err(rustix::io::Errno::IO),
            bytes => read += bytes,
        }
    }
    Ok(unread)
}
