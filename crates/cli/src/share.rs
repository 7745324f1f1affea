//! `linetender run --share`: one process of this user, the keeper, runs each server once for all agents that want the same one.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{keeper, refusal, through_keeper};
#[cfg(windows)]
pub(crate) use windows::{keeper, refusal, through_keeper};
