//! The set of lines of a program, and what they share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_core::StateKind;
use linetender_wire::SleepWatch;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::memory::{Memory, Remembered};
use super::{Line, Seeds};
use crate::audience::Agent;
use crate::basics::rooms::Rooms;
use crate::generation::{DialLimit, Predecessors};
use crate::outcome::Witness;
use crate::server::Server;
use crate::status::Status;

/// Whoever wants to know of every line of a rig.
pub trait Follower: fmt::Debug + Send + Sync {
    /// A line was put on the rig; nobody can have dialled it yet. Following it must not keep it: see [`Line::downgrade`].
    fn follow(&self, line: &Line);

    /// Who sees the requests that end before a line is chosen for them, if anybody does.
    fn at_the_door(&self) -> Option<Arc<dyn Witness>> {
        None
    }
}

/// What lines have from their rig.
pub(crate) struct OfRig {
    pub(crate) dial_limit: DialLimit,
    pub(crate) seeds: Seeds,
    pub(crate) rooms: Option<Arc<dyn Rooms>>,
    pub(crate) strangers: bool,
    pub(crate) outsiders: bool,
    pub(crate) sleep: SleepWatch,
}

/// Lines that share a dial limit: no more than so many servers are started at once, and many that lost the same server do
/// not come back in one moment. Waiting for that is neither start time nor failure. Cheap to clone.
///
/// ```no_run
/// use linetender::{Rig, Server};
///
/// # async fn example() {
/// let rig = Rig::new();
/// let change = rig.set([Server::stdio("time", ["mcp-server-time"]), Server::stdio("git", ["mcp-server-git"])]);
/// assert_eq!(change.added.len(), 2);
/// let time = rig.line("time").expect("just added");
/// # drop(time);
/// rig.shutdown(std::time::Duration::from_secs(10)).await;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rig {
    dial_limit: DialLimit,
    lines: Arc<Mutex<Lines>>,
    memory: Option<Arc<dyn Memory>>,
    /// Who follows what happens to its lines.
    follower: Option<Arc<dyn Follower>>,
    seeds: Seeds,
    /// Who counts what is kept of its servers' unfinished messages.
    rooms: Option<Arc<dyn Rooms>>,
    /// Whether agents that share a line may act for principals who are strangers to each other.
    strangers: bool,
    /// Whether agents are others than the operator of this machine.
    outsiders: bool,
    /// Whether this machine slept, for all of its lines.
    sleep: SleepWatch,
}

#[derive(Debug, Default)]
struct Lines {
    held: BTreeMap<Arc<str>, Line>,
    /// Lines that were taken out and are not closed yet.
    leaving: JoinSet<()>,
    /// Where these stand, by name: a server that comes back under a name waits for all that had it.
    left: BTreeMap<Arc<str>, Predecessors>,
    /// Where the lines of sessions stand, which close them when they end.
    of_sessions: Vec<watch::Receiver<Status>>,
}

/// What became of a rig's lines: names, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RigChange {
    /// New.
    pub added: Vec<Arc<str>>,
    /// Closed and opened anew, because the server is another now.
    pub replaced: Vec<Arc<str>>,
    /// Closed.
    pub removed: Vec<Arc<str>>,
    /// Untouched: their generations live on.
    pub kept: Vec<Arc<str>>,
}

impl Rig {
    /// A rig that starts at most twice as many servers at once as there are cores.
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self::with_dials_at_once(cores * 2)
    }

    /// A rig that starts at most so many servers at once.
    pub fn with_dials_at_once(dials: usize) -> Self {
        Self {
            dial_limit: DialLimit::new(dials),
            lines: Arc::default(),
            memory: None,
            follower: None,
            seeds: Seeds::Any,
            rooms: None,
            strangers: false,
            outsiders: false,
            sleep: SleepWatch::default(),
        }
    }

    /// A start that failed is not repeated: its line then waits to be closed. For programs that look at a server once.
    #[doc(hidden)] // for linetender's commands
    #[must_use]
    pub fn dialling_once(mut self) -> Self {
        self.dial_limit = self.dial_limit.once();
        self
    }

    /// Everything that its lines leave to chance follows from this number.
    #[doc(hidden)]
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.seeds = Seeds::From(seed);
        self
    }

    /// Remembers what servers say of themselves: an agent that is alone with its server is greeted with that the next time,
    /// while the server is still starting.
    #[must_use]
    pub fn remembering(mut self, memory: impl Memory + 'static) -> Self {
        self.memory = Some(Arc::new(memory));
        self
    }

    /// Lets this count what is kept of long messages that servers have not finished sending, on lines opened from now on.
    #[must_use]
    pub fn counted_by(mut self, rooms: Arc<dyn Rooms>) -> Self {
        self.rooms = Some(rooms);
        self
    }

    /// Agents that share its lines may act for principals who are strangers to each other.
    #[doc(hidden)] // for linetender's gateway
    #[must_use]
    pub fn among_strangers(mut self, strangers: bool) -> Self {
        self.strangers = strangers;
        self
    }

    /// Agents on its lines are others than the operator of this machine: what they are told of a failed start names nothing of the
    /// environment that it failed in. Status and log do.
    #[doc(hidden)] // for linetender's gateway
    #[must_use]
    pub fn for_outsiders(mut self) -> Self {
        self.outsiders = true;
        self
    }

    /// Lets this follow every line that is opened on it from now on, those of sessions too.
    #[must_use]
    pub fn followed_by(mut self, follower: impl Follower + 'static) -> Self {
        self.follower = Some(Arc::new(follower));
        self
    }

    /// Who sees the requests that end before one of its lines is chosen, if anybody does.
    #[doc(hidden)] // for linetender's gateway
    pub fn at_the_door(&self) -> Option<Arc<dyn Witness>> {
        self.follower.as_ref()?.at_the_door()
    }

    /// A line to a server, dialled at once. The rig does not hold it: it ends with its last handle.
    pub fn open(&self, server: impl Into<Server>) -> Line {
        let line = self.lazy(server);
        line.wake();
        line
    }

    /// A line to a server, dialled as soon as the lines that stand here are closed. The rig does not hold it.
    #[doc(hidden)] // for linetender's gateway
    pub fn open_after(
        &self,
        server: impl Into<Server>,
        before: impl IntoIterator<Item = watch::Receiver<Status>>,
    ) -> Line {
        let mut predecessors = Predecessors::default();
        predecessors.extend(before);
        let line = self.put(server.into(), None, predecessors, None);
        line.wake();
        line
    }

    /// A line to a server, dialled when somebody needs it. The rig does not hold it.
    pub fn lazy(&self, server: impl Into<Server>) -> Line {
        self.put(server.into(), None, Predecessors::default(), None)
    }

    /// Holds lines to these servers, and to no others. What is new is dialled, unless it is
    /// [lazy](Server::lazy); what is not among them any more, or is
    /// another server under the same name, is closed when its calls have ended (or have had their time), and its
    /// successor is not dialled before that; what is unchanged is not touched.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn set<S: Into<Server>>(&self, servers: impl IntoIterator<Item = S>) -> RigChange {
        let servers = servers.into_iter().map(Into::into);
        let wanted: BTreeMap<Arc<str>, Server> =
            servers.map(|server: Server| (Arc::clone(&server.name), server)).collect();
        let mut change = RigChange::default();
        let mut lines = self.lines();
        let gone: Vec<_> = lines.held.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
        for name in gone {
            lines.take_out(&name);
            change.removed.push(name);
        }
        for (name, server) in wanted {
            match lines.held.get(&name).map(|line| line.is_to(&server)) {
                Some(true) => change.kept.push(name),
                before => {
                    // Two servers of one name never live at once: they hold ports, locks, profiles.
                    lines.take_out(&name);
                    let old = lines.left.get(&name).cloned().unwrap_or_default();
                    let lazy = server.lazy;
                    let line = self.put(server, None, old, None);
                    if !lazy {
                        line.wake();
                    }
                    lines.held.insert(Arc::clone(&name), line);
                    let list = if before.is_some() { &mut change.replaced } else { &mut change.added };
                    list.push(name);
                }
            }
        }
        change
    }

    /// The line of this name, if the rig holds one.
    pub fn line(&self, name: &str) -> Option<Line> {
        self.lines().held.get(name).cloned()
    }

    /// All lines that it holds, by name.
    pub fn held(&self) -> Vec<Line> {
        self.lines().held.values().cloned().collect()
    }

    /// Closes every line that it holds, all at once. Whether nothing was left when the time was up; if something was, it
    /// is killed when the process ends.
    pub async fn shutdown(&self, limit: Duration) -> bool {
        let mut leaving = {
            let mut lines = self.lines();
            for line in std::mem::take(&mut lines.held).into_values() {
                lines.leaving.spawn(async move { line.close().await });
            }
            std::mem::take(&mut lines.leaving)
        };
        let closed = tokio::time::timeout(limit, async { while leaving.join_next().await.is_some() {} });
        let all = closed.await.is_ok();
        leaving.detach_all();
        all
    }

    /// Waits until the lines of sessions are closed, which is for those to begin. Whether none was left when the time was up.
    pub async fn sessions_closed(&self, limit: Duration) -> bool {
        let states = std::mem::take(&mut self.lines().of_sessions);
        let all = async {
            for mut state in states {
                // If its tender is gone, so is the line.
                let _ = state.wait_for(|now| now.state == StateKind::Closed).await;
            }
        };
        tokio::time::timeout(limit, all).await.is_ok()
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn memory(&self) -> Option<&dyn Memory> {
        self.memory.as_deref()
    }

    /// The one place where a line is put on a rig. It is followed before anybody can have dialled it.
    pub(crate) fn put(
        &self,
        server: Server,
        agent: Option<Agent>,
        predecessors: Predecessors,
        remembered: Option<Remembered>,
    ) -> Line {
        let of_session = agent.is_some();
        let of_rig = OfRig {
            dial_limit: self.dial_limit.clone(),
            seeds: self.seeds,
            rooms: self.rooms.clone(),
            strangers: self.strangers,
            outsiders: self.outsiders,
            sleep: self.sleep.clone(),
        };
        let line = Line::on(server, of_rig, agent, predecessors, remembered);
        if of_session {
            let mut lines = self.lines();
            lines.of_sessions.retain(|state| state.has_changed().is_ok());
            lines.of_sessions.push(line.statuses());
        }
        if let Some(follower) = &self.follower {
            follower.follow(&line);
        }
        line
    }
}

impl Lines {
    /// Takes a line out, if there is one of this name; its calls may still end, and then it is closed.
    fn take_out(&mut self, name: &str) {
        // Those that are closed by now need not be kept in mind.
        while self.leaving.try_join_next().is_some() {}
        self.left.retain(|_, left| left.are_any());
        let Some((name, line)) = self.held.remove_entry(name) else { return };
        self.left.entry(name).or_default().add(line.statuses());
        self.leaving.spawn(async move { line.retire().await });
    }
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}
