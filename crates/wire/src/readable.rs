//! Waiting until a descriptor can be read, or ends.

use std::os::fd::OwnedFd;

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
