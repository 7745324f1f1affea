//! The agent's two pipes, as each system has them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::Pipes;
#[cfg(windows)]
pub(crate) use windows::Pipes;
