//! A server's orphans stay in its job: no child of this process can be taken for one.

use std::io;

use tokio::process::{Child, Command};

use crate::stdio::process::Role;

/// The note that a process is ours.
#[derive(Debug)]
pub(in crate::stdio) struct Started;

impl Started {
    pub(in crate::stdio) const fn end(&mut self, _: bool) {}
}

#[expect(clippy::disallowed_methods, reason = "this is the room")]
pub(in crate::stdio) fn start(command: &mut Command, _: Role) -> io::Result<(Child, Started)> {
    Ok((command.spawn()?, Started))
}
