//! How a request ended: one value, made in one place. Whatever is counted, shown or kept of requests is made from it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linetender_core::{Delivery, Doubt, Evidence, RetryOn, RetryReason, ServerRefusal};
use linetender_wire::handshake::Era;
use tokio::time::Instant;

use crate::basics::params::tool_of;
use crate::basics::trace::TraceContext;

/// How a request ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome<'a> {
    /// What is known of it.
    pub verdict: Verdict,
    /// The number of the error that the caller got: linetender's own ([`Code`](crate::Code)), or the server's.
    pub code: Option<i64>,
    /// Whether linetender itself answered it, from what it knows of the server, and the server was not asked.
    pub own: bool,
    /// The era of the connection that it was sent on, if it was sent.
    pub era: Option<Era>,
    /// The last generation that it was given to, if any.
    pub generation: Option<u64>,
    /// The generations that it was given to, oldest first. Of many, the newest.
    pub generations: &'a [u64],
    /// Its id on the connection that it was sent on last, if it was sent.
    pub id: Option<u64>,
    /// The revision of MCP that is spoken there. Known of requests that are traced.
    pub revision: Option<&'a str>,
    /// How often it was sent: once, and once more for each re-send.
    pub attempts: u32,
    /// Why it was sent again, if it was.
    pub retried: RetryOn,
    /// Its params, raw.
    pub params: Option<&'a str>,
    /// Bytes of the params, and of the answer.
    pub bytes: (usize, usize),
    /// Where its time went.
    pub times: Times,
}

/// What is known of a request that has ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// The server answered, be it with a JSON-RPC error.
    Answered,
    /// The tool ran and says that it failed (`isError`).
    ToolError,
    /// The server, or a proxy before it, said that it did not execute it.
    Refused(ServerRefusal),
    /// linetender counted that the server cannot have executed it: most often, it was not sent.
    NotExecuted(Evidence),
    /// It may have been executed.
    Unknown(Doubt),
    /// Its caller went away first; and whether it was executed.
    Cancelled(Delivery),
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Times {
    /// In the queue for a place among the calls in flight.
    pub queue: Duration,
    /// Waiting for the server to be there.
    pub line: Duration,
    /// With the server.
    pub server: Duration,
}

/// A request that has not ended. Its owner writes down how far it has got, and everybody may look.
#[derive(Debug)]
pub struct UnderWay {
    /// Counts the requests of this process.
    pub number: u64,
    /// Its method.
    pub method: Box<str>,
    /// The tool, if it calls one.
    pub tool: Option<Box<str>>,
    /// Whom it is made for, if that is known.
    pub principal: Option<Arc<str>>,
    /// When it came.
    pub since: Instant,
    /// Whether linetender answers it itself, and no line sees it.
    pub own: bool,
    stage: AtomicU8,
    generation: AtomicU64,
    trace: OnceLock<TraceContext>,
}

/// How far a request has got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// In the queue for a place among the calls in flight.
    Queued,
    /// Waiting for the server to be there.
    Waiting,
    /// With the server.
    AtServer,
}

/// A call that linetender sends again by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Retry {
    /// What permits it.
    pub reason: RetryReason,
    /// The generation of the earlier attempt.
    pub from: u64,
    /// The generation of this attempt.
    pub to: u64,
    /// The number of this attempt. The first re-send is attempt 2.
    pub attempt: u32,
}

/// What an answer waits for, if somebody has to have written down first that there is one. `Err` says why that failed.
pub type Receipt = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Whoever sees every request of a line come and end. Nothing here may block: it is called by the request itself.
pub trait Witness: fmt::Debug + Send + Sync {
    /// A request has come, with these params. If it belongs to a trace, this is the time to [say so](UnderWay::traced).
    ///
    /// # Errors
    /// If it must not be made, since nobody could bear witness: why.
    fn came(&self, call: &Arc<UnderWay>, params: Option<&str>) -> Result<(), String>;

    /// It is sent again, by linetender itself.
    fn retried(&self, _call: &Arc<UnderWay>, _retry: Retry) {}

    /// It has ended. The caller is told when the receipt says so, if there is one.
    fn ended(&self, call: &Arc<UnderWay>, outcome: &Outcome<'_>) -> Option<Receipt>;
}

impl Verdict {
    /// linetender did not send it.
    pub const NOT_SENT: Self = Self::NotExecuted(Evidence::Queued);

    /// Its words. Everywhere.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ToolError => "tool error",
            Self::Refused(_) => "refused",
            Self::NotExecuted(_) => "not executed",
            Self::Unknown(_) => "unknown",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// Whether it was executed, as far as anybody knows.
    pub const fn delivery(self) -> Delivery {
        match self {
            Self::Answered | Self::ToolError => Delivery::Answered,
            Self::Refused(refusal) => Delivery::Refused(refusal),
            Self::NotExecuted(evidence) => Delivery::NotExecuted(evidence),
            Self::Unknown(doubt) => Delivery::Unknown(doubt),
            Self::Cancelled(delivery) => delivery,
        }
    }
}

impl From<Delivery> for Verdict {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::NotExecuted(evidence) => Self::NotExecuted(evidence),
            Delivery::Refused(refusal) => Self::Refused(refusal),
            Delivery::Unknown(doubt) => Self::Unknown(doubt),
            Delivery::Answered => Self::Answered,
        }
    }
}

impl Times {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.queue + self.line + self.server
    }
}

impl UnderWay {
    pub(crate) fn new(
        number: u64,
        method: &str,
        tool: Option<Box<str>>,
        principal: Option<Arc<str>>,
        since: Instant,
        own: bool,
    ) -> Arc<Self> {
        let (stage, generation) = (AtomicU8::new(Stage::Queued as u8), AtomicU64::new(0));
        let (method, trace) = (method.into(), OnceLock::new());
        Arc::new(Self { number, method, tool, principal, since, own, stage, generation, trace })
    }

    /// The server is told this context in `_meta`, in place of the caller's. The first one stays, and it counts if it is there
    /// when [`Witness::came`] returns.
    pub fn traced(&self, context: TraceContext) {
        let _ = self.trace.set(context);
    }

    /// The context that the server is told, if it is traced.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.get()
    }

    pub(crate) fn reaches(&self, stage: Stage, generation: Option<u64>) {
        if let Some(generation) = generation {
            self.generation.store(generation, Ordering::Relaxed);
        }
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// How far it has got.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Queued,
            1 => Stage::Waiting,
            _ => Stage::AtServer,
        }
    }

    /// The generation that it was given to last, if it was given to one.
    pub fn generation(&self) -> Option<u64> {
        Some(self.generation.load(Ordering::Relaxed)).filter(|generation| *generation > 0)
    }
}

impl Stage {
    /// Its words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting for the server",
            Self::AtServer => "at the server",
        }
    }
}

/// A request that ended before it came to a line: linetender answered it from what it knows, or did not take it.
#[doc(hidden)] // for linetender's gateway
#[derive(Clone, Debug)]
pub struct Here<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its params, raw.
    pub params: Option<&'a str>,
    /// Whom it was made for, if that is known.
    pub principal: Option<Arc<str>>,
    /// When it came.
    pub since: Instant,
}

impl Here<'_> {
    /// It has ended.
    pub fn ended(self, witness: &dyn Witness, verdict: Verdict, code: Option<i64>) {
        let Self { method, params, principal, since } = self;
        let tool = tool_of(method, params);
        let call = UnderWay::new(next_number(), method, tool, principal, since, true);
        // It is over already: whether it may be made is no question any more.
        let _ = witness.came(&call, params);
        let outcome = Outcome {
            verdict,
            code,
            own: true,
            era: None,
            generation: None,
            generations: &[],
            id: None,
            revision: None,
            attempts: 0,
            retried: RetryOn::NOTHING,
            params,
            bytes: (params.map_or(0, str::len), 0),
            times: Times { queue: since.elapsed(), ..Times::default() },
        };
        // Nobody waits for the receipt: nothing ran.
        drop(witness.ended(&call, &outcome));
    }
}

/// The number of the next request of this process.
pub(crate) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
