//! The reaper's part, played in this process: for hosts without a reaper binary, and systems without subreapers.
//!
//! It speaks the reaper's language on the same socket, so the keeper need not know. What is lost: a grandchild that
//! leaves the server's process group escapes, and if this process is killed nobody is left to kill the server.

use std::io;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::remains::clear_group;
use crate::seen::Exit;
use crate::stdio::control::{INT, KILL, Record, TERM};
use crate::stdio::process::Process;

/// Watches a server that was started here, until it is gone.
pub(super) async fn watch(started: io::Result<Process>, mut control: UnixStream) {
    let mut server = match started {
        Ok(started) => started,
        Err(error) => {
            let failed = Record::Failed(error.raw_os_error().unwrap_or(0));
            let _ = control.write_all(&failed.encode()).await;
            return;
        }
    };
    let group = server.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = group {
        let _ = control.write_all(&Record::Spawned(pid.as_raw_nonzero().get()).encode()).await;
    }
    let signal = |signal| {
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    };
    let mut order = [0];
    let exit = loop {
        tokio::select! {
            status = server.wait() => break status,
            read = control.read(&mut order) => match read {
                Ok(1) if order[0] == TERM => signal(Signal::TERM),
                Ok(1) if order[0] == INT => signal(Signal::INT),
                // Told to, or nobody is left to tell: the same. (KILL is the only other order that is given here.)
                Ok(_) | Err(_) => {
                    debug_assert!(order[0] == KILL || order[0] == TERM || order[0] == 0);
                    signal(Signal::KILL);
                    break server.wait().await;
                }
            },
        }
    };
    let exit = exit.map_or(Exit::Status(0), exit_of);
    let _ = control.write_all(&Record::Exited(exit).encode()).await;
    // The leader is gone; its group may not be.
    if let Some(group) = group {
        clear_group(group).await;
    }
    let _ = control.write_all(&Record::Clear.encode()).await;
}

pub(super) fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Status(status.code().unwrap_or(0)),
    }
}
