//! The gateway as one of several that share their servers.

mod keys;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use linetender::session::{self, Agent, Guest, Who};
use linetender::{State, Status};
use linetender_fleet::{Gone, House, Joined, LineReport, Member, Nats, Node, Options, Report, Seat, Terms};
use linetender_gateway::config::{Config, Fleet, Placed, Scope};
use linetender_gateway::kin::{Kin, Later, NotReached, Stream};
use linetender_gateway::{Gateway, Shared};
use linetender_holder::holder::{FleetReport, NodeReport, PlacedReport};
use linetender_holder::trusted;
use tokio::sync::watch;

use keys::Keys;

use crate::places;

/// How long a call that must not run twice is remembered at least, and the key of a day.
const CALLS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest seed of a key.
const SEED: u64 = 4096;

/// How long lines may take to move to other gateways when this one is stopped: the time that a planned end gives calls, and a start.
const LEAVES: Duration = Duration::from_secs(30);

/// How long NATS may take to hear that nothing is left here.
const FREES: Duration = Duration::from_secs(3);

/// This gateway's place in a fleet.
pub(super) struct InFleet {
    joined: Joined,
    rooms: OnceLock<Arc<Rooms>>,
    /// What sessions are sealed with.
    keys: Keys,
}

impl InFleet {
    /// Joins, if the settings say so. Else a sentence about why it cannot.
    pub(super) async fn join(settings: &Fleet, kept: Duration) -> Result<Option<Arc<Self>>, String> {
        if !settings.is_on() {
            return Ok(None);
        }
        let options = options(settings, kept.max(CALLS_KEPT))?;
        let node = options.node.clone();
        let nats = Nats::connect(options).await.map_err(|error| error.to_string())?;
        tracing::info!(fleet = settings.name, node, "joining the fleet");
        Ok(Some(Arc::new(Self {
            joined: Joined::join(nats, terms(settings.lease)),
            rooms: OnceLock::new(),
            keys: Keys::default(),
        })))
    }

    /// Servers that the fleet shares are reached where they run.
    pub(super) fn fit(&self, config: &mut Config) {
        for entry in &mut config.servers {
            if entry.placed == Placed::One
                && entry.scope == Scope::Shared
                && let Some(server) = entry.server.to_stdio()
            {
                entry.server = server.shared(self.joined.way(entry.server.name())).into();
            }
        }
    }

    /// Shares the servers of this config from now on, which the gateway has.
    pub(super) fn shares(&self, names: Vec<String>, gateway: &Gateway) {
        let rooms = self.rooms.get_or_init(|| {
            let (of_nodes, last, closed) = (RandomState::new(), AtomicU64::new(0), AtomicBool::new(false));
            let lines = Mutex::default();
            Arc::new(Rooms { gateway: gateway.clone(), of_nodes, last, closed, lines })
        });
        let mut replaced = Vec::new();
        let mut lines = rooms.lines();
        for name in &names {
            let Some(line) = gateway.shared_line(name) else { continue };
            let (now, known) = (line.statuses(), lines.entry(name.clone()).or_default());
            if known.iter().any(|one| one.same_channel(&now)) {
                continue;
            }
            // One that was replaced, taken out of the config, or not shared any more, is still looked at until it has ended.
            known.retain(|one| one.borrow().state != State::Closed && one.has_changed().is_ok());
            if !known.is_empty() {
                replaced.push(name.clone());
            }
            known.push(now);
        }
        drop(lines);
        self.joined.shares(names, Arc::clone(rooms) as Arc<dyn House>);
        for name in replaced {
            self.joined.replaced(&name);
        }
    }

    /// Calls that outlive their agents are noted where all gateways see them.
    pub(super) fn calls(self: &Arc<Self>) -> Shared {
        let lives = Arc::downgrade(self);
        let lives = move |node| lives.upgrade().is_some_and(|fleet| fleet.joined.is_there(Node(node)));
        Shared::new(Arc::clone(self.joined.directory()), self.joined.node().0, lives)
    }

    /// What it knows of its fleet.
    pub(super) fn report(&self) -> FleetReport {
        let Report { fleet, node, connected, members, lines } = self.joined.report();
        let of_node = |member: Member| NodeReport {
            node: member.name,
            version: member.version,
            runs: member.owns,
            leaves: member.leaving,
        };
        let of_line = |report: LineReport| PlacedReport {
            server: report.line,
            runs_at: report.owner,
            here: report.here,
            moves: report.moves,
        };
        let mut nodes: Vec<_> = members.into_iter().map(of_node).collect();
        nodes.sort_by(|one, other| one.node.cmp(&other.node));
        FleetReport { fleet, node, connected, nodes, servers: lines.into_iter().map(of_line).collect() }
    }

    /// Shares the agents' sessions.
    pub(super) fn among(self: &Arc<Self>, gateway: &Gateway) {
        gateway.among(Arc::clone(self) as Arc<dyn Kin>);
    }

    /// Lets other gateways have the servers, if there are others. This gateway still serves its agents then.
    pub(super) async fn leave(&self) {
        if self.joined.has_others() && !self.joined.leave(LEAVES).await {
            tracing::warn!("some servers did not move to another gateway in time");
        }
    }

    /// Nothing runs here any more.
    pub(super) async fn left(&self) {
        if let Some(rooms) = self.rooms.get() {
            rooms.closed.store(true, Ordering::Release);
        }
        self.joined.leave(FREES).await;
    }
}

impl fmt::Debug for InFleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFleet").field("node", &self.joined.node()).finish_non_exhaustive()
    }
}

impl Kin for InFleet {
    fn own(&self) -> u64 {
        self.joined.node().0
    }

    fn leaves(&self) -> bool {
        self.joined.is_leaving()
    }

    fn is_there(&self, node: u64) -> bool {
        self.joined.is_there(Node(node))
    }

    fn home(&self, session: &str, tried: &[u64]) -> Option<u64> {
        let tried: Vec<_> = tried.iter().copied().map(Node).collect();
        self.joined.place(session, &tried).map(|node| node.0)
    }

    fn key(&self, day: u64) -> Later<'_, Option<[u8; 32]>> {
        Box::pin(self.keys.of(&**self.joined.directory(), day))
    }

    fn known_keys(&self, day: u64, again: bool) -> Later<'_, Vec<[u8; 32]>> {
        Box::pin(self.keys.find(&**self.joined.directory(), day, again))
    }

    fn reach(&self, node: u64) -> Later<'_, Result<Box<dyn Stream>, NotReached>> {
        Box::pin(async move {
            match self.joined.front(Node(node)).await {
                Ok(Some(stream)) => Ok(Box::new(stream) as Box<dyn Stream>),
                // One that was about to go has gone before it answered.
                Ok(None) if !self.joined.stays(Node(node)) => Err(NotReached::Nobody),
                Ok(None) => Err(NotReached::Silence),
                Err(Gone) => Err(NotReached::Nobody),
            }
        })
    }

    fn accept(&self) -> Later<'_, Option<Box<dyn Stream>>> {
        Box::pin(async { self.joined.accept().await.map(|stream| Box::new(stream) as Box<dyn Stream>) })
    }
}

/// Names of the servers of a config that its fleet shares.
pub(super) fn shared(config: &Config) -> Vec<String> {
    let shared = config.servers.iter().filter(|entry| {
        entry.placed == Placed::One && entry.scope == Scope::Shared && entry.server.to_stdio().is_some()
    });
    shared.map(|entry| entry.server.name().to_owned()).collect()
}

fn options(settings: &Fleet, calls_kept: Duration) -> Result<Options, String> {
    let node = settings.node.clone().unwrap_or_else(places::machine);
    let replicas = settings.replicas.unwrap_or(if settings.nats.len() >= 3 { 3 } else { 1 });
    Ok(Options {
        servers: settings.nats.clone(),
        fleet: settings.name.clone(),
        node,
        replicas,
        calls_kept,
        nkey: settings.nkey_file.as_deref().map(seed).transpose()?,
        roots: settings.tls_ca.clone(),
        certificate: settings.tls_certificate.clone().zip(settings.tls_key.clone()),
    })
}

fn seed(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(trusted::read(path)?, SEED), &mut text)?;
        Ok::<_, std::io::Error>(text.trim().to_owned())
    };
    read().map_err(|error| format!("cannot use {} as nkey_file: {error}", path.display()))
}

/// Everything follows from the lease.
fn terms(lease: u64) -> Terms {
    let part = |parts: u64| Duration::from_millis(lease * parts / 20);
    Terms {
        lease: part(20),
        renew: part(5),
        margin: part(4),
        patience: part(2),
        answer: part(3),
        ..Terms::default()
    }
}

/// The gateway's lines, for other nodes.
struct Rooms {
    gateway: Gateway,
    of_nodes: RandomState,
    last: AtomicU64,
    /// Whether all lines are closed.
    closed: AtomicBool,
    /// Where those stand that were shared, by the name; the last one is the one that is now.
    lines: Mutex<HashMap<String, Vec<watch::Receiver<Status>>>>,
}

impl Rooms {
    fn lines(&self) -> MutexGuard<'_, HashMap<String, Vec<watch::Receiver<Status>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl House for Rooms {
    fn seat(&self, line: &str, from: &str) -> Option<Seat> {
        let line = self.gateway.shared_line(line)?;
        let limits = line.policy().limits;
        let agent = self.last.fetch_add(1, Ordering::Relaxed);
        let who = Who { principal: self.of_nodes.hash_one(from), agent };
        let Agent { to, from } =
            session::join_as(&line, Guest { who, name: format!("node:{from}").into(), ..Guest::default() });
        Some(Seat::new(to, from, limits.message as usize, limits.depth.into()))
    }

    fn recycle<'a>(&'a self, line: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            if let Some(line) = self.gateway.shared_line(line) {
                line.recycle().await;
            }
        })
    }

    fn is_still(&self, line: &str) -> bool {
        use State::{Closed, Idle, NeedsAuth, Parked, Waiting};
        let is_still = |state| matches!(state, Idle | Waiting | Parked | NeedsAuth | Closed);
        self.closed.load(Ordering::Acquire)
            || self.lines().get(line).is_some_and(|all| all.iter().all(|one| is_still(one.borrow().state)))
    }

    fn has_process(&self, line: &str) -> bool {
        use State::{Draining, Ending, Suspect, Up};
        let has = |state| matches!(state, Up | Suspect | Draining | Ending);
        self.lines().get(line).is_some_and(|all| all.iter().any(|one| has(one.borrow().state)))
    }
}
