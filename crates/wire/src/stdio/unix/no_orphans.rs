//! Where there are no reapers, no orphans come to us.

use rustix::process::Pid;
use tokio::process::{Child, Command};

/// A process that we started.
pub(super) struct Started;

pub(super) fn start(command: &mut Command) -> std::io::Result<(Child, Started)> {
    Ok((command.spawn()?, Started))
}

#[expect(clippy::unused_async, reason = "as on Linux")]
pub(super) async fn clear(_: Pid) -> Vec<Pid> {
    Vec::new()
}

pub(super) const fn spare(_: i32) {}
