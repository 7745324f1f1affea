//! What is per system: modules with the same names in them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    OF_A_SERVER, PLACES, bad, broken, is_said, lacks, late_server, marked, name, own_group,
};
#[cfg(windows)]
pub(crate) use windows::{
    OF_A_SERVER, PLACES, bad, broken, is_said, lacks, late_server, marked, name, own_group,
};
