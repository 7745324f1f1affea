//! The seam below a process: what its writer, reader and keeper need of the system, and nothing else.
//!
//! `System` is the real thing. A simulation puts its own in this place, and everything above it is the code that ships.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child as Process;
use tokio::sync::mpsc;

use super::child::{Child, Launch};
use super::local::exit_of;
use super::orphans;
use super::remains::{self, Remains};
use crate::seam::{Event, Listener};
use crate::seen::{Exit, Seen};

/// How long a process that has closed our socket may take to end. What goes on without it is no reaper.
const ENDS: Duration = Duration::from_secs(1);

/// Where processes run.
pub trait Platform: Send + Sync + 'static {
    /// Our end of a server's stdin.
    type Stdin: Stdin;
    /// Our end of its stdout.
    type Stdout: Stdout;
    /// Our end of its stderr.
    type Stderr: AsyncRead + Send + Unpin + 'static;
    /// What the reaper reports on, and hears orders from.
    type Control: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static;

    /// The server that was started under this number.
    fn find(&self, pid: i32) -> Box<dyn Found>;
    /// The reaper is to hear an order: a stopped one cannot.
    fn wake_reaper(&mut self) {}
    /// The reaper does not obey: it goes before the server.
    fn kill_reaper(&mut self);
    /// The reaper is gone: kills what is left of its session, and returns when that is gone.
    fn clear_session(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
    /// The reaper is gone, and what was below it may have come to us: kills it, and returns when it is gone, with those that
    /// stay behind because they are another user's.
    fn clear_orphans(&mut self) -> impl Future<Output = Vec<i32>> + Send {
        async { Vec::new() }
    }
    /// What can be said of a program that was started as the reaper and never spoke: `None` if it was killed, and may well
    /// have been one. Ends it, if it has not ended.
    fn no_reaper(&mut self) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }
    /// Returns when nothing is left of the reaper.
    fn reaper_gone(&mut self) -> impl Future<Output = ()> + Send;
}

/// Our end of a server's stdin.
pub trait Stdin: AsyncWrite + Send + Sync + Unpin + 'static {
    /// Returns when nobody reads any more.
    fn broken(&self) -> impl Future<Output = ()> + Send;
    /// How many of the bytes that it accepted were never read; only once nobody is left to read them.
    fn unread(&self) -> Option<u64>;
}

/// Our end of a server's stdout.
pub trait Stdout: AsyncRead + Send + Unpin + 'static {
    /// Reads what is there, and waits for nothing.
    ///
    /// # Errors
    /// If nothing is there.
    fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize>;
}

/// What can be found of a server by its number.
pub trait Found: Send + Sync {
    /// The number.
    fn pid(&self) -> Option<i32>;
    /// Whether its process has ended, buried or not. `false` where that cannot be seen.
    fn has_exited(&self) -> bool;
    /// Returns when its process has ended; never, where that cannot be seen.
    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Kills what can be found, and returns when it is gone.
    fn clear(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A process that was started, with all that we hold of it.
pub struct Started<P: Platform> {
    /// Where it runs.
    pub platform: P,
    /// Our end of its stdin.
    pub stdin: P::Stdin,
    /// Our end of its stdout.
    pub stdout: P::Stdout,
    /// Our end of its stderr.
    pub stderr: P::Stderr,
    /// Our end of the reaper's socket.
    pub control: P::Control,
}

/// Starts processes in some other place than the system: a simulation.
pub trait Starter: Send + Sync {
    /// Starts one, and hands what it holds of it to [`Child::of`].
    ///
    /// # Errors
    /// If there is not even a reaper.
    fn start(
        &self,
        launch: &Launch,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Result<Child, Seen>;
}

/// This machine, and the reaper of one server on it.
pub(super) struct System {
    pub(super) process: Process,
    pub(super) program: PathBuf,
    pub(super) _started: orphans::Started,
}

impl System {
    /// The reaper. Until somebody has waited for it, its number is its own.
    fn reaper(&self) -> Option<Pid> {
        self.process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
    }
}

/// With no reaper, where we play its part.
impl Platform for Option<System> {
    type Stdin = pipe::Sender;
    type Stdout = pipe::Receiver;
    type Stderr = pipe::Receiver;
    type Control = UnixStream;

    fn find(&self, pid: i32) -> Box<dyn Found> {
        Box::new(Remains::of(pid))
    }

    fn kill_reaper(&mut self) {
        if let Some(System { process, .. }) = self {
            let _ = process.start_kill();
        }
    }

    fn wake_reaper(&mut self) {
        if let Some(reaper) = self.as_ref().and_then(System::reaper) {
            let _ = rustix::process::kill_process(reaper, Signal::CONT);
        }
    }

    async fn clear_session(&mut self) {
        if let Some(leader) = self.as_ref().and_then(System::reaper) {
            remains::clear_session(leader).await;
        }
    }

    async fn clear_orphans(&mut self) -> Vec<i32> {
        let Some(reaper) = self.as_ref().and_then(System::reaper) else { return Vec::new() };
        orphans::clear(reaper).await.into_iter().map(|pid| pid.as_raw_nonzero().get()).collect()
    }

    async fn no_reaper(&mut self) -> Option<String> {
        let System { process, program, .. } = self.as_mut()?;
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
        if let Some(System { process, .. }) = self {
            let _ = process.wait().await;
        }
    }
}

impl Stdin for pipe::Sender {
    async fn broken(&self) {
        let _ = self.ready(Interest::ERROR).await;
    }

    /// POLLERR on the write end: every read end is closed.
    fn unread(&self) -> Option<u64> {
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = matches!(poll(&mut fds, Some(&now)), Ok(1));
        let no_reader = polled && fds[0].revents().contains(PollFlags::ERR);
        no_reader.then(|| rustix::io::ioctl_fionread(self).ok()).flatten()
    }
}

impl Stdout for pipe::Receiver {
    fn read_now(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.try_read_buf(buffer)
    }
}
