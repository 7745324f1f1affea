//! A server in its job, as the keeper needs it, and the reaper's part, played in this process.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::windows::named_pipe::NamedPipeServer;

use super::down::Down;
use super::process::Process;
use crate::seen::Exit;
use crate::stdio::control::{KILL, Record, TERM};
use crate::stdio::platform::{Found, Platform};
use crate::windows::{Job, KILLED};

/// What a process is said to have ended by that we ended, as on other systems.
const BY_US: Exit = Exit::Signal(9);

/// A process and its job.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) job: Job,
}

/// A server, if it could be started.
pub(super) struct Tree(pub(super) Option<Arc<Server>>);

/// What can be found of it.
struct Remains(Option<Arc<Server>>);

/// Watches a server until nothing of it is left, and says so in the reaper's words. `Err` is why it could not be started.
pub(super) async fn watch(started: Result<Arc<Server>, i32>, mut control: DuplexStream) {
    let server = match started {
        Ok(server) => server,
        Err(code) => return drop(control.write_all(&Record::Failed(code).encode()).await),
    };
    let _ = control.write_all(&Record::Spawned(server.process.pid()).encode()).await;
    let mut order = [0];
    loop {
        tokio::select! {
            biased;
            () = server.process.exited() => break,
            read = control.read(&mut order) => match read {
                Ok(1) if order[0] == TERM => server.process.ask(),
                // Told to, or nobody is left to tell: the same. (KILL is the only other order.)
                Ok(_) | Err(_) => {
                    debug_assert!(order[0] == KILL || order[0] == TERM || order[0] == 0);
                    server.job.end();
                    break server.process.exited().await;
                }
            },
        }
    }
    let exit = match server.process.status() {
        KILLED => BY_US,
        status => Exit::Status(status.cast_signed()),
    };
    let _ = control.write_all(&Record::Exited(exit).encode()).await;
    // The server is gone; what it started may not be.
    server.job.clear().await;
    let _ = control.write_all(&Record::Clear.encode()).await;
}

impl Platform for Tree {
    type Stdin = Down;
    type Stdout = NamedPipeServer;
    type Stderr = NamedPipeServer;
    type Control = DuplexStream;

    fn find(&self, _: i32) -> Box<dyn Found> {
        Box::new(Remains(self.0.clone()))
    }

    /// There is none who could disobey.
    fn kill_reaper(&mut self) {
        if let Some(server) = &self.0 {
            server.job.end();
        }
    }

    async fn clear_session(&mut self) {
        if let Some(server) = &self.0 {
            server.job.clear().await;
        }
    }

    async fn reaper_gone(&mut self) {}
}

impl Found for Remains {
    fn pid(&self) -> Option<i32> {
        self.0.as_ref().map(|server| server.process.pid())
    }

    fn has_exited(&self) -> bool {
        self.0.as_ref().is_some_and(|server| server.process.has_exited())
    }

    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            match &self.0 {
                Some(server) => server.process.exited().await,
                None => std::future::pending().await,
            }
        })
    }

    fn clear(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if let Some(server) = &self.0 {
                server.job.clear().await;
            }
        })
    }
}
