//! A server and its reaper, as the keeper needs them, and our ends of its pipes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::local::exit_of;
use super::orphans;
use super::remains::{self, Remains};
use super::stdin::ToServer;
use crate::readable::read_now;
use crate::seen::Exit;
use crate::stdio::platform::{Found, Output, Platform};
use crate::stdio::process::Process;

/// How long a process that has closed our socket may take to end. What goes on without it is no reaper.
const ENDS: Duration = Duration::from_secs(1);

/// This machine, and the reaper of one server on it.
pub(super) struct Tree {
    pub(super) process: Process,
    pub(super) program: PathBuf,
}

impl Tree {
    /// The reaper. Until somebody has waited for it, its number is its own.
    fn reaper(&self) -> Option<Pid> {
        self.process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
    }
}

/// With no reaper, where we play its part.
impl Platform for Option<Tree> {
    type Stdin = ToServer;
    type Stdout = pipe::Receiver;
    type Stderr = pipe::Receiver;
    type Control = UnixStream;

    fn find(&self, pid: i32) -> Box<dyn Found> {
        Box::new(Remains::of(pid))
    }

    fn has_ladder(&self) -> bool {
        self.is_some() && cfg!(all(target_os = "linux", not(linetender_portable)))
    }

    fn kill_reaper(&mut self) {
        if let Some(Tree { process, .. }) = self {
            let _ = process.start_kill();
        }
    }

    fn wake_reaper(&mut self) {
        if let Some(reaper) = self.as_ref().and_then(Tree::reaper) {
            let _ = rustix::process::kill_process(reaper, Signal::CONT);
        }
    }

    fn spare(&self, pid: i32) {
        orphans::spare(pid);
    }

    async fn clear_session(&mut self) {
        if let Some(leader) = self.as_ref().and_then(Tree::reaper) {
            remains::clear_session(leader).await;
        }
    }

    async fn clear_orphans(&mut self) -> Vec<i32> {
        let Some(reaper) = self.as_ref().and_then(Tree::reaper) else { return Vec::new() };
        orphans::clear(reaper).await.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect()
    }

    async fn no_reaper(&mut self) -> Option<String> {
        let Tree { process, program, .. } = self.as_mut()?;
        let program = program.display();
        if matches!(process.try_wait(), Ok(None)) && tokio::time::timeout(ENDS, process.wait()).await.is_err()
        {
            let _ = process.start_kill();
            return Some(format!("{program} started, but not as a reaper"));
        }
        let exit = process.wait().await.map_or(Exit::Status(0), exit_of);
        if matches!(exit, Exit::Signal(9 | 15)) {
            return None;
        }
        Some(format!(
            "{program} {exit} instead of becoming a reaper: call `reaper::run_if_asked` first in its `main`"
        ))
    }

    async fn reaper_gone(&mut self) {
        if let Some(Tree { process, .. }) = self {
            let _ = process.wait().await;
        }
    }
}

impl Output for pipe::Receiver {
    async fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        read_now(self, buffer)
    }
}
