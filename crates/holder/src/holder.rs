//! A process that holds lines: what becomes of each goes into the journal, and whoever asks is told where they stand.
//!
//! A shim is a holder of one line, a gateway of many. Holding is following: the lines belong to others, and nothing here
//! keeps one alive or makes one wait.

mod control;
mod follow;
mod heads;
mod local;
mod look;
mod report;
mod socket;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::audit::Audit;
use crate::journal::{Entry, Journal, What};
use crate::tally::{Auditor, Tally, Tracer};
pub use control::{Act, Ask, Done, NotDone, Program};
use follow::Followed;
use heads::Heads;
use linetender::{Follower, Line, Redacted, Witness};
use linetender_wire::wall::wall_clock;
pub use look::{Found, Reply, Silence, Watching, ask_holder, look, watch_holder};
pub use report::{
    About, CallReport, FleetReport, LineReport, Moment, NodeReport, PlacedReport, REPORT_VERSION, Report,
    ServerReport, SharedReport, SlowReport, Standing, UnderWayReport, Verdicts, by_reason,
};
use socket::Listening;
pub use socket::Refusal;

/// Entries that a watcher may lag behind.
const ENTRIES: usize = 256;

/// Journal and status socket of a process that holds lines. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Holder(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    door: &'static str,
    /// What it is to hold, for a time when it holds nothing yet.
    serves: Option<String>,
    began: (SystemTime, Instant),
    journal: Option<Journal>,
    /// Entries as they are written, for whoever watches.
    entries: broadcast::Sender<Arc<Entry>>,
    tally: Tally,
    program: OnceLock<Arc<dyn Program>>,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    followed: Vec<Arc<Followed>>,
    /// One for each of them.
    followers: JoinSet<()>,
    listening: Option<Listening>,
    audits: Vec<Heads>,
    /// Servers that somebody took out of service: a line that is opened to one of them later is out of service too.
    parked: HashSet<String>,
}

impl Holder {
    /// Creates a holder. `door` is how agents connect (`run`, `serve`); `serves` names the server, if it is a single one.
    pub fn new(door: &'static str, serves: Option<String>, journal: Option<Journal>) -> Self {
        let began = (wall_clock(), Instant::now());
        Self(Arc::new(Inner {
            door,
            serves,
            began,
            journal,
            entries: broadcast::channel(ENTRIES).0,
            tally: Tally::new(),
            program: OnceLock::new(),
            lines: Mutex::default(),
        }))
    }

    /// Writes the `begin` entry to the journal: version and redacted command line.
    pub fn begin(&self, version: &str, argv: &Redacted) {
        let _ = self.0.write(What::Begin { version: version.to_owned(), argv: argv.to_string() });
    }

    /// Listens on a status socket in this folder, for this user only, until the process ends.
    ///
    /// # Errors
    /// If it cannot. Nothing else depends on it.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn listen(&self, folder: &Path) -> io::Result<()> {
        let listening = Listening::start(folder, Arc::downgrade(&self.0))?;
        self.0.lines().listening = Some(listening);
        Ok(())
    }

    /// This process.
    pub fn about(&self) -> About {
        About::of(&self.0)
    }

    /// Writes the head of this audit to the journal: now, each minute if it has changed, and at the end. So a tail that is cut
    /// off the audit is found.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn keep_head_of(&self, audit: Audit) {
        let heads = Heads::keep(audit, Arc::downgrade(&self.0));
        self.0.lines().audits.push(heads);
    }

    /// Writes every request of the lines that are followed from now on to an audit, and its head to the journal.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn audit_with(&self, auditor: Auditor) {
        self.keep_head_of(auditor.audit().clone());
        self.0.tally.audit_with(auditor);
    }

    /// Has spans made of the lines that are followed from now on, and of their requests.
    pub fn trace_with(&self, tracer: Arc<dyn Tracer>) {
        self.0.tally.trace_with(tracer);
    }

    /// Current status of all lines.
    pub fn report(&self) -> Report {
        self.0.report()
    }

    /// Flushes pending entries and writes the `end` entry, within `limit`.
    pub async fn end(&self, why: &str, limit: Duration) {
        let until = Instant::now() + limit;
        let (mut followers, audits) = {
            let mut lines = self.0.lines();
            lines.listening = None;
            (std::mem::take(&mut lines.followers), std::mem::take(&mut lines.audits))
        };
        // Half of the time is for the lines: the end is to be written even if one does not end.
        let ended = async { while followers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(limit / 2, ended).await;
        for heads in audits {
            heads.end(limit / 4, &self.0).await;
        }
        let _ = self.0.write(What::End { why: why.to_owned() });
        if let Some(journal) = &self.0.journal {
            journal.flush(until.saturating_duration_since(Instant::now())).await;
        }
    }
}

impl Follower for Holder {
    /// Follows a line until it is closed.
    fn follow(&self, line: &Line) {
        let tally = self.0.tally.line(line.name(), line.transport(), Arc::downgrade(&self.0));
        let followed = Arc::new(Followed::new(line, Arc::clone(&tally)));
        line.seen_by(tally);
        let following = Arc::clone(&followed).follow(line.events(), Arc::downgrade(&self.0));
        let mut lines = self.0.lines();
        // Those that ended need not be kept in mind.
        while lines.followers.try_join_next().is_some() {}
        lines.followed.push(followed);
        lines.followers.spawn(following);
        if lines.parked.contains(line.name()) {
            line.begin_parked();
        }
    }

    fn at_the_door(&self) -> Option<Arc<dyn Witness>> {
        Some(self.0.tally.door())
    }
}

impl Inner {
    /// Writes something down, and tells whoever watches.
    pub(crate) fn write(&self, what: What) -> Entry {
        let entry = Entry::now(std::process::id(), self.door, what);
        if let Some(journal) = &self.journal {
            journal.write(entry.clone());
        }
        if self.entries.receiver_count() > 0 {
            let _ = self.entries.send(Arc::new(entry.clone()));
        }
        entry
    }

    /// A line has ended.
    fn let_go(&self, gone: &Arc<Followed>) {
        self.lines().followed.retain(|followed| !Arc::ptr_eq(followed, gone));
    }

    fn report(&self) -> Report {
        let lines: Vec<_> = self.lines().followed.clone();
        Report {
            version: REPORT_VERSION,
            holder: About::of(self),
            lines: lines.iter().map(|line| line.report()).collect(),
            servers: self.tally.servers().iter().map(|server| ServerReport::of(server)).collect(),
            shared: self.program.get().map(|program| program.shared()).unwrap_or_default(),
            fleet: self.program.get().and_then(|program| program.fleet()),
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
