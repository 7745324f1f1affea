//! The way to the keeper: its socket, if it is this user's, and starting one where there is none.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use linetender::hop::{self, Answer, Found, Offer, Owner, Reached, Way};
use linetender::{Hello, Server};
use linetender_holder::trusted;
use rustix::fs::FlockOperation;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use super::order::{Ask, Order};
use super::process::Handle;
use super::proof::{self, LockHolder};
use super::{LOCK, SOCKET, STARTS};
use crate::places;

/// How long a keeper may take to answer. One that takes longer hangs.
const ANSWERS: Duration = Duration::from_secs(5);

/// The longest introduction of an agent that is passed on.
const HELLO: usize = 64 * 1024;

/// How long a keeper that is suspected may take to say that it is there.
const ALIVE: Duration = Duration::from_secs(3);

/// How long a keeper may take to begin: the servers of the one before have to be gone first.
const BEGINS: Duration = Duration::from_secs(45);

/// If it has not begun by then, another one is started.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a process at the keeper's socket that is not proven to be the keeper may take to answer as one. A keeper in another process
/// namespace cannot be proven and answers at once; a keeper that goes in this moment is gone by then.
const STRANGER: Duration = Duration::from_secs(1);

/// How long a process that is neither a keeper nor a reaper of its servers may hold a lock of the keeper. It is looked at twice: a keeper
/// that has just taken the lock has not entered itself yet.
const HELD: Duration = Duration::from_secs(2);

/// How long to wait where more wait than may.
const BUSY: Duration = Duration::from_millis(200);

/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(5);

/// The way to the keeper, and what is asked of it.
#[derive(Debug)]
pub(crate) struct ToKeeper {
    folder: PathBuf,
    order: Order,
    linger: Option<Duration>,
}

impl ToKeeper {
    /// The way of this process.
    ///
    /// # Errors
    /// If there is none, in a sentence.
    pub(crate) fn new(server: &Server, linger: Option<Duration>) -> Result<Self, String> {
        let folder = places::runtime().ok_or("neither XDG_RUNTIME_DIR nor HOME is set")?;
        Ok(Self { folder, order: Order::of(server)?, linger })
    }

    async fn seated(&self, hello: &Hello) -> Result<Reached, String> {
        trusted::folder(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let mut order = self.order.clone();
        // A long one says more than what the agent can do, and the keeper reads no more than that.
        if let Hello::Agent(params) = hello
            && params.len() <= HELLO
        {
            order.hello = Some(params.to_string());
        }
        let order = serde_json::to_string(&Ask::Line(Box::new(order))).map_err(|error| error.to_string())?;
        let mut last = "the keeper cannot be reached".to_owned();
        let until = Instant::now() + BEGINS;
        let mut strange: Option<Instant> = None;
        while Instant::now() < until {
            let Knock { mut stream, keeper } = match knock(&self.folder).await {
                Ok(Some(knock)) => knock,
                Ok(None) => {
                    strange = None;
                    self.start().await?;
                    continue;
                }
                // More wait there than may.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    let since = *strange.get_or_insert_with(Instant::now);
                    if since.elapsed() >= STRANGER
                        && matches!(LockHolder::of(&self.folder), LockHolder::Nobody | LockHolder::Other)
                    {
                        return Err(self.foreign(None));
                    }
                    last = format!("the keeper takes nobody: {error}");
                    tokio::time::sleep(BUSY).await;
                    continue;
                }
                Err(error) => return Err(format!("{}: {error}", self.folder.join(SOCKET).display())),
            };
            let proven = keeper.is_proven();
            let patience = if proven {
                strange = None;
                ANSWERS
            } else {
                STRANGER.saturating_sub(strange.get_or_insert_with(Instant::now).elapsed())
            };
            let mut offer = Offer::new();
            match timeout(patience, hop::ask(&mut stream, &order, &mut offer)).await {
                Ok(Ok(Answer::Taken(taken))) => {
                    return Ok(Reached::new(stream, offer, &taken, Arc::new(keeper)));
                }
                Ok(Ok(Answer::Private(why))) => return Err(why),
                Ok(Ok(Answer::Later)) => {
                    "the keeper is being replaced".clone_into(&mut last);
                    tokio::time::sleep(LOOK).await;
                }
                // No answer of a keeper: asking again changes nothing.
                Ok(Err(error))
                    if matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::FileTooLarge) =>
                {
                    return Err(self.foreign(keeper.pid));
                }
                Ok(Err(_)) if strange.is_some_and(|since| since.elapsed() >= STRANGER) => {
                    return Err(self.foreign(keeper.pid));
                }
                Err(_) if !proven => return Err(self.foreign(keeper.pid)),
                Ok(Err(error)) => {
                    last = format!("the keeper went away: {error}");
                    tokio::time::sleep(LOOK).await;
                }
                Err(_) => {
                    "the keeper does not answer".clone_into(&mut last);
                    // It may be this process that was stopped, or an order that takes long.
                    if !keeper.answers().await {
                        keeper.kill();
                        keeper.gone().await;
                    }
                }
            }
        }
        Err(last)
    }

    /// The sentence about a process at the keeper's socket that is no keeper.
    fn foreign(&self, pid: Option<i32>) -> String {
        let who = pid
            .filter(|pid| *pid != 0)
            .map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
        format!("{who} that is not linetender's keeper listens at {}", self.folder.join(SOCKET).display())
    }

    /// Starts a keeper, or waits for whoever does.
    async fn start(&self) -> Result<(), String> {
        let until = Instant::now() + BEGINS;
        let lock = trusted::append(&self.folder.join(STARTS)).map_err(|error| format!("{STARTS} {error}"))?;
        // What would keep a keeper from beginning is told here: it has nobody to tell it to.
        let held = trusted::append(&self.folder.join(LOCK)).map_err(|error| format!("{LOCK} {error}"))?;
        if self.folder.join(SOCKET).is_dir() {
            return Err(format!("{SOCKET} is a folder"));
        }
        let begun = Instant::now();
        let mut started: Option<Instant> = None;
        let mut was_other = false;
        loop {
            // Somebody else may have started one meanwhile.
            if matches!(knock(&self.folder).await, Ok(Some(_))) {
                return Ok(());
            }
            // One that was started may have found the one before still there, and gone.
            let due = started.is_none_or(|last| last.elapsed() >= AGAIN);
            // A window that starts a keeper needs no longer: a window that was stopped meanwhile, or another program, has that lock.
            let starts = || started.is_some() || begun.elapsed() >= HELD || is_locked(&lock);
            if due && starts() {
                // Servers of the keeper before may take long to end. Another holder serves nobody.
                let other = begun.elapsed() >= HELD && LockHolder::of(&self.folder) == LockHolder::Other;
                if other && was_other {
                    let lock = self.folder.join(LOCK);
                    return Err(format!(
                        "a process that shares no servers holds the lock {}",
                        lock.display()
                    ));
                }
                was_other = other;
                self.detach().map_err(|error| format!("cannot start the keeper: {error}"))?;
                started = Some(Instant::now());
            }
            if Instant::now() >= until {
                let seconds = BEGINS.as_secs();
                // A lock that is had is let go with the file.
                let why =
                    if is_locked(&held) { "" } else { ": a process of the one before still holds its lock" };
                return Err(format!("the keeper did not begin within {seconds} s{why}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl ToKeeper {
    /// Starts a keeper that is nobody's child: the process that we start starts it, and ends.
    fn detach(&self) -> io::Result<()> {
        let mut command = tokio::process::Command::new(this_program()?);
        command.arg(super::keeper::SUBCOMMAND).arg(&self.folder).env_clear().envs(places::of_keeper());
        if let Some(linger) = self.linger {
            command.arg("--linger").arg(format!("{}ms", linger.as_millis()));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        // It ends at once; the runtime buries it.
        linetender::Process::spawn(&mut command).map(drop)
    }
}

impl Way for ToKeeper {
    fn reach<'a>(&'a self, hello: &'a Hello) -> Pin<Box<dyn Future<Output = Found> + Send + 'a>> {
        Box::pin(async move { self.seated(hello).await.map_or_else(runs_here, Found::There) })
    }
}

/// Where there is no way to a keeper, and why.
#[derive(Debug)]
pub(crate) struct NoKeeper(pub(crate) String);

impl Way for NoKeeper {
    fn reach<'a>(&'a self, _hello: &'a Hello) -> Pin<Box<dyn Future<Output = Found> + Send + 'a>> {
        Box::pin(std::future::ready(runs_here(self.0.clone())))
    }
}

/// This process runs the server itself then, as one without `--share` does.
fn runs_here(why: String) -> Found {
    linetender::guard::adopt_orphans();
    Found::Here { lifeline: None, why: Some(why) }
}

/// This very program, also after its file was replaced by an update.
pub(super) fn this_program() -> io::Result<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

/// Whether we have the lock, which goes with the file.
pub(super) fn is_locked(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// A connection to a keeper of this user, before anything is asked.
struct Knock {
    stream: UnixStream,
    keeper: Process,
}

/// Connects to the keeper, if somebody is there.
async fn knock(folder: &Path) -> io::Result<Option<Knock>> {
    let path = folder.join(SOCKET);
    let connected = async {
        let stream = UnixStream::connect(&path).await?;
        trusted::check_socket(&path)?;
        Ok::<_, io::Error>(stream)
    };
    let stream = match timeout(ANSWERS, connected).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if is_nobody(&error) => return Ok(None),
        Ok(Err(error)) => return Err(error),
        // More wait there than may: nobody takes them.
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    let peer = stream.peer_cred()?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("belongs to a process of user {}", peer.uid())));
    }
    // It was there when we connected, so its number is its own, unless it went in this very moment.
    let handle = peer.pid().and_then(Handle::of);
    Ok(Some(Knock { stream, keeper: Process { folder: folder.to_owned(), pid: peer.pid(), handle } }))
}

/// Whether an error says that no keeper is there, or that it goes in this moment.
fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset)
}

/// The keeper's process.
struct Process {
    folder: PathBuf,
    pid: Option<i32>,
    handle: Option<Handle>,
}

impl Process {
    /// True if this is a keeper of this user, and not another program at its socket.
    fn is_proven(&self) -> bool {
        // The handle is older than the proof, so a process that lives afterwards is the one that was proven.
        self.pid
            .zip(self.handle.as_ref())
            .is_some_and(|(pid, handle)| proof::is_keeper(&self.folder, pid) && handle.lives())
    }

    /// Returns when it is gone, or that cannot be seen.
    async fn gone(&self) {
        let until = Instant::now() + ANSWERS;
        while self.handle.as_ref().is_some_and(Handle::lives) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Owner for Process {
    fn answers(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async {
            let alive = async {
                // Without its socket it cannot be asked: then it is on its way out, unless it is stopped.
                let Ok(Some(mut knock)) = knock(&self.folder).await else {
                    return !self.handle.as_ref().is_some_and(Handle::is_stopped);
                };
                let ask = serde_json::to_string(&Ask::Alive).unwrap_or_default();
                // Whoever went in this moment did not hang.
                let _ = hop::ask(&mut knock.stream, &ask, &mut None).await;
                true
            };
            timeout(ALIVE, alive).await.unwrap_or_default()
        })
    }

    fn pid(&self) -> Option<i32> {
        self.pid
    }

    fn kill(&self) {
        match &self.handle {
            Some(handle) if self.is_proven() => {
                tracing::warn!("the keeper of shared servers does not answer; killing it");
                handle.kill();
            }
            _ => {
                tracing::warn!(
                    "the keeper of shared servers does not answer, and cannot be proven to be one"
                );
            }
        }
    }
}
