//! The keeper: the process that holds shared servers.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use linetender::Rig;
use linetender::hop::{self, Answer, Taken};
use linetender_gateway::keeper::{Keeper, NoSeat};
use linetender_holder::journal::Rotation;
use linetender_holder::trusted;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::order::{Ask, is_newer};
use super::private::Private;
use super::proof::Record;
use super::reach::{is_locked, this_program};
use super::{LOCK, SOCKET, program};
use crate::stop::{self, Signals};
use crate::{args, hold, places, runtime};

/// The hidden subcommand that a keeper is started with.
pub(super) const SUBCOMMAND: &str = "keeper";

/// The flag of the process that holds the servers, and not of the one that starts it.
pub(super) const DETACHED: &str = "--detached";

/// How long an asker may take to say what it wants.
const ASKS: Duration = Duration::from_secs(5);

/// How long the keeper before, and the reapers of its servers, may take to be gone.
const PREDECESSOR: Duration = Duration::from_secs(40);
const LOOK: Duration = Duration::from_millis(5);

/// Agents that are served at once. More of them run their servers themselves.
const AGENTS: usize = 4096;

/// Descriptors: of the keeper itself, for each agent, and for each server while it is being started again.
const OWN: usize = 20;
const OF_AGENT: usize = 3;
const OF_SERVER: usize = 12;

/// If nobody can be let in, how long until the next try; and how long whoever is turned away may take.
const AGAIN: Duration = Duration::from_millis(100);

/// How often it is looked whether the socket is still there.
const NAME_LOOK: Duration = Duration::from_secs(3);

/// How long calls under way may take when a keeper makes room for the next one.
const HANDS_OVER: Duration = Duration::from_secs(30);

pub(crate) fn keeper(args: &args::Keeper) -> ExitCode {
    // What the agent left open is the agent's: a keeper that held it would keep its locks, and the ends of its pipes.
    linetender::guard::close_inherited();
    if !args.detached {
        return detach(args);
    }
    // Out of the agent's session: what ends that does not end everybody's servers.
    let _ = rustix::process::setsid();
    let Ok(runtime) = runtime::build(&mut tokio::runtime::Builder::new_current_thread()) else {
        return ExitCode::FAILURE;
    };
    let code = runtime.block_on(begin(args));
    runtime.shutdown_background();
    code
}

async fn begin(args: &args::Keeper) -> ExitCode {
    let Begun { lock, fence, listener } = match begun(&args.folder).await {
        Ok(Some(begun)) => begun,
        // Another one was faster.
        Ok(None) => return ExitCode::SUCCESS,
        Err(_) => return ExitCode::FAILURE,
    };
    // What the next keeper waits for is also held by everything that could outlive this one.
    if let Ok(held) = lock.try_clone() {
        linetender::guard::let_reapers_hold(held.into());
    }
    linetender::guard::adopt_orphans();
    let code = hold(args, listener, fence).await;
    drop(lock);
    code
}

/// Starts the keeper itself, whose parent ends: it is nobody's child.
#[expect(clippy::disallowed_methods, reason = "this process ends at once, and has adopted nothing")]
fn detach(args: &args::Keeper) -> ExitCode {
    let started = this_program().and_then(|program| {
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).arg(&args.folder).arg(DETACHED);
        command.arg("--linger").arg(format!("{}ms", args.linger.as_millis()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    if started.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A keeper that has the lock and the socket's name.
struct Begun {
    lock: File,
    /// Its number among all that had the lock.
    fence: u64,
    listener: UnixListener,
}

/// Takes the lock, when everything of the keeper before is gone, and the socket's name. `None` if another keeper serves.
async fn begun(folder: &Path) -> io::Result<Option<Begun>> {
    trusted::folder(folder)?;
    let lock = trusted::append(&folder.join(LOCK))?;
    let socket = folder.join(SOCKET);
    let until = Instant::now() + PREDECESSOR;
    while !is_locked(&lock) {
        let serves = UnixStream::connect(&socket).await.is_ok();
        if serves || Instant::now() >= until {
            return Ok(None);
        }
        tokio::time::sleep(LOOK).await;
    }
    // Whatever has the name now was left behind: whoever listens has the lock.
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Before anybody can connect: a window that connects looks up here whether this is the keeper.
    let fence = Record::enter(&lock).unwrap_or_default().fence;
    let listener = UnixListener::bind(&socket)?;
    // Sticky: what cleans up runtime folders leaves it alone.
    // XDG Base Directory Specification: files that nobody touches for six hours may be removed, unless they have the sticky bit.
    // Some systems let only root set that bit on what is no folder.
    let with_mode = |mode| fs::set_permissions(&socket, fs::Permissions::from_mode(mode));
    with_mode(0o1600).or_else(|_| with_mode(0o600))?;
    Ok(Some(Begun { lock, fence, listener }))
}

/// What every connection needs.
struct Door {
    keeper: Keeper,
    private: Arc<Private>,
    fence: u64,
    /// A newer linetender wants to be the keeper.
    replaced: Notify,
}

impl Door {
    fn taken(&self, pipes: bool) -> Answer {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Answer::Taken(Taken { fence: self.fence, version, pipes })
    }
}

async fn hold(args: &args::Keeper, listener: UnixListener, fence: u64) -> ExitCode {
    let socket = Name::of(args.folder.join(SOCKET));
    linetender::raise_descriptor_limit();
    let holder = hold::begin("keeper", None, hold::Keep::Journal(Rotation::default()));
    let private = Private::read(places::state().map(|state| state.join("private.jsonl")));
    let learn = {
        let private = Arc::clone(&private);
        move |server: &linetender::Server, why: &str| private.learn(server, why)
    };
    let keeper = Keeper::new(Rig::new().followed_by(holder.clone()), args.linger, learn);
    holder.obeyed_by(Arc::new(program::Keeps(keeper.clone())));
    let door = Arc::new(Door { keeper: keeper.clone(), private, fence, replaced: Notify::new() });
    let mut signals = Signals::of(stop::SHIM);
    let mut talks = JoinSet::new();
    let places = Arc::new(Semaphore::new(AGENTS));
    let serve = async {
        let mut spare = File::open("/dev/null").ok();
        loop {
            while talks.try_join_next().is_some() {}
            let accepted = match listener.accept().await {
                // There is one descriptor left, for whoever has to be told that there are none.
                Err(_) if spare.take().is_some() => timeout(AGAIN, listener.accept()).await.ok(),
                accepted => Some(accepted),
            };
            let place = Arc::clone(&places).try_acquire_owned();
            match (accepted, place) {
                (Some(Ok((asker, _))), Ok(place))
                    if has_room(AGENTS - places.available_permits(), door.keeper.lines()) =>
                {
                    let door = Arc::clone(&door);
                    talks.spawn(async move {
                        talk(asker, &door).await;
                        drop(place);
                    });
                }
                (Some(Ok((asker, _))), _) => drop(timeout(AGAIN, refuse(asker, &door)).await),
                (Some(Err(_)) | None, _) => tokio::time::sleep(AGAIN).await,
            }
            spare = spare.or_else(|| File::open("/dev/null").ok());
        }
    };
    let why = tokio::select! {
        () = serve => "internal error",
        () = keeper.until_unused() => "nobody used it",
        _ = signals.next() => "stopped by a signal",
        () = socket.taken_away() => "its socket was removed",
        () = door.replaced.notified() => "replaced by a newer one",
    };
    // Whoever comes from now on finds nobody, and starts the next one; whoever waits at the door does too.
    drop((socket, listener));
    keeper.hand_over(HANDS_OVER).await;
    holder.end(why, hold::LAST_ENTRY).await;
    ExitCode::SUCCESS
}

/// The socket's name, which goes with this, if it is still ours.
struct Name {
    path: PathBuf,
    number: Option<u64>,
}

impl Name {
    fn of(path: PathBuf) -> Self {
        let number = Self::number(&path);
        Self { path, number }
    }

    fn number(path: &Path) -> Option<u64> {
        fs::symlink_metadata(path).ok().map(|about| about.ino())
    }

    /// Returns when nobody can find the socket any more: then the next keeper has to begin.
    async fn taken_away(&self) {
        while Self::number(&self.path) == self.number {
            tokio::time::sleep(NAME_LOOK).await;
        }
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if Self::number(&self.path) == self.number {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether there are descriptors for so many agents, and for starting each server again.
fn has_room(agents: usize, servers: usize) -> bool {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let needed = OWN + agents * OF_AGENT + (servers + 1) * OF_SERVER;
    most.is_none_or(|most| needed as u64 <= most)
}

/// Who is at the other end, if it is a process of this user.
fn peer(asker: &UnixStream) -> Option<UCred> {
    asker.peer_cred().ok().filter(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

async fn say(asker: &mut UnixStream, answer: &Answer) -> io::Result<()> {
    asker.write_all(format!("{}\n", serde_json::to_string(answer)?).as_bytes()).await
}

/// Says that there is no room. Whoever only wants to know whether somebody is here is told so.
async fn refuse(mut asker: UnixStream, door: &Door) -> io::Result<()> {
    if peer(&asker).is_some() {
        let (line, _) = hop::asked(&mut asker).await?;
        let answer = match serde_json::from_slice(&line) {
            Ok(Ask::Alive) => door.taken(false),
            _ => Answer::Private("the keeper has no room for another agent (file descriptors)".to_owned()),
        };
        say(&mut asker, &answer).await?;
    }
    Ok(())
}

async fn talk(mut asker: UnixStream, door: &Door) {
    let Some(peer) = peer(&asker) else { return };
    let Ok(Ok((line, offered))) = timeout(ASKS, hop::asked(&mut asker)).await else { return };
    let taken = || door.taken(offered.has_pipes());
    let (answer, seat) = match serde_json::from_slice(&line) {
        Ok(Ask::Alive) => (taken(), None),
        Ok(Ask::Line(order)) if is_newer(&order.version, env!("CARGO_PKG_VERSION")) => {
            door.replaced.notify_one();
            (Answer::Later, None)
        }
        Ok(Ask::Line(order)) => match order.server() {
            Err(why) => {
                (Answer::Private(format!("the keeper does not understand the command line: {why}")), None)
            }
            Ok(server) => {
                let private = door.private.why(&server).map(|why| NoSeat::Private(why.into()));
                let seat = private
                    .map_or_else(|| door.keeper.take(&server, order.hello.as_deref(), peer.pid()), Err);
                match seat {
                    Ok(seat) => (taken(), Some(seat)),
                    Err(NoSeat::Private(why)) => (Answer::Private(why.to_string()), None),
                    Err(NoSeat::Leaving) => (Answer::Later, None),
                }
            }
        },
        Err(error) => (Answer::Private(format!("the keeper does not understand the request: {error}")), None),
    };
    let told = timeout(ASKS, say(&mut asker, &answer)).await;
    if let (Some(seat), Ok(Ok(()))) = (seat, told) {
        seat.serve(asker, offered).await;
    }
}
