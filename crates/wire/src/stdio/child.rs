//! One server process, from launch to the moment when nothing of it is left.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linetender_core::{ClosePolicy, Limits as Sizes};
use tokio::sync::{Notify, SetOnce, mpsc};
use tokio::time::Instant;

use super::container::Container;
use super::keeper::{Keeper, Looks, plain};
use super::passed::passed;
use super::platform::{Found, Platform, Started, Starter, Work};
use super::reader::Drain;
use super::residue::Residue;
use super::stderr::Ring;
use super::{Lifeline, reader, stderr, system, writer};
use crate::elsewhere::Elsewhere;
use crate::frame::Limits;
use crate::redact::Redacted;
use crate::seam::{Event, Listener, Outbox};
use crate::seen::Seen;
use crate::tasks::{Owned, spawn_last};

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to run.
    pub program: Program,
    /// The container that the program starts, if it starts one that is followed: it is ended with the program.
    pub container: Option<Arc<Container>>,
    /// Who sees to it that nothing of the server is left behind.
    pub reaper: Reaper,
    /// What it does not outlive, if anything. Where there are no reapers, it is not started then.
    pub lifeline: Option<Arc<Lifeline>>,
    /// How long the start may go on after our own death, if it may: that of a server whose agent was answered from a cache.
    pub start: Option<Duration>,
    /// The times of a polite end.
    pub close: ClosePolicy,
    /// The sizes.
    pub sizes: Sizes,
}

/// Who sees to it that nothing of a server is left behind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reaper {
    /// A process between us and the server: this program, if it has called [`reaper::run_if_asked`](super::reaper::run_if_asked), else
    /// `linetender-reaper` or `linetender` on `PATH`. If there is none, the server is not started.
    Find,
    /// The same process, from this binary. It has to call [`reaper::run_if_asked`](super::reaper::run_if_asked) first thing in `main`.
    Binary(PathBuf),
    /// Only we ourselves, by the server's process group: what leaves the group, or outlives us, is not found.
    None,
    /// A simulated one.
    #[doc(hidden)]
    Elsewhere(Elsewhere<dyn Starter>),
}

/// A program, its arguments and surroundings. Never a shell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs; here, if not said.
    pub dir: Option<PathBuf>,
    /// What it finds in its environment.
    pub env: Env,
}

/// A server's environment. Its values are secrets more often than not: `Debug` shows the names.
#[derive(Clone, Eq, PartialEq)]
pub enum Env {
    /// All of ours.
    Ours,
    /// All of ours, and these variables, which win over ours of the same name.
    OursAnd(Vec<(OsString, OsString)>),
    /// These variables and no others.
    Only(Vec<(OsString, OsString)>),
}

impl Env {
    /// What the server finds under this name.
    pub(super) fn get(&self, wanted: &str) -> Option<OsString> {
        #[expect(clippy::disallowed_methods, reason = "what the server is given is our own environment")]
        let ours = || std::env::var_os(wanted);
        // Of two values under one name the later one holds.
        let given = |variables: &[(OsString, OsString)]| {
            let found = variables.iter().rfind(|(name, _)| system::same_name(name, OsStr::new(wanted)));
            found.map(|(_, value)| value.clone())
        };
        match self {
            Self::Ours => ours(),
            Self::OursAnd(variables) => given(variables).or_else(ours),
            Self::Only(variables) => given(variables),
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("Ours"),
            Self::OursAnd(variables) => {
                f.write_str("Ours and ")?;
                f.debug_set().entries(variables.iter().map(|(name, _)| name)).finish()
            }
            Self::Only(variables) => f.debug_set().entries(variables.iter().map(|(name, _)| name)).finish(),
        }
    }
}

/// An order to the process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Its handshake is over.
    Up,
    Kill,
    Close,
}

/// A server process. Dropping it kills its tree.
pub struct Child {
    outbox: Outbox,
    orders: mpsc::Sender<Order>,
    stdout_drain: Drain,
    residue: Arc<OnceLock<Residue>>,
    server: Arc<SetOnce<Box<dyn Found>>>,
    ring: Ring,
}

impl Child {
    /// Starts the reaper, which starts the server. That the server could not be started is an event, not an error.
    ///
    /// # Errors
    /// If not even the reaper could be started.
    pub fn launch(
        launch: &Launch,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, Seen> {
        match &launch.reaper {
            Reaper::Elsewhere(Elsewhere(starter)) => starter.start(launch, listener, events),
            Reaper::Find | Reaper::Binary(_) | Reaper::None => system::start(launch, listener, events),
        }
    }

    /// Keeps a process that was started.
    #[doc(hidden)]
    pub fn of<P: Platform>(
        started: Started<P>,
        launch: &Launch,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let Started { platform, stdin, stdout, stderr, control } = started;
        let (outbox, frames, seal) = Outbox::new(launch.sizes.queue.into());
        let accepted = Arc::new(AtomicU64::new(0));
        let limits = Limits { length: launch.sizes.message as usize, depth: launch.sizes.depth.into() };
        let (stdout_drain, stdout_asked) = Drain::new();
        let (stderr_drain, stderr_asked) = Drain::new();
        let ring = Ring::new(launch.sizes.stderr as usize);
        let (orders, ordered) = mpsc::channel(4);
        let heard = Arc::<Notify>::default();
        let keeper = Keeper {
            platform,
            control,
            ordered,
            events: events.clone(),
            writer: Owned::spawn(writer::write(
                stdin,
                frames,
                Arc::clone(&seal),
                Arc::clone(&accepted),
                launch.lifeline.clone(),
            )),
            stderr: Owned::spawn(stderr::drain(
                stderr,
                ring.clone(),
                Arc::clone(&listener),
                events.clone(),
                stderr_asked,
            )),
            stderr_drain,
            reader: Owned::spawn(reader::read(
                stdout,
                limits,
                listener,
                stdout_asked,
                events,
                Arc::clone(&heard),
            )),
            stdout_drain: stdout_drain.clone(),
            ring,
            seal,
            program: launch.program.clone(),
            container: launch.container.clone(),
            close: launch.close,
            accepted,
            residue: Arc::default(),
            server: Arc::default(),
            passed: passed(),
            heard,
            looks: Looks::new(Instant::now()),
            name: Vec::new(),
        };
        let child = Self {
            outbox,
            orders,
            stdout_drain,
            residue: Arc::clone(&keeper.residue),
            server: Arc::clone(&keeper.server),
            ring: keeper.ring.clone(),
        };
        spawn_last(keeper.supervised());
        child
    }

    /// The way down.
    pub const fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Reads what is readable, and nothing after it.
    pub async fn drain(&self) {
        self.stdout_drain.all().await;
    }

    /// The handshake is over: should we die now, it is to go.
    pub fn up(&self) {
        let _ = self.orders.try_send(Order::Up);
    }

    /// Kills the server, and ends what it leaves behind.
    pub fn kill(&self) {
        // The queue has room for every order there is, or the keeper is gone and so is the tree.
        let _ = self.orders.try_send(Order::Kill);
    }

    /// Closes stdin, or passes on the signal that we got, and closes stdin; then TERM, then KILL.
    pub fn close(&self) {
        let _ = self.orders.try_send(Order::Close);
    }

    /// What was written and never read: known once no process is left to read it.
    pub fn residue(&self) -> Option<&Residue> {
        self.residue.get()
    }

    /// The last lines of its stderr.
    pub fn stderr(&self) -> Redacted {
        self.ring.tail()
    }

    /// The server's process, once it runs.
    pub fn pid(&self) -> Option<i32> {
        self.server.get().and_then(|server| server.pid())
    }

    /// Whether the server's process is over, as far as can be seen from here. How it ended is told by an event, which may
    /// take a moment longer.
    pub fn has_exited(&self) -> bool {
        self.server.get().is_some_and(|server| server.has_exited())
    }

    /// What the server's processes do. `None` where that cannot be seen.
    pub fn work(&self) -> Option<Work> {
        self.server.get().and_then(|server| server.work())
    }

    /// Returns when the server's process is over; at once, where that cannot be seen: it may be.
    pub async fn exited(&self) {
        self.server.wait().await.exited().await;
    }
}

/// A folder that cannot be entered is the configuration's fault. The system does not say whether it was the folder or the
/// program that it could not find, so the folder is looked at first.
pub(super) fn check_dir(program: &Program) -> Result<(), Seen> {
    let Some(dir) = &program.dir else { return Ok(()) };
    let entered = match std::fs::metadata(dir) {
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => system::may_enter(dir),
        Err(error) => Err(error),
    };
    entered.map_err(|error| {
        let dir = Redacted::head(&dir.to_string_lossy(), 200);
        Seen::NoDir { dir, reason: plain(&error) }
    })
}
