//! What is per system: users by their numbers, and files. Modules with the same names in them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    Stamp, acts_for, connected_from, open, ourselves, too_open, unmapped_user, user_called,
};
#[cfg(windows)]
pub(crate) use windows::{
    Stamp, acts_for, connected_from, open, ourselves, too_open, unmapped_user, user_called,
};
