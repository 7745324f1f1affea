//! What a service manager is told: that it serves, that it ends, and in between that it is not frozen.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{ends, run};
#[cfg(windows)]
pub(crate) use windows::{as_service, ends, run};
