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
        while Instant::now() < until {
            let Knock { mut stream, keeper } = match knock(&self.folder).await {
                Ok(Some(knock)) => knock,
                Ok(None) => {
                    self.start().await?;
                    continue;
                }
                // More wait there than may.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    last = format!("the keeper takes nobody: {error}");
                    tokio::time::sleep(BUSY).await;
                    continue;
                }
                Err(error) => return Err(format!("{}: {error}", self.folder.join(SOCKET).display())),
            };
            let mut offer = Offer::new();
            match timeout(ANSWERS, hop::ask(&mut stream, &order, &mut offer)).await {
                Ok(Ok(Answer::Taken(taken))) => {
                    return Ok(Reached::new(stream, offer, &taken, Arc::new(keeper)));
                }
                Ok(Ok(Answer::Private(why))) => return Err(why),
                Ok(Ok(Answer::Later)) => {
                    "the keeper is being replaced".clone_into(&mut last);
                    tokio::time::sleep(LOOK).await;
                }
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

    /// Starts a keeper, or waits for whoever does.
    async fn start(&self) -> Result<(), String> {
        let until = Instant::now() + BEGINS;
        let lock = trusted::append(&self.folder.join(STARTS)).map_err(|error| format!("{STARTS} {error}"))?;
        // What would keep a keeper from beginning is told here: it has nobody to tell it to.
        let held = trusted::append(&self.folder.join(LOCK)).map_err(|error| format!("{LOCK} {error}"))?;
        if self.folder.join(SOCKET).is_dir() {
            return Err(format!("{SOCKET} is a folder"));
        }
        let mut started: Option<Instant> = None;
        loop {
            // Somebody else may have started one meanwhile.
            if matches!(knock(&self.folder).await, Ok(Some(_))) {
                return Ok(());
            }
            // One that was started may have found the one before still there, and gone.
            let due = started.is_none_or(|last| last.elapsed() >= AGAIN);
            if due && (started.is_some() || is_locked(&lock)) {
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
        command.spawn().map(drop)
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
        if let Some(handle) = &self.handle {
            tracing::warn!("the keeper of shared servers does not answer; killing it");
            handle.kill();
        }
    }
}
