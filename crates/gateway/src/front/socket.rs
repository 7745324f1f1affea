//! The Unix socket beside the address, where the system has such: modules with the same names in them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{Socket, Stream, owner};
#[cfg(windows)]
pub(super) use windows::{Socket, Stream, owner};
