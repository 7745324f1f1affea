//! Users by the last part of their numbers, access lists.

use std::fs::{File, Metadata};
use std::io;
use std::net::SocketAddr;
use std::os::windows::fs::MetadataExt as _;
use std::path::Path;

use linetender_wire::windows;

/// The user that we run as. Only our own number is ever compared with another, and that is done by the whole of it.
pub(crate) fn ourselves() -> u32 {
    windows::this_user().map_or(0, |user| user.last_part())
}

/// The user that started us.
pub(crate) fn acts_for() -> u32 {
    ourselves()
}

/// # Errors
/// Always.
pub(crate) fn user_called(_: &str) -> Result<u32, String> {
    Err("other users cannot be admitted by name on Windows: remove it, or give agents tokens ([gateway.auth])"
        .to_owned())
}

/// There is none.
pub(crate) const fn unmapped_user() -> Option<u32> {
    None
}

/// The user who has a connection from `local` to `remote`; `None` unless that is certain, and for everybody but ourselves.
pub(crate) fn connected_from(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<u32>> {
    let Some(process) = windows::connected_from(local, remote)? else { return Ok(None) };
    let us = windows::this_user()?;
    // We may not look at the processes of others, and one that is gone is nobody's.
    Ok(windows::process_user(process).is_ok_and(|user| user == us).then(|| us.last_part()))
}

/// Which file it is, and when it changed, as far as that can be seen without opening it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stamp {
    size: u64,
    created: u64,
    written: u64,
}

impl Stamp {
    pub(crate) fn of(about: &Metadata) -> Self {
        Self { size: about.file_size(), created: about.creation_time(), written: about.last_write_time() }
    }
}

/// Opens a file to be read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// If other users of this machine can read this file: how that is seen, and what to run.
pub(crate) fn too_open(path: &Path, _: &Metadata) -> Option<(String, String)> {
    let path = windows::is_open_to_others(path).then_some(path)?.display();
    Some((
        "its access list".to_owned(),
        format!("icacls \"{path}\" /inheritance:r /grant:r \"%USERNAME%:R\""),
    ))
}
