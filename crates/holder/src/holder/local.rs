//! Streams between processes of this machine, as each system has them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{Listener, Stream, bind, check_peer, check_socket, connect, lives};
#[cfg(windows)]
pub(super) use windows::{Listener, Stream, bind, check_peer, check_socket, connect, lives};
