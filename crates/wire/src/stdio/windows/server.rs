//! A server in its job, as the keeper needs it, and the reaper's part, played in this process.

use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::SetOnce;
use windows_sys::Win32::Foundation::ERROR_INTERNAL_ERROR;

use super::down::Down;
use super::process::Process;
use super::up::Up;
use crate::aside;
use crate::seen::{Exit, Seen};
use crate::stdio::control::{KILL, Record, TERM, VERSION};
use crate::stdio::platform::{Found, Platform};
use crate::windows::{Job, KILLED};

/// What a process is said to have ended by that we ended, as on other systems.
const BY_US: Exit = Exit::Signal(9);

/// A process and its job.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) job: Job,
}

/// Why there is no process.
#[derive(Clone)]
pub(super) enum NotBegun {
    /// The system's number for it.
    Code(i32),
    /// It cannot be started as it is configured.
    Unfit(Seen),
}

/// A server, once it is known whether it could be started.
#[derive(Clone, Default)]
pub(super) struct Tree {
    begun: Arc<SetOnce<Result<Arc<Server>, NotBegun>>>,
    given_up: Arc<SetOnce<()>>,
}

/// What can be found of it.
struct Remains(Option<Arc<Server>>);

/// Starts a server, watches it until nothing of it is left, and says so in the reaper's words.
///
/// To find a program and to create its process may take long: a folder on `PATH` may be another machine's that is gone, and scanners
/// look at every file first. No other server waits for that.
pub(super) async fn begin<F>(start: F, tree: Tree, mut control: DuplexStream)
where
    F: FnOnce(&Tree) -> Result<Server, NotBegun> + Send + 'static,
{
    // So that a slow start is not taken for a reaper that is none.
    let _ = control.write_all(&Record::Ready(VERSION).encode()).await;
    let theirs = tree.clone();
    let begun = tokio::select! {
        biased;
        begun = aside(move || start(&theirs)) => begun,
        // Whatever comes of it after this is dropped, and its job with it.
        () = tree.given_up() => return,
    };
    let begun = begun.unwrap_or(Err(NotBegun::Code(ERROR_INTERNAL_ERROR.cast_signed()))).map(Arc::new);
    let _ = tree.begun.set(begun.clone());
    match begun {
        Ok(server) => watch(server, control).await,
        Err(NotBegun::Code(code)) => drop(control.write_all(&Record::Failed(code).encode()).await),
        Err(NotBegun::Unfit(_)) => drop(control.write_all(&Record::Failed(0).encode()).await),
    }
}

async fn watch(server: Arc<Server>, mut control: DuplexStream) {
    let _ = control.write_all(&Record::Spawned(server.process.pid()).encode()).await;
    let mut order = [0];
    let has_ended = loop {
        tokio::select! {
            biased;
            () = server.process.exited() => break true,
            read = control.read(&mut order) => match read {
                Ok(1) if order[0] == TERM => server.process.ask(),
                // Told to, or nobody is left to tell: the same. (KILL is the only other order.)
                Ok(_) | Err(_) => {
                    debug_assert!(order[0] == KILL || order[0] == TERM || order[0] == 0);
                    server.job.end();
                    // One that is stuck in a driver ends when the driver lets go of it, which may be never.
                    break tokio::time::timeout(Job::PATIENCE, server.process.exited()).await.is_ok();
                }
            },
        }
    };
    if !has_ended {
        let _ = control.write_all(&Record::Left(server.process.pid()).encode()).await;
    }
    let exit = match server.process.status() {
        status if has_ended && status != KILLED => Exit::Status(status.cast_signed()),
        _ => BY_US,
    };
    let _ = control.write_all(&Record::Exited(exit).encode()).await;
    // The server is gone; what it started may not be.
    if has_ended {
        server.job.clear().await;
    }
    let _ = control.write_all(&Record::Clear.encode()).await;
}

impl Tree {
    fn server(&self) -> Option<&Arc<Server>> {
        self.begun.get().and_then(|begun| begun.as_ref().ok())
    }

    /// Whether nobody waits any more for what comes of a start.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.get().is_some()
    }

    async fn given_up(&self) {
        self.given_up.wait().await;
    }
}

impl Platform for Tree {
    type Stdin = Down;
    type Stdout = Up;
    type Stderr = Up;
    type Control = DuplexStream;

    fn find(&self, _: i32) -> Box<dyn Found> {
        Box::new(Remains(self.server().cloned()))
    }

    /// There is none who could disobey; but a start may take longer than anybody waits for it.
    fn kill_reaper(&mut self) {
        match self.server() {
            Some(server) => server.job.end(),
            None => drop(self.given_up.set(())),
        }
    }

    fn unfit(&self) -> Option<Seen> {
        match self.begun.get()? {
            Err(NotBegun::Unfit(seen)) => Some(seen.clone()),
            Ok(_) | Err(NotBegun::Code(_)) => None,
        }
    }

    async fn clear_session(&mut self) {
        if let Some(server) = self.server() {
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
            if let Some(server) = &self.0 {
                server.process.exited().await;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::{NotBegun, Server, Tree, begin, watch};
    use crate::seen::Exit;
    use crate::stdio::control::{KILL, Record, VERSION};
    use crate::stdio::platform::Platform as _;
    use crate::stdio::windows::process::tests::waiting;
    use crate::windows::Job;

    /// As a process is that a driver does not let go of: it is told to end, and does not.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_be_ended_is_left_behind_after_a_while() {
        let (own, another) = (Job::new().unwrap(), Job::new().unwrap());
        let process = waiting(&own);
        let pid = process.pid();
        let (mut ours, theirs) = tokio::io::duplex(256);
        let watched = watch(Arc::new(Server { process, job: another }), theirs);
        let told = async {
            ours.write_all(&[KILL]).await.unwrap();
            let mut told = Vec::new();
            ours.read_to_end(&mut told).await.unwrap();
            told.chunks(Record::SIZE)
                .map(|record| Record::decode(record.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        let both = async { tokio::join!(watched, told).1 };
        let told = tokio::time::timeout(Duration::from_secs(60), both).await.expect("an end within a minute");
        let left = [Record::Left(pid), Record::Exited(Exit::Signal(9)), Record::Clear];
        assert_eq!(told[0], Some(Record::Spawned(pid)));
        assert_eq!(told[1..], left.map(Some));
        own.clear().await;
    }

    /// As a search in a folder of another machine that does not answer.
    #[tokio::test]
    async fn a_start_that_takes_longer_than_anybody_waits_is_given_up() {
        let (go_on, search) = std::sync::mpsc::channel::<()>();
        let (found, end) = std::sync::mpsc::channel();
        let mut tree = Tree::default();
        let (mut ours, theirs) = tokio::io::duplex(256);
        let start = move |tree: &Tree| {
            let _ = search.recv();
            let _ = found.send(tree.is_given_up());
            Err(NotBegun::Code(1))
        };
        let begun = begin(start, tree.clone(), theirs);
        let told = async {
            let mut ready = [0; Record::SIZE];
            ours.read_exact(&mut ready).await.unwrap();
            assert_eq!(Record::decode(ready), Some(Record::Ready(VERSION)));
            tree.kill_reaper();
            let mut told = Vec::new();
            ours.read_to_end(&mut told).await.unwrap();
            told
        };
        let both = async { tokio::join!(begun, told).1 };
        let told = tokio::time::timeout(Duration::from_secs(20), both).await.expect("an end in time");
        assert!(told.is_empty(), "{told:?}");
        go_on.send(()).unwrap();
        assert_eq!(end.recv(), Ok(true), "no process is created after that");
    }
}
