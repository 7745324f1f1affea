//! Waiting until a descriptor can be read, or ends; and reading without waiting.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::BytesMut;
use tokio::io::{Interest, unix::AsyncFd};

use crate::caught_now;

/// A descriptor of ours that the runtime waits for. `None` if the runtime cannot: it may do no I/O.
#[cfg(any(target_os = "linux", all(target_os = "macos", not(linetender_portable))))]
pub(crate) fn readable(fd: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    watched(fd, Interest::READABLE)
}

/// The same, for something else that can happen to it.
#[expect(unsafe_code, reason = "the runtime wants to be sure that the descriptor stays what it is")]
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> Option<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor for as long as it lives, and it lives in here.
    caught_now(|| unsafe { AsyncFd::register_with_interest(fd, interest) }).ok()?.ok()
}

/// Reads what lies in a pipe or a socket of the runtime. The runtime's own `try_read` says "nothing" of what the kernel has and the
/// runtime has yet to hear of.
pub(crate) fn read_now(fd: impl AsFd, buffer: &mut BytesMut) -> io::Result<usize> {
    let mut bytes = [0; 8192];
    let read = rustix::io::read(fd, &mut bytes)?;
    buffer.extend_from_slice(&bytes[..read]);
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write as _};

    use bytes::BytesMut;
    use tokio::net::unix::pipe::Receiver;

    use super::read_now;

    #[tokio::test]
    async fn what_the_runtime_has_yet_to_hear_of_is_read() {
        let (ours, mut theirs) = std::io::pipe().unwrap();
        let ours = Receiver::from_owned_fd(ours.into()).unwrap();
        theirs.write_all(b"last words").unwrap();
        let mut buffer = BytesMut::new();
        assert_eq!(read_now(&ours, &mut buffer).unwrap(), 10);
        assert_eq!(buffer, "last words");
        assert_eq!(read_now(&ours, &mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
