//! Servers that several agents of one user share without a config: the first who asks for a server opens its line, and whoever
//! asks for the same one is put on it.
//!
//! Two ask for the same server if everything of it is the same: command, folder, environment, policy. That is compared here, in
//! memory, and stands in no file name.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::session::{self, Agent};
use linetender::{Hello, Line, Rig, Server};
use linetender_wire::frame;
use linetender_wire::hop::{self, Offered, Stand};
use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::budget::{self, Budget};
use crate::principal::{Principal, Stay, Visitor};

/// How much longer a server stays that is down: its restart budget must not begin anew with each try.
const FAILED: u32 = 6;

/// How many servers are known to be private; the oldest are learnt again.
const PRIVATE: usize = 256;

/// While lines are handed over: how often it is looked whether calls are under way, and how often in a row none must be.
const QUIET_LOOK: Duration = Duration::from_millis(10);
const QUIET_LOOKS: u32 = 5;

/// How long agents may take to hear that this keeper goes.
const FAREWELL: Duration = Duration::from_secs(1);

/// Holds shared servers. Cheap to clone.
#[derive(Clone)]
pub struct Keeper(Arc<Inner>);

/// Who hears of a server that is private, and why.
type Learnt = dyn Fn(&Server, &str) + Send + Sync;

struct Inner {
    rig: Rig,
    kept: Mutex<Kept>,
    last: AtomicU64,
    /// Somebody came or went.
    changed: Notify,
    /// How long a server that nobody is on stays.
    linger: Duration,
    learnt: Box<Learnt>,
}

#[derive(Default)]
struct Kept {
    lines: Vec<Held>,
    /// Servers whose lines are being closed: two trees of one never live at once.
    closing: Vec<Server>,
    /// Servers that have to be alone with their agent, and why.
    private: Vec<(Server, Arc<str>)>,
    /// Nobody new is let in.
    hands_over: bool,
    /// How many seats are taken.
    seats: usize,
}

struct Held {
    number: u64,
    /// As it was asked for.
    server: Server,
    line: Line,
    stand: watch::Sender<Stand>,
    /// Their numbers, and their processes.
    agents: Vec<(u64, Option<i32>)>,
    /// Since when nobody is on it.
    unused: Option<Instant>,
    /// Ends with it.
    _watch: JoinSet<()>,
}

/// Why somebody gets no seat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NoSeat {
    /// The server has to be alone with its agent, and why.
    Private(Arc<str>),
    /// This keeper is about to go, or the server is being stopped: not now.
    Leaving,
}

/// A place on a shared line. Dropped, it is free.
pub struct Seat {
    of: Keeper,
    line: u64,
    agent: u64,
    joined: Option<(Agent, frame::Limits, watch::Receiver<Stand>)>,
}

/// A server, and who shares it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Shared {
    /// Its name here.
    pub name: String,
    /// The processes of the agents that are on it.
    pub agents: Vec<i32>,
    /// Variables whose values keep it apart from another server of the same command.
    pub apart: Vec<String>,
}

impl Keeper {
    /// Holds nothing yet. A server that nobody is on is closed after `linger`. `learnt` hears of servers that turn out to be
    /// private, and why.
    pub fn new(rig: Rig, linger: Duration, learnt: impl Fn(&Server, &str) + Send + Sync + 'static) -> Self {
        let budget = Budget::new(budget::of_this_machine());
        Self(Arc::new(Inner {
            rig: rig.counted_by(Arc::new(budget)),
            kept: Mutex::default(),
            last: AtomicU64::new(0),
            changed: Notify::new(),
            linger,
            learnt: Box::new(learnt),
        }))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat on the line to this server, which is opened if there is none. `hello` is how its first agent introduces itself;
    /// `process` is who asks.
    ///
    /// # Errors
    /// If the server is not to be shared, or nobody is let in any more.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn take(&self, server: &Server, hello: Option<&str>, process: Option<i32>) -> Result<Seat, NoSeat> {
        let agent = self.0.last.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.kept();
        // Whoever is told so asks again in a moment.
        if kept.hands_over || kept.closing.contains(server) {
            return Err(NoSeat::Leaving);
        }
        if let Some((_, why)) = kept.private.iter().find(|(private, _)| private == server) {
            return Err(NoSeat::Private(Arc::clone(why)));
        }
        let at = kept.lines.iter().position(|held| held.server == *server).unwrap_or_else(|| {
            let held = self.open(&kept, agent, server, hello);
            kept.lines.push(held);
            kept.lines.len() - 1
        });
        let Some(held) = kept.lines.get_mut(at) else { return Err(NoSeat::Leaving) };
        held.agents.push((agent, process));
        held.unused = None;
        let visitor = Visitor { principal: Principal::this_user(), agent, stay: Stay::Session };
        let limits = held.line.policy().limits;
        let limits = frame::Limits { length: limits.message as usize, depth: limits.depth.into() };
        let joined = (session::join_as(&held.line, visitor.guest()), limits, held.stand.subscribe());
        let line = held.number;
        kept.seats += 1;
        Ok(Seat { of: self.clone(), line, agent, joined: Some(joined) })
    }

    fn open(&self, kept: &Kept, number: u64, server: &Server, hello: Option<&str>) -> Held {
        // Two of one name are told apart where people read of them.
        let taken = |name: &str| kept.lines.iter().any(|held| held.line.name() == name);
        let mut name = server.name().to_owned();
        let mut next = 2;
        while taken(&name) {
            name = format!("{}-{next}", server.name());
            next += 1;
        }
        let mut ours = server.clone().named(name);
        if let Some(hello) = hello.and_then(introduced) {
            ours = ours.hello(Hello::Agent(hello.into()));
        }
        let line = self.0.rig.open(ours);
        let mut watch = JoinSet::new();
        let (wants, keeper) = (line.wants_of_agents(), Arc::downgrade(&self.0));
        watch.spawn(async move {
            let mut wants = wants;
            let Ok(Some(what)) = wants.wait_for(Option::is_some).await.map(|what| what.clone()) else {
                return;
            };
            if let Some(keeper) = keeper.upgrade().map(Keeper) {
                keeper.is_private(number, &what);
            }
        });
        let stand = watch::Sender::new(Stand::Serves);
        Held { number, server: server.clone(), line, stand, agents: Vec::new(), unused: None, _watch: watch }
    }

    /// The server wants something that only an agent that is alone with it can give: everybody runs its own from now on.
    fn is_private(&self, number: u64, what: &str) {
        let why = format!("the server asked its agent for {what}, and nobody knows which one it means");
        let mut kept = self.kept();
        let Some(held) = kept.lines.iter().find(|held| held.number == number) else { return };
        tracing::info!(server = held.line.name(), what, "no longer shared");
        let server = held.server.clone();
        held.stand.send_replace(Stand::Moves(why.clone()));
        if kept.private.len() >= PRIVATE {
            kept.private.remove(0);
        }
        kept.private.push((server.clone(), why.clone().into()));
        drop(kept);
        (self.0.learnt)(&server, &why);
    }

    fn leave(&self, line: u64, agent: u64) {
        let mut kept = self.kept();
        kept.seats -= 1;
        if let Some(held) = kept.lines.iter_mut().find(|held| held.number == line) {
            held.agents.retain(|(other, _)| *other != agent);
            if held.agents.is_empty() {
                held.unused = Some(Instant::now());
            }
        }
        drop(kept);
        self.0.changed.notify_one();
    }

    /// How many servers are held.
    pub fn lines(&self) -> usize {
        let kept = self.kept();
        kept.lines.len() + kept.closing.len()
    }

    /// What is held, and who shares it.
    pub fn shared(&self) -> Vec<Shared> {
        let kept = self.kept();
        let shared = |held: &Held| {
            let others = kept.lines.iter().filter(|other| other.number != held.number);
            let apart: BTreeSet<_> =
                others.flat_map(|other| differences(&held.server, &other.server)).collect();
            Shared {
                name: held.line.name().to_owned(),
                agents: held.agents.iter().filter_map(|(_, process)| *process).collect(),
                apart: apart.into_iter().collect(),
            }
        };
        kept.lines.iter().map(shared).collect()
    }

    /// Closes what nobody has been on for a while. Returns when nothing is held, and nothing was for as long as a server lingers.
    pub async fn until_unused(&self) {
        let mut since = Instant::now();
        loop {
            let (gone, next) = self.take_unused();
            for held in gone {
                held.line.close().await;
                self.kept().closing.retain(|closing| *closing != held.server);
                since = Instant::now();
            }
            let next = match next {
                Some(next) => next,
                None if self.kept().lines.is_empty() => since + self.0.linger,
                None => Instant::now() + self.0.linger,
            };
            tokio::select! {
                () = self.0.changed.notified() => {}
                () = tokio::time::sleep_until(next) => {
                    let kept = self.kept();
                    if kept.lines.is_empty() && since.elapsed() >= self.0.linger {
                        return;
                    }
                }
            }
            if !self.kept().lines.is_empty() {
                since = Instant::now();
            }
        }
    }

    /// Takes out what nobody has been on for long enough, and when to look again.
    fn take_unused(&self) -> (Vec<Held>, Option<Instant>) {
        let now = Instant::now();
        let mut kept = self.kept();
        let due = |held: &Held| {
            let linger = match &*held.stand.borrow() {
                // A private one is of no use to anybody.
                Stand::Moves(_) => Duration::ZERO,
                _ if held.line.status().state.is_live() => self.0.linger,
                // Whoever was on it will try again, at the latest after five minutes: with a new line it would have a new budget.
                _ => self.0.linger * FAILED,
            };
            held.unused.map(|since| since + linger)
        };
        let gone: Vec<Held> =
            kept.lines.extract_if(.., |held| due(held).is_some_and(|due| due <= now)).collect();
        kept.closing.extend(gone.iter().map(|held| held.server.clone()));
        (gone, kept.lines.iter().filter_map(due).min())
    }

    /// Lets go of everything, so that the next keeper can take it: nothing more is read, what was acknowledged is answered, or has
    /// had `limit`.
    pub async fn hand_over(&self, limit: Duration) {
        let lines = {
            let mut kept = self.kept();
            kept.hands_over = true;
            std::mem::take(&mut kept.lines)
        };
        let until = Instant::now() + limit;
        let mut ends: JoinSet<()> = lines
            .into_iter()
            .map(|held| async move {
                held.stand.send_replace(Stand::Hands);
                let mut quiet = 0;
                while quiet < QUIET_LOOKS && Instant::now() < until {
                    tokio::time::sleep(QUIET_LOOK).await;
                    quiet = if held.line.is_quiet() { quiet + 1 } else { 0 };
                }
                held.line.close().await;
                held.stand.send_replace(Stand::Leaves);
            })
            .collect();
        while ends.join_next().await.is_some() {}
        let left = async {
            while self.kept().seats > 0 {
                self.0.changed.notified().await;
            }
        };
        let _ = tokio::time::timeout(FAREWELL, left).await;
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shared()).finish()
    }
}

impl Seat {
    /// Serves whoever took it, until it goes or the line does.
    pub async fn serve(mut self, stream: UnixStream, offered: Offered) {
        let Some((Agent { to, from }, limits, stand)) = self.joined.take() else { return };
        // A stream that breaks is an agent that went.
        let _ = hop::serve(stream, offered, limits, to, from, stand).await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.of.leave(self.line, self.agent);
    }
}

/// The names of the variables that differ between two servers of one command.
fn differences(one: &Server, other: &Server) -> Vec<String> {
    let (Some(mine), Some(its)) = (one.to_stdio(), other.to_stdio()) else { return Vec::new() };
    if one.command() != other.command() {
        return Vec::new();
    }
    let (mine, its) = (mine.own_env().unwrap_or_default(), its.own_env().unwrap_or_default());
    let all =
        mine.iter().filter(|mine| !its.contains(mine)).chain(its.iter().filter(|its| !mine.contains(its)));
    all.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

/// How we introduce ourselves to a server for an agent like this one: with what it can do, under our own name.
fn introduced(hello: &str) -> Option<String> {
    let mut params: serde_json::Value = serde_json::from_str(hello).ok()?;
    let ours = serde_json::json!({ "name": "linetender", "version": env!("CARGO_PKG_VERSION") });
    params.as_object_mut()?.insert("clientInfo".to_owned(), ours);
    Some(params.to_string())
}
