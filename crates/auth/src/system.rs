//! What is per system: modules with the same names in them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Group, Sight, is_open_to_others, is_passing, lives, sync_folder};
#[cfg(windows)]
pub(crate) use windows::{Group, Sight, is_open_to_others, is_passing, lives, sync_folder};
