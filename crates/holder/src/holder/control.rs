//! What a holder can be asked, and told to do: one list for the socket and for the admin address.

use std::sync::Arc;
use std::time::Duration;

use linetender::{CallError, Line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::task::JoinSet;

use super::report::{CallReport, FleetReport, SharedReport, Standing, UnderWayReport};
use super::{Holder, Inner};
use crate::journal::{Entry, Journal, in_order};
use crate::processes::{self, Tree};
use crate::story::Story;
use crate::tally::Counted;
use linetender_wire::wall::wall_clock;

/// The most requests under way that are listed for one server, oldest first.
const LISTED: usize = 256;

/// How many failures a story tells of.
const DEATHS: usize = 5;

/// A question, or an order. On the socket it is one line of JSON: `{"ask":"redial","server":"git"}`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Ask {
    /// A [`Report`](super::Report).
    Status,
    /// Journal entries of one server that this process still has, oldest first: a list of [`Entry`].
    Entries {
        /// Server name.
        server: String,
    },
    /// Requests that have not ended: a list of [`UnderWayReport`].
    Calls,
    /// Processes of local servers, with their memory: a list of [`Tree`].
    Processes,
    /// Every journal entry from now on, one per line, until the asker hangs up.
    WatchEvents,
    /// Every request that ends from now on, one [`CallReport`] per line, until the asker hangs up.
    WatchCalls,
    /// Something is to be done: answered with [`Done`] or [`Refusal`](super::Refusal).
    #[serde(untagged)]
    Act(Act),
}

/// What a holder can be told to do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Act {
    /// End the connection and open a new one now.
    Redial {
        /// Server name.
        server: String,
    },
    /// Take it out of service until somebody wakes it.
    Park {
        /// Server name.
        server: String,
    },
    /// Bring a parked server back.
    Wake {
        /// Server name.
        server: String,
    },
    /// Replace the server once its calls have ended, or have had the time that a planned end gives them.
    Drain {
        /// Server name.
        server: String,
    },
    /// Read the configuration again.
    Reload,
    /// Log from this level on: `error`, `warn`, `info`, `debug` or `trace`.
    LogLevel {
        /// The level.
        level: String,
    },
}

/// What was done.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Done {
    /// In words.
    pub done: String,
}

/// Why something was not done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NotDone {
    /// There is no such server here; these there are.
    NoServer(Vec<String>),
    /// This process cannot do that at all.
    NotHere(&'static str),
    /// It was tried.
    Failed(String),
}

/// What only the program that holds the lines can do.
pub trait Program: std::fmt::Debug + Send + Sync {
    /// Reads its configuration again.
    ///
    /// # Errors
    /// Why the old one stays.
    fn reload(&self) -> Result<String, String>;

    /// Logs from this level on.
    ///
    /// # Errors
    /// If there is no such level.
    fn log_level(&self, level: &str) -> Result<(), String>;

    /// Who shares its servers, if it is a keeper.
    fn shared(&self) -> Vec<SharedReport> {
        Vec::new()
    }

    /// The fleet that it is in, if it is a gateway of one.
    fn fleet(&self) -> Option<FleetReport> {
        None
    }
}

impl Holder {
    /// Lets this do what only the program can. The first one stays.
    pub fn obeyed_by(&self, program: Arc<dyn Program>) {
        let _ = self.0.program.set(program);
    }

    /// The fleet that it is in, if it is a gateway of one.
    pub fn fleet(&self) -> Option<FleetReport> {
        self.0.program.get().and_then(|program| program.fleet())
    }

    /// Requests that have not ended.
    pub fn calls(&self) -> Vec<UnderWayReport> {
        self.0.calls()
    }

    /// Names of the servers that are held, sorted.
    pub fn servers(&self) -> Vec<String> {
        self.0.servers()
    }

    /// Where each line stands, for those who count.
    pub fn standings(&self) -> Vec<Standing> {
        let lines = self.0.lines().followed.clone();
        lines.iter().map(|line| line.standing()).collect()
    }

    /// How many entries of the journal could not be written; `None` if none is kept.
    pub fn journal_lost(&self) -> Option<u64> {
        self.0.journal.as_ref().map(Journal::lost)
    }

    /// What is counted for each server, by name.
    pub fn counted(&self) -> Vec<(Arc<str>, Counted)> {
        let servers = self.0.tally.servers();
        servers.iter().map(|server| (Arc::clone(server.name()), server.counted())).collect()
    }

    /// Each request as it ends, from now on.
    pub fn watch_calls(&self) -> broadcast::Receiver<Arc<CallReport>> {
        self.0.tally.feed()
    }

    /// Each journal entry, from now on; also if no journal is kept.
    pub fn watch_events(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.0.entries.subscribe()
    }

    /// Journal entries of one server that are still in memory, oldest first; `None` if it is not held.
    pub fn entries(&self, server: &str) -> Option<Vec<Entry>> {
        self.0.entries_of(server)
    }

    /// The story of one server's last failures; `None` if it is not held.
    pub fn story(&self, server: &str) -> Option<Story> {
        let (entries, report) = (self.entries(server)?, self.report());
        let live = report.lines.iter().find(|line| line.server == server);
        Some(Story::of(server, &entries, live, wall_clock(), DEATHS))
    }

    /// Processes of local servers, with their memory.
    pub async fn processes(&self) -> Vec<Tree> {
        self.0.processes().await
    }

    /// Does something.
    ///
    /// # Errors
    /// Why it was not done.
    pub async fn act(&self, act: &Act) -> Result<Done, NotDone> {
        self.0.act(act).await
    }
}

impl Inner {
    pub(super) fn calls(&self) -> Vec<UnderWayReport> {
        let servers = self.tally.servers();
        let of = |server: &Arc<crate::tally::ServerTally>| {
            let name = Arc::clone(server.name());
            server.under_way(LISTED).into_iter().map(move |call| UnderWayReport::of(&name, &call))
        };
        servers.iter().flat_map(of).collect()
    }

    pub(super) fn entries_of(&self, server: &str) -> Option<Vec<Entry>> {
        let followed = self.lines().followed.clone();
        let of: Vec<_> = followed.iter().filter(|line| line.server() == server).collect();
        let entries = of.iter().enumerate();
        let entries = entries.flat_map(|(at, line)| line.entries().into_iter().map(move |entry| (at, entry)));
        (!of.is_empty()).then(|| in_order(entries))
    }

    pub(super) async fn processes(&self) -> Vec<Tree> {
        let roots: Vec<(String, u64, i32)> = {
            let followed = self.lines().followed.clone();
            followed.iter().filter_map(|line| line.process()).collect()
        };
        // It reads a file for each process: nothing for a thread that others wait for.
        tokio::task::spawn_blocking(move || roots.into_iter().map(processes::tree).collect())
            .await
            .unwrap_or_default()
    }

    pub(super) async fn act(&self, act: &Act) -> Result<Done, NotDone> {
        let done = |done: String| Ok(Done { done });
        match act {
            Act::Redial { server } => {
                self.lines().parked.remove(server);
                let opened = all(self.of_server(server)?, |line| async move { line.redial().await }).await?;
                done(match opened.as_slice() {
                    [newest] => format!("{server}: connection {newest} is up"),
                    many => format!("{server}: {} connections were opened anew", many.len()),
                })
            }
            Act::Park { server } => {
                let parked = |line: Line| async move {
                    line.park().await;
                    Ok(())
                };
                self.of_server(server)?;
                // Whoever connects meanwhile finds it parked.
                self.lines().parked.insert(server.clone());
                all(self.of_server(server)?, parked).await?;
                done(format!("{server}: out of service; calls to it are refused until it is woken"))
            }
            Act::Wake { server } => {
                self.lines().parked.remove(server);
                all(self.of_server(server)?, |line| async move { line.unpark().await }).await?;
                done(format!("{server}: in service"))
            }
            Act::Drain { server } => {
                for line in self.of_server(server)? {
                    line.recycle().await;
                }
                done(format!("{server}: is replaced as soon as its calls have ended"))
            }
            Act::Reload => self.program()?.reload().map_or_else(|why| Err(NotDone::Failed(why)), done),
            Act::LogLevel { level } => {
                self.program()?.log_level(level).map_err(NotDone::Failed)?;
                done(format!("logging from {level} on"))
            }
        }
    }

    fn program(&self) -> Result<&dyn Program, NotDone> {
        let program = self.program.get().map(|program| &**program);
        program.ok_or(NotDone::NotHere("this process has no configuration to reload and no log of its own"))
    }

    fn servers(&self) -> Vec<String> {
        let lines = self.lines();
        let mut names: Vec<_> = lines.followed.iter().map(|line| line.server().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Every line to a server of this name.
    fn of_server(&self, server: &str) -> Result<Vec<Line>, NotDone> {
        let followed = self.lines().followed.clone();
        let lines: Vec<_> =
            followed.iter().filter(|line| line.server() == server).filter_map(|line| line.line()).collect();
        if lines.is_empty() {
            return Err(NotDone::NoServer(self.servers()));
        }
        Ok(lines)
    }
}

/// Does something to all lines of a server at once. If it fails for some, the first to fail says why, and how many did.
async fn all<T: Send + 'static, F: Future<Output = Result<T, CallError>> + Send + 'static>(
    lines: Vec<Line>,
    does: impl Fn(Line) -> F,
) -> Result<Vec<T>, NotDone> {
    let (count, mut under_way) = (lines.len(), JoinSet::new());
    for line in lines {
        under_way.spawn(does(line));
    }
    let (mut done, mut failed) = (Vec::new(), None);
    while let Some(one) = under_way.join_next().await {
        match one {
            Ok(Ok(one)) => done.push(one),
            Ok(Err(error)) => failed = failed.or_else(|| Some(error.to_string())),
            Err(error) => failed = failed.or_else(|| Some(format!("internal error in linetender: {error}"))),
        }
    }
    match failed {
        None => Ok(done),
        Some(why) if count == 1 => Err(NotDone::Failed(why)),
        Some(why) => {
            Err(NotDone::Failed(format!("{} of {count} connections failed: {why}", count - done.len())))
        }
    }
}

impl Ask {
    /// How long its answer may take. What waits for a server takes as long as that.
    pub(super) const fn patience(&self) -> Duration {
        match self {
            Self::Act(Act::Redial { .. } | Act::Park { .. } | Act::Wake { .. } | Act::Reload) => {
                Duration::from_secs(120)
            }
            _ => Duration::from_secs(2),
        }
    }
}

impl std::fmt::Display for NotDone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoServer(names) if names.is_empty() => f.write_str("this process has no server yet"),
            Self::NoServer(names) => write!(f, "no server of this name; there are: {}", names.join(", ")),
            Self::NotHere(why) => f.write_str(why),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotDone {}
