//! Where there are no reapers, no orphans come to us.

use rustix::process::Pid;
use tokio::process::{Child, Command};

use crate::stdio::process::Role;

/// The note that a process is ours.
#[derive(Debug)]
pub(in crate::stdio) struct Started;

impl Started {
    pub(in crate::stdio) const fn end(&mut self, _: bool) {}
}

#[expect(clippy::disallowed_methods, reason = "this is the room")]
pub(in crate::stdio) fn start(command: &mut Command, _: Role) -> std::io::Result<(Child, Started)> {
    Ok((command.spawn()?, Started))
}

#[expect(clippy::unused_async, reason = "as on Linux")]
pub(super) async fn clear(_: Pid) -> Vec<Pid> {
    Vec::new()
}

pub(super) const fn spare(_: i32) {}
