//! The seam below a process: what its writer, reader and keeper need of the system, and nothing else.
//!
//! Each kind of system has its own below this; a simulation puts another in their place, and everything above it is the code that
//! ships.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::child::{Child, Launch};
use crate::seam::{Event, Listener};
use crate::seen::Seen;

/// The most that a last drain takes: what a pipe can hold (`/proc/sys/fs/pipe-max-size`). What is written meanwhile was not
/// written before the end.
pub(super) const PIPE_MAX_BYTES: usize = 1024 * 1024;

/// Where processes run.
pub trait Platform: Send + Sync + 'static {
    /// Our end of a server's stdin.
    type Stdin: Stdin;
    /// Our end of its stdout.
    type Stdout: Output;
    /// Our end of its stderr.
    type Stderr: Output;
    /// What the reaper reports on, and hears orders from.
    type Control: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static;

    /// The server that was started under this number.
    fn find(&self, pid: i32) -> Box<dyn Found>;
    /// Whether the reaper climbs down the close ladder by itself. If not, the keeper does.
    fn has_ladder(&self) -> bool {
        false
    }
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
    /// This process left its server's tree on purpose: it is nobody's orphan.
    fn spare(&self, _pid: i32) {}
    /// Why a server that could not be started cannot be, where the number of an error does not say it.
    fn unfit(&self) -> Option<Seen> {
        None
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
    /// What lies unread in it. `None` while a process may still read it. Empty if that cannot be found out:
    /// then all of it counts as read.
    fn unread(&self) -> Option<Vec<u8>>;
}

/// Our end of a server's stdout or stderr.
pub trait Output: AsyncRead + Send + Unpin + 'static {
    /// Reads what is there, and waits for nothing that the server has yet to write.
    ///
    /// # Errors
    /// If nothing is there.
    fn read_now(&mut self, buffer: &mut BytesMut) -> impl Future<Output = io::Result<usize>> + Send;
}

/// What the processes of a server do: the server, and everything below it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Work {
    /// Their processor time, with that of the processes that they have waited for.
    pub cpu: Duration,
    /// One of their threads has a processor, or waits for one or for a disk: on a starved machine a server that works gets little of it.
    pub is_runnable: bool,
    /// How long ago the youngest process below the server began.
    pub youngest: Option<Duration>,
    /// One of them lets something else do the work, elsewhere.
    pub is_elsewhere: bool,
}

/// What can be found of a server by its number.
pub trait Found: Send + Sync {
    /// The number.
    fn pid(&self) -> Option<i32>;
    /// Whether its process has ended, buried or not. `false` where that cannot be seen.
    fn has_exited(&self) -> bool;
    /// Returns when its process has ended; at once, where that cannot be seen: it may have.
    fn exited(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// What its processes do. `None` where that cannot be seen.
    fn work(&self) -> Option<Work> {
        None
    }
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
