//! One server process, from launch to the moment when nothing of it is left.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use command_fds::{CommandFdExt as _, FdMapping};
use linetender_core::{ClosePolicy, Limits as Sizes};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child as Process, Command};
use tokio::sync::{SetOnce, mpsc, oneshot};

use super::control::{CONTROL_FD, HELD, HELD_FD, LIFELINE, LIFELINE_FD};
use super::keeper::{Keeper, plain};
use super::lifeline::Lifeline;
use super::platform::{Found, Platform, Started, Starter, System};
use super::stderr::Ring;
use super::{descriptors, guard, local, orphans, reader, reaper, reaper_program, signals, stderr, writer};
use crate::elsewhere::Elsewhere;
use crate::frame::Limits;
use crate::redact::Redacted;
use crate::seam::{Event, Listener, Outbox};
use crate::seen::Seen;
use crate::tasks::{Owned, spawn_last};

/// Whether this system can have reapers: Linux can, and `--cfg linetender_portable` pretends that it is another.
const REAPERS: bool = cfg!(all(target_os = "linux", not(linetender_portable)));

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to run.
    pub program: Program,
    /// Who sees to it that nothing of the server is left behind.
    pub reaper: Reaper,
    /// What it does not outlive, if anything. Where there are no reapers, it is not started then.
    pub lifeline: Option<Arc<Lifeline>>,
    /// The times of a polite end.
    pub close: ClosePolicy,
    /// The sizes.
    pub sizes: Sizes,
}

/// Who sees to it that nothing of a server is left behind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reaper {
    /// A process between us and the server: this program, if it has called [`reaper::run_if_asked`], else
    /// `linetender-reaper` or `linetender` on `PATH`. If there is none, the server is not started.
    Find,
    /// The same process, from this binary. It has to call [`reaper::run_if_asked`] first thing in `main`.
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
    Kill,
    Close,
}

/// A server process. Dropping it kills its tree.
pub struct Child {
    outbox: Outbox,
    orders: mpsc::Sender<Order>,
    drain: mpsc::Sender<oneshot::Sender<()>>,
    consumed: Arc<OnceLock<u64>>,
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
            Reaper::Binary(reaper) if REAPERS => Self::start(launch, Some(reaper), listener, events),
            Reaper::Find if REAPERS => Self::start(launch, Some(&reaper_program::find()?), listener, events),
            Reaper::Find | Reaper::Binary(_) | Reaper::None if launch.lifeline.is_some() => {
                Err(Seen::NoReaper { reason: "a server with a lease needs one".to_owned() })
            }
            Reaper::Find | Reaper::Binary(_) | Reaper::None => Self::start(launch, None, listener, events),
        }
    }

    /// Starts a process of this machine's, below its reaper if it gets one.
    fn start(
        launch: &Launch,
        reaper: Option<&PathBuf>,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, Seen> {
        reaper_program::check_mark()?;
        signals::keep_exit_statuses();
        let failed = |error: io::Error| Seen::NoProcess { reason: error.to_string() };
        let (control, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        control.set_nonblocking(true).map_err(failed)?;
        let control = UnixStream::from_std(control).map_err(failed)?;
        check_dir(&launch.program)?;
        let (process, (stdin, stdout, stderr)) = if let Some(reaper) = reaper {
            let process = spawn(launch, reaper, theirs.into());
            let (mut process, started) = process.map_err(|error| no_reaper(reaper, &error))?;
            let pipes = pipes(&mut process).map_err(failed)?;
            (Some(System { process, program: reaper.clone(), _started: started }), pipes)
        } else {
            (None, spawn_here(launch, theirs).map_err(failed)?)
        };
        Ok(Self::of(Started { platform: process, stdin, stdout, stderr, control }, launch, listener, events))
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
        let (drain, drains) = mpsc::channel(1);
        let ring = Ring::new(launch.sizes.stderr as usize);
        let (orders, ordered) = mpsc::channel(4);
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
            last_words: Owned::spawn(stderr::drain(stderr, ring.clone(), Arc::clone(&listener))),
            reader: Owned::spawn(reader::read(stdout, limits, listener, drains, events)),
            ring,
            seal,
            program: launch.program.clone(),
            close: launch.close,
            accepted,
            consumed: Arc::default(),
            server: Arc::default(),
        };
        let child = Self {
            outbox,
            orders,
            drain,
            consumed: Arc::clone(&keeper.consumed),
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
        let (done, drained) = oneshot::channel();
        if self.drain.send(done).await.is_ok() {
            let _ = drained.await;
        }
    }

    /// Kills the whole tree.
    pub fn kill(&self) {
        // The queue has room for every order there is, or the keeper is gone and so is the tree.
        let _ = self.orders.try_send(Order::Kill);
    }

    /// Closes stdin, then TERM, then KILL.
    pub fn close(&self) {
        let _ = self.orders.try_send(Order::Close);
    }

    /// How many of the bytes that were written were ever read: known once nobody is left to read the others.
    pub fn consumed(&self) -> Option<u64> {
        self.consumed.get().copied()
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

    /// Returns when the server's process is over; never, where that cannot be seen.
    pub async fn exited(&self) {
        self.server.wait().await.exited().await;
    }
}

/// A command with the server's surroundings.
fn command(program: &Program, run: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(run);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    // Of two values under one name the later one holds.
    match &program.env {
        Env::Ours => {}
        Env::OursAnd(variables) => {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
        }
        Env::Only(variables) => {
            command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        }
    }
    command
}

/// A folder that cannot be entered is the configuration's fault. The system does not say whether it was the folder or the
/// program that it could not find, so the folder is looked at first.
fn check_dir(program: &Program) -> Result<(), Seen> {
    let Some(dir) = &program.dir else { return Ok(()) };
    let entered = match std::fs::metadata(dir) {
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => rustix::fs::access(dir, rustix::fs::Access::EXEC_OK).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    entered.map_err(|error| {
        let dir = Redacted::head(&dir.to_string_lossy(), 200);
        Seen::NoDir { dir, reason: plain(&error) }
    })
}

/// A reaper that is not there or may not be run is the configuration's fault; that there is no room for one is not.
fn no_reaper(reaper: &Path, error: &io::Error) -> Seen {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            let reason = format!("cannot run {}: {}", reaper.display(), plain(error));
            Seen::NoReaper { reason }
        }
        _ => Seen::NoProcess { reason: error.to_string() },
    }
}

/// Starts the reaper, which starts the server on the same pipes.
fn spawn(launch: &Launch, reaper: &Path, control: OwnedFd) -> io::Result<(Process, orphans::Started)> {
    let mut command = command(&launch.program, reaper);
    let soft = descriptors::before().map_or_else(|| "-".to_owned(), |soft| soft.to_string());
    command.env(reaper_program::MARKER, std::process::id().to_string());
    command.arg(reaper::SUBCOMMAND).arg(std::process::id().to_string()).arg(soft).args(&launch.program.argv);
    let mut mappings = vec![FdMapping { parent_fd: control, child_fd: CONTROL_FD }];
    if let Some(held) = guard::held_by_reapers() {
        command.env(HELD, "1");
        mappings.push(FdMapping { parent_fd: held.try_clone()?, child_fd: HELD_FD });
    }
    if let Some(lifeline) = &launch.lifeline {
        command.env(LIFELINE, "1");
        mappings.push(FdMapping { parent_fd: lifeline.handed()?, child_fd: LIFELINE_FD });
    }
    command.as_std_mut().fd_mappings(mappings).map_err(io::Error::other)?;
    orphans::start(&mut command)
}

/// Starts the server itself, and plays the reaper's part here. That it could not be started is for the keeper to tell.
fn spawn_here(launch: &Launch, control: std::os::unix::net::UnixStream) -> io::Result<Pipes> {
    control.set_nonblocking(true)?;
    let control = UnixStream::from_std(control)?;
    let (run, args) = launch.program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = command(&launch.program, run);
    signals::reset_in(command.as_std_mut());
    let started = orphans::start(command.args(args).process_group(0));
    let (pipes, started) = match started {
        Ok((mut server, started)) => (pipes(&mut server)?, Ok((server, started))),
        Err(error) => {
            // Pipes that lead nowhere: everything after this is as if the server had died at once.
            let (to, (from, errors)) = (pipe::pipe()?.0, (pipe::pipe()?.1, pipe::pipe()?.1));
            ((to, from, errors), Err(error))
        }
    };
    spawn_last(local::watch(started, control));
    Ok(pipes)
}

/// Our ends of a server's stdin, stdout and stderr.
type Pipes = (pipe::Sender, pipe::Receiver, pipe::Receiver);

fn pipes(process: &mut Process) -> io::Result<Pipes> {
    let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
    let stdin = process.stdin.take().ok_or_else(missing)?.into_owned_fd()?;
    let stdout = process.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
    let stderr = process.stderr.take().ok_or_else(missing)?.into_owned_fd()?;
    Ok((
        pipe::Sender::from_owned_fd(stdin)?,
        pipe::Receiver::from_owned_fd(stdout)?,
        pipe::Receiver::from_owned_fd(stderr)?,
    ))
}
