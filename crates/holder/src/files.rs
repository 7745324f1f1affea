//! Files, as each system numbers them: what is put away while somebody reads it stays the same file.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{Number, can_be_moved, cut, is_named, number, number_at, read_at, sync_folder};
#[cfg(windows)]
pub(crate) use windows::{Number, can_be_moved, cut, is_named, number, number_at, read_at, sync_folder};
