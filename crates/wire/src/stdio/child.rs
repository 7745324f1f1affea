//! One server process, from launch to the moment when nothing of it is left.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use command_fds::{CommandFdExt as _, FdMapping};
use linetender_core::{ClosePolicy, Limits as Sizes};
use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child as Process, Command};
use tokio::sync::{mpsc, oneshot};

use super::control::{CONTROL_FD, KILL, Record, TERM};
use super::outbox::{Outbox, Seal};
use super::reader::Listener;
use super::stderr::Ring;
use super::writer::WriteEnd;
use super::{local, reader, reaper, stderr, writer};
use crate::frame::Limits;
use crate::redact::Redacted;
use crate::seen::{Exit, Pipe, Seen};
use crate::tasks::{Owned, spawn_last};

/// Whether this system can have reapers: Linux can, and `--cfg linetender_portable` pretends that it is another.
const REAPERS: bool = cfg!(all(target_os = "linux", not(linetender_portable)));

/// After an exit, how long its last words on stderr are waited for.
const LAST_WORDS: Duration = Duration::from_millis(2);

/// After a seal, how long the writer may take to stop.
const WRITER_STOPS: Duration = Duration::from_millis(100);

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to run.
    pub program: Program,
    /// Who sees to it that nothing of the server is left behind.
    pub reaper: Reaper,
    /// The times of a polite end.
    pub close: ClosePolicy,
    /// The sizes.
    pub sizes: Sizes,
}

/// Who sees to it that nothing of a server is left behind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reaper {
    /// A process between us and the server. The binary has to call [`reaper::run_if_asked`] first thing in `main`.
    Binary(PathBuf),
    /// Only we ourselves, by the server's process group: what leaves the group, or outlives us, is not found.
    None,
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
    /// These variables and no others.
    Only(Vec<(OsString, OsString)>),
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("Ours"),
            Self::Only(variables) => f.debug_set().entries(variables.iter().map(|(name, _)| name)).finish(),
        }
    }
}

/// What happened to the process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// It said its first byte.
    FirstByte,
    /// It is over, and this was seen.
    Lost(Seen),
    /// It closed its output.
    OutputClosed,
    /// Nobody reads its input any more: what was not consumed is known. Only after it was told to go.
    NoReader,
    /// Nothing of its tree is left. Only after it was told to go.
    Gone,
}

/// An order to the process.
#[derive(Clone, Copy, Debug)]
enum Order {
    Kill,
    Close,
}

/// A server process. Dropping it kills its tree.
pub struct Child {
    outbox: Outbox,
    orders: mpsc::Sender<Order>,
    drain: mpsc::Sender<oneshot::Sender<()>>,
    consumed: Arc<OnceLock<u64>>,
    pid: Arc<OnceLock<i32>>,
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
        let failed = |error: io::Error| Seen::NoProcess { reason: error.to_string() };
        let (control, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        control.set_nonblocking(true).map_err(failed)?;
        let control = UnixStream::from_std(control).map_err(failed)?;
        let (process, (stdin, stdout, stderr)) = match &launch.reaper {
            Reaper::Binary(reaper) if REAPERS => {
                let mut process = spawn(launch, reaper, theirs.into()).map_err(failed)?;
                let pipes = pipes(&mut process).map_err(failed)?;
                (Some(process), pipes)
            }
            Reaper::Binary(_) | Reaper::None => (None, spawn_here(launch, theirs).map_err(failed)?),
        };

        let (outbox, frames, seal) = Outbox::new(launch.sizes.queue.into());
        let accepted = Arc::new(AtomicU64::new(0));
        let limits = Limits { length: launch.sizes.message as usize, depth: launch.sizes.depth.into() };
        let (drain, drains) = mpsc::channel(1);
        let ring = Ring::new(launch.sizes.stderr as usize);
        let (orders, ordered) = mpsc::channel(4);
        let keeper = Keeper {
            process,
            control,
            ordered,
            events: events.clone(),
            writer: Owned::spawn(writer::write(stdin, frames, Arc::clone(&seal), Arc::clone(&accepted))),
            last_words: Owned::spawn(stderr::drain(stderr, ring.clone())),
            _reader: Owned::spawn(reader::read(stdout, limits, listener, drains, events)),
            ring,
            seal,
            program: launch.program.clone(),
            close: launch.close,
            accepted,
            consumed: Arc::default(),
            pid: Arc::default(),
        };
        let child = Self {
            outbox,
            orders,
            drain,
            consumed: Arc::clone(&keeper.consumed),
            pid: Arc::clone(&keeper.pid),
            ring: keeper.ring.clone(),
        };
        spawn_last(keeper.keep());
        Ok(child)
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
        self.pid.get().copied()
    }
}

/// A command with the server's surroundings.
fn command(program: &Program, run: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(run);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(dir) = &program.dir {
        command.current_dir(dir);
    }
    if let Env::Only(variables) = &program.env {
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    }
    command
}

/// Starts the reaper, which starts the server on the same pipes.
fn spawn(launch: &Launch, reaper: &Path, control: OwnedFd) -> io::Result<Process> {
    let mut command = command(&launch.program, reaper);
    command.arg(reaper::SUBCOMMAND).arg(std::process::id().to_string()).args(&launch.program.argv);
    let mapping = FdMapping { parent_fd: control, child_fd: CONTROL_FD };
    command.as_std_mut().fd_mappings(vec![mapping]).map_err(io::Error::other)?;
    command.spawn()
}

/// Starts the server itself, and plays the reaper's part here. That it could not be started is for the keeper to tell.
fn spawn_here(launch: &Launch, control: std::os::unix::net::UnixStream) -> io::Result<Pipes> {
    control.set_nonblocking(true)?;
    let control = UnixStream::from_std(control)?;
    let (run, args) = launch.program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let started = command(&launch.program, run).args(args).process_group(0).spawn();
    let (pipes, started) = match started {
        Ok(mut server) => (pipes(&mut server)?, Ok(server)),
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

/// The one task that knows whether the process lives.
struct Keeper {
    /// The reaper, if there is one.
    process: Option<Process>,
    control: UnixStream,
    ordered: mpsc::Receiver<Order>,
    events: mpsc::Sender<Event>,
    writer: Owned<(pipe::Sender, WriteEnd)>,
    last_words: Owned<()>,
    /// Owned only: it ends with us.
    _reader: Owned<()>,
    ring: Ring,
    seal: Arc<Seal>,
    program: Program,
    close: ClosePolicy,
    accepted: Arc<AtomicU64>,
    consumed: Arc<OnceLock<u64>>,
    pid: Arc<OnceLock<i32>>,
}

/// What the keeper woke up for.
enum News {
    Record(Record),
    ReaperGone,
    Order(Option<Order>),
    WriterDone(pipe::Sender, WriteEnd),
}

impl Keeper {
    async fn keep(mut self) {
        let mut tree = Tree { ordered: None, clear: false, lost: false, stdin: Stdin::WithWriter };
        let mut record = [0; Record::SIZE];
        let mut filled = 0;
        while !(tree.clear && tree.ordered.is_some() && !matches!(tree.stdin, Stdin::WithWriter)) {
            let news = tokio::select! {
                biased;
                read = self.control.read(&mut record[filled..]), if !tree.clear => match read {
                    Ok(bytes @ 1..) => {
                        filled += bytes;
                        if filled < Record::SIZE {
                            continue;
                        }
                        filled = 0;
                        match Record::decode(record) {
                            Some(record) => News::Record(record),
                            None => News::ReaperGone,
                        }
                    }
                    Ok(_) | Err(_) => News::ReaperGone,
                },
                order = self.ordered.recv(), if !matches!(tree.ordered, Some(Order::Kill)) => News::Order(order),
                done = &mut self.writer, if matches!(tree.stdin, Stdin::WithWriter) => match done {
                    Ok((stdin, end)) => News::WriterDone(stdin, end),
                    Err(_) => return,
                },
            };
            self.handle(news, &mut tree).await;
        }
        self.finish(tree).await;
    }

    async fn handle(&mut self, news: News, tree: &mut Tree) {
        match news {
            News::Record(Record::Spawned(pid)) => {
                let _ = self.pid.set(pid);
            }
            News::Record(Record::Failed(errno)) => {
                tree.clear = true;
                self.lose(tree, self.not_started(errno)).await;
            }
            News::Record(Record::Exited(exit)) => self.exited(tree, exit).await,
            News::Record(Record::Clear) => tree.clear = true,
            News::ReaperGone => {
                tree.clear = true;
                if !tree.lost && tree.ordered.is_none() {
                    self.kill_without_reaper();
                    self.lose(tree, Seen::ReaperDied).await;
                }
            }
            News::Order(order) => self.order(tree, order).await,
            News::WriterDone(stdin, end) => {
                tree.stdin = Stdin::Ours(stdin);
                if matches!(end, WriteEnd::Broken) {
                    self.lose(tree, Seen::Closed { what: Pipe::Stdin, stderr: self.ring.tail() }).await;
                }
            }
        }
    }

    /// Tells of the end, once.
    async fn lose(&self, tree: &mut Tree, seen: Seen) {
        if !std::mem::replace(&mut tree.lost, true) {
            let _ = self.events.send(Event::Lost(seen)).await;
        }
    }

    async fn exited(&mut self, tree: &mut Tree, exit: Exit) {
        if tree.lost || tree.ordered.is_some() {
            tree.lost = true;
            return;
        }
        // What it said last is the best explanation there is; a grandchild that holds the pipe must not delay us.
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.last_words).await;
        let stderr = self.ring.tail();
        self.lose(tree, Seen::Exited { exit, stderr }).await;
    }

    async fn order(&mut self, tree: &mut Tree, order: Option<Order>) {
        // Whoever ends a process has sealed it; should somebody not have, the writer must not outlive this.
        self.seal.set();
        match order {
            Some(Order::Close) => {
                tree.ordered = Some(Order::Close);
                // End of file is the first rung of the ladder; the others follow by themselves. The writer was sealed
                // before, so it gives the pipe back at once; if not, its task is ended and the pipe with it.
                if matches!(tree.stdin, Stdin::WithWriter) {
                    let _ = tokio::time::timeout(WRITER_STOPS, &mut self.writer).await;
                    self.writer.end();
                }
                tree.stdin = Stdin::Closed;
                self.climb_down(tree).await;
            }
            // Nobody is left to give orders: the same as the harshest.
            Some(Order::Kill) | None => {
                tree.ordered = Some(Order::Kill);
                let _ = self.control.write_all(&[KILL]).await;
            }
        }
    }

    /// Waits for the server to go by itself, then by TERM, then by KILL.
    async fn climb_down(&mut self, tree: &mut Tree) {
        for (patience, rung) in [(self.close.stdin, TERM), (self.close.term, KILL)] {
            let patience = Duration::from_nanos(patience.nanos());
            let gone = tokio::time::timeout(patience, self.wait_clear(tree));
            if gone.await.is_ok() {
                return;
            }
            let _ = self.control.write_all(&[rung]).await;
        }
        tree.ordered = Some(Order::Kill);
    }

    /// Reads records until the tree is clear. Cancel-safe between records: each is sent whole.
    async fn wait_clear(&mut self, tree: &mut Tree) {
        let mut record = [0; Record::SIZE];
        while !tree.clear {
            match self.control.read_exact(&mut record).await {
                Ok(_) if Record::decode(record) == Some(Record::Clear) => tree.clear = true,
                Ok(_) => {}
                Err(_) => tree.clear = true,
            }
        }
    }

    /// Our reaper is gone, and with it the knowledge of escapees: what can be found is killed.
    fn kill_without_reaper(&self) {
        let Some(pid) = self.pid.get().and_then(|&pid| Pid::from_raw(pid)) else { return };
        if let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            let _ = rustix::process::pidfd_send_signal(pidfd, Signal::KILL);
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }

    fn not_started(&self, errno: i32) -> Seen {
        let error = io::Error::from_raw_os_error(errno);
        let program = self.program.argv.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotADirectory => {
                let searched = if program.contains('/') { String::new() } else { self.path() };
                Seen::NotRunnable {
                    program: Redacted::head(&program, 200),
                    searched: Redacted::head(&searched, 1000),
                    reason: plain(&error),
                }
            }
            // ENOEXEC has no kind of its own.
            _ if errno == rustix::io::Errno::NOEXEC.raw_os_error() => Seen::NotRunnable {
                program: Redacted::head(&program, 200),
                searched: Redacted::default(),
                reason: plain(&error),
            },
            _ => Seen::NoProcess { reason: plain(&error) },
        }
    }

    fn path(&self) -> String {
        match &self.program.env {
            #[expect(clippy::disallowed_methods, reason = "what the server was given is our own environment")]
            Env::Ours => std::env::var("PATH").unwrap_or_default(),
            Env::Only(variables) => {
                let path = variables.iter().find(|(name, _)| name == "PATH");
                path.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
            }
        }
    }

    /// The tree is gone, and somebody wanted it gone: what is unread is measured, and all is told.
    async fn finish(mut self, tree: Tree) {
        if let Stdin::Ours(stdin) = &tree.stdin
            && no_reader(stdin)
            && let Ok(unread) = rustix::io::ioctl_fionread(stdin)
        {
            let _ = self.consumed.set(self.accepted.load(Ordering::Acquire).saturating_sub(unread));
            let _ = self.events.send(Event::NoReader).await;
        }
        drop(tree);
        self.last_words.end();
        if let Some(reaper) = &mut self.process {
            let _ = reaper.wait().await;
        }
        let _ = self.events.send(Event::Gone).await;
    }
}

/// What the keeper knows.
struct Tree {
    ordered: Option<Order>,
    /// Nothing of it is left.
    clear: bool,
    /// Its end was told.
    lost: bool,
    stdin: Stdin,
}

/// Who has our end of the server's stdin.
enum Stdin {
    WithWriter,
    Ours(pipe::Sender),
    Closed,
}

/// POLLERR on the write end: every read end is closed.
fn no_reader(stdin: &pipe::Sender) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(stdin, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1)) && fds[0].revents().contains(PollFlags::ERR)
}

/// The system's words, without the number behind them.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}
