//! What became of requests, counted where they end: one table per server, from which status, metrics, page and `top` are made.
//!
//! Nothing here grows with what agents ask or servers answer: the tables have fixed sizes, and what is listed by name is the
//! slowest and the oldest of it.

mod auditor;
mod histogram;
mod slowest;
mod tracer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use linetender::{
    Doubt, Evidence, Leaf, Outcome, Receipt, Retry, RetryReason, ServerRefusal, TraceContext, Transport,
    UnderWay, Verdict, Witness,
};
use tokio::sync::broadcast;
use tokio::time::Instant;

pub use auditor::{Auditor, KeepArguments};
pub use histogram::{BUCKETS, Histogram};
pub use slowest::Slow;
pub use tracer::{Life, LineTracer, Tracer};

use crate::holder::{CallReport, Inner};
use crate::journal::What;
use slowest::Slowest;

/// Calls that a watcher may lag behind.
const FEED: usize = 2048;

/// For how long the latency of "now" looks back: between one and two of these.
const WINDOW: Duration = Duration::from_secs(60);

/// What requests are counted under that end at a gateway before a server is chosen. No server can have this name.
pub const DOOR: &str = "(gateway)";

/// Number of verdicts.
pub const VERDICTS: usize = 6;

/// The verdicts, in the order in which they are counted.
pub const VERDICT_NAMES: [&str; VERDICTS] =
    ["answered", "tool error", "refused", "not executed", "unknown", "cancelled"];

/// Requests by verdict.
pub type ByVerdict = [u64; VERDICTS];

/// The tables of a process.
#[derive(Debug)]
pub(crate) struct Tally {
    servers: Mutex<BTreeMap<Arc<str>, Arc<ServerTally>>>,
    feed: broadcast::Sender<Arc<CallReport>>,
    auditor: OnceLock<Auditor>,
    tracer: OnceLock<Arc<dyn Tracer>>,
}

/// What became of the requests for one server, however many lines it has.
#[derive(Debug)]
pub(crate) struct ServerTally {
    name: Arc<str>,
    book: Mutex<Book>,
}

/// The witness of one line.
#[derive(Debug)]
pub(crate) struct LineTally {
    server: Arc<ServerTally>,
    feed: broadcast::Sender<Arc<CallReport>>,
    auditor: Option<Auditor>,
    tracer: Option<Arc<dyn LineTracer>>,
    /// Writes re-sends to the event log.
    holder: Weak<Inner>,
    /// What ended since somebody last took it.
    since: [AtomicU64; VERDICTS],
}

/// A copy of what is counted for one server.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Requests that call a tool, by verdict.
    pub tools: ByVerdict,
    /// All others.
    pub others: ByVerdict,
    /// Of all of them, those that linetender ended without the server.
    pub own: u64,
    /// What linetender counted of requests that were not executed, in the order of [`Evidence::ALL`].
    pub not_executed: [u64; Evidence::ALL.len()],
    /// Requests that a server refused, in the order of [`ServerRefusal::ALL`].
    pub refused: [u64; ServerRefusal::ALL.len()],
    /// Why it is unknown whether requests were executed, in the order of [`Doubt::ALL`].
    pub unknown: [u64; Doubt::ALL.len()],
    /// Requests that linetender sent again, in the order of [`RetryReason::ALL`].
    pub retries: [u64; RetryReason::ALL.len()],
    /// Bytes of params, and of answers.
    pub bytes: (u64, u64),
    /// Time with the server, of requests that it answered.
    pub at_server: Histogram,
    /// Time in the queue and waiting for the server, of requests that were sent.
    pub waited: Histogram,
    /// Time from arrival to answer in the last minute or two.
    pub recent: Histogram,
    /// Connections of the server that ended, by cause; those that were planned apart.
    pub ends: BTreeMap<&'static str, u64>,
    /// Planned ends.
    pub planned: u64,
    /// Connections that came up.
    pub starts: u64,
    /// Requests that have not ended.
    pub under_way: usize,
}

#[derive(Debug)]
struct Book {
    counted: Counted,
    /// What `recent` is made of: the window that runs, and the one before.
    windows: [Histogram; 2],
    window_began: Instant,
    slowest: Slowest,
    under_way: BTreeMap<u64, Arc<UnderWay>>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            servers: Mutex::default(),
            feed: broadcast::channel(FEED).0,
            auditor: OnceLock::new(),
            tracer: OnceLock::new(),
        }
    }

    /// The witness of a new line to this server.
    pub(crate) fn line(&self, server: &str, transport: Transport<'_>, holder: Weak<Inner>) -> Arc<LineTally> {
        let server = self.server(server);
        let tracer = self.tracer.get().map(|tracer| tracer.line(&server.name, transport));
        self.witness(server, tracer, holder)
    }

    /// The witness of requests that end before a line is chosen.
    pub(crate) fn door(&self) -> Arc<LineTally> {
        self.witness(self.server(DOOR), None, Weak::new())
    }

    fn server(&self, name: &str) -> Arc<ServerTally> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = servers.get(name) {
            return Arc::clone(tally);
        }
        let tally = Arc::new(ServerTally::new(name.into()));
        servers.insert(Arc::clone(&tally.name), Arc::clone(&tally));
        tally
    }

    fn witness(
        &self,
        server: Arc<ServerTally>,
        tracer: Option<Arc<dyn LineTracer>>,
        holder: Weak<Inner>,
    ) -> Arc<LineTally> {
        let since = [const { AtomicU64::new(0) }; VERDICTS];
        let (feed, auditor) = (self.feed.clone(), self.auditor.get().cloned());
        Arc::new(LineTally { server, feed, auditor, tracer, holder, since })
    }

    /// Lines that are followed from now on are audited. The first one stays.
    pub(crate) fn audit_with(&self, auditor: Auditor) {
        let _ = self.auditor.set(auditor);
    }

    /// Spans are made of lines that are followed from now on. The first one stays.
    pub(crate) fn trace_with(&self, tracer: Arc<dyn Tracer>) {
        let _ = self.tracer.set(tracer);
    }

    /// Every server that was ever held, by name.
    pub(crate) fn servers(&self) -> Vec<Arc<ServerTally>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Each request as it ends, from now on.
    pub(crate) fn feed(&self) -> broadcast::Receiver<Arc<CallReport>> {
        self.feed.subscribe()
    }
}

impl ServerTally {
    fn new(name: Arc<str>) -> Self {
        let counted = Counted::new();
        let windows = [Histogram::new(), Histogram::new()];
        let book = Book {
            counted,
            windows,
            window_began: Instant::now(),
            slowest: Slowest::default(),
            under_way: BTreeMap::new(),
        };
        Self { name, book: Mutex::new(book) }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What is counted, now.
    pub(crate) fn counted(&self) -> Counted {
        let mut book = self.book();
        book.turn(Instant::now());
        let mut counted = book.counted.clone();
        counted.recent = book.windows[0].clone();
        counted.recent.add(&book.windows[1]);
        counted.under_way = book.under_way.len();
        counted
    }

    /// The slowest requests of late, slowest first.
    pub(crate) fn slowest(&self) -> Vec<Slow> {
        self.book().slowest.list(Instant::now())
    }

    /// The oldest requests that have not ended.
    pub(crate) fn under_way(&self, most: usize) -> Vec<Arc<UnderWay>> {
        self.book().under_way.values().take(most).cloned().collect()
    }

    /// A connection of the server came up.
    pub(crate) fn started(&self) {
        self.book().counted.starts += 1;
    }

    /// A connection of the server ended.
    pub(crate) fn ended(&self, leaf: Option<Leaf>, planned: bool) {
        let mut book = self.book();
        if planned {
            book.counted.planned += 1;
        } else {
            *book.counted.ends.entry(leaf.map_or("unknown", Leaf::name)).or_default() += 1;
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineTally {
    pub(crate) fn server(&self) -> &Arc<ServerTally> {
        &self.server
    }

    pub(crate) fn tracer(&self) -> Option<&dyn LineTracer> {
        self.tracer.as_deref()
    }

    /// What ended since this was last asked.
    pub(crate) fn take_since(&self) -> ByVerdict {
        self.since.each_ref().map(|count| count.swap(0, Ordering::Relaxed))
    }
}

impl Witness for LineTally {
    fn came(&self, call: &Arc<UnderWay>, params: Option<&str>) -> Result<(), String> {
        if let Some(context) =
            self.tracer().and_then(|tracer| tracer.came(call, TraceContext::of_params(params)))
        {
            call.traced(context);
        }
        self.server.book().under_way.insert(call.number, Arc::clone(call));
        self.auditor.as_ref().map_or(Ok(()), Auditor::may)
    }

    fn retried(&self, call: &Arc<UnderWay>, retry: Retry) {
        let Retry { reason, from, to, attempt, .. } = retry;
        if let Some(count) = position(&RetryReason::ALL, &reason) {
            self.server.book().counted.retries[count] += 1;
        }
        if let Some(holder) = self.holder.upgrade() {
            holder.write(What::Retry {
                server: self.server.name.to_string(),
                method: call.method.to_string(),
                tool: call.tool.as_deref().map(str::to_owned),
                reason: reason.name().to_owned(),
                from,
                to,
                attempt,
            });
        }
    }

    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt> {
        self.since[index(outcome.verdict)].fetch_add(1, Ordering::Relaxed);
        self.server.book().ended(call, outcome);
        if self.feed.receiver_count() > 0 {
            let _ = self.feed.send(Arc::new(CallReport::ended(&self.server.name, call, outcome)));
        }
        if let Some(tracer) = self.tracer() {
            tracer.ended(call, outcome);
        }
        self.auditor.as_ref().and_then(|auditor| auditor.record(&self.server.name, call, outcome))
    }
}

impl Book {
    fn ended(&mut self, call: &UnderWay, outcome: &Outcome<'_>) {
        self.under_way.remove(&call.number);
        let now = Instant::now();
        self.turn(now);
        let counted = &mut self.counted;
        let verdicts = if call.tool.is_some() || &*call.method == "tools/call" {
            &mut counted.tools
        } else {
            &mut counted.others
        };
        verdicts[index(outcome.verdict)] += 1;
        counted.own += u64::from(outcome.own);
        counted.bytes.0 += outcome.bytes.0 as u64;
        counted.bytes.1 += outcome.bytes.1 as u64;
        let count = match outcome.verdict {
            Verdict::NotExecuted(evidence) => {
                position(&Evidence::ALL, &evidence).map(|at| &mut counted.not_executed[at])
            }
            Verdict::Refused(refusal) => {
                position(&ServerRefusal::ALL, &refusal).map(|at| &mut counted.refused[at])
            }
            Verdict::Unknown(doubt) => position(&Doubt::ALL, &doubt).map(|at| &mut counted.unknown[at]),
            _ => None,
        };
        if let Some(count) = count {
            *count += 1;
        }
        if outcome.attempts > 0 {
            counted.waited.record(outcome.times.queue + outcome.times.line);
            if matches!(outcome.verdict, Verdict::Answered | Verdict::ToolError) {
                counted.at_server.record(outcome.times.server);
                self.windows[0].record(outcome.times.total());
            }
            self.slowest.saw(now, call, outcome);
        }
    }

    /// Begins a new window if it is time for one.
    fn turn(&mut self, now: Instant) {
        let age = now.duration_since(self.window_began);
        if age < WINDOW {
            return;
        }
        let last = std::mem::replace(&mut self.windows[0], Histogram::new());
        // A window that nobody looked at, and in which nothing happened, is empty too.
        self.windows[1] = if age < WINDOW * 2 { last } else { Histogram::new() };
        self.window_began = now;
    }
}

impl Counted {
    fn new() -> Self {
        Self {
            tools: [0; VERDICTS],
            others: [0; VERDICTS],
            own: 0,
            not_executed: [0; Evidence::ALL.len()],
            refused: [0; ServerRefusal::ALL.len()],
            unknown: [0; Doubt::ALL.len()],
            retries: [0; RetryReason::ALL.len()],
            bytes: (0, 0),
            at_server: Histogram::new(),
            waited: Histogram::new(),
            recent: Histogram::new(),
            ends: BTreeMap::new(),
            planned: 0,
            starts: 0,
            under_way: 0,
        }
    }
}

/// Where a verdict is counted.
pub const fn index(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Answered => 0,
        Verdict::ToolError => 1,
        Verdict::Refused(_) => 2,
        Verdict::NotExecuted(_) => 3,
        Verdict::Unknown(_) => 4,
        Verdict::Cancelled(_) => 5,
    }
}

fn position<T: PartialEq>(all: &[T], one: &T) -> Option<usize> {
    all.iter().position(|known| known == one)
}
