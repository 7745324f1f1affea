//! The way down: one call, from the gate to its answer.

mod out;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use linetender_core::{
    Admission, Declared, Delivery, Held, Instant, Method, Next, Proof, Record, RecordStep, Refusal,
    RetryBudget, Rules, Safety, Span,
};
use linetender_wire::frame::{self, Frame, Message, Outcome};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::dial::Link;
use crate::error::{CallError, CallErrorKind};
use crate::ledger::NoSeat;
use crate::server::Server;
use crate::status::{self, Published};
use crate::tender::Inbox;
use crate::wishes::Wishes;
use out::{Out, Try};

/// What a modern request has in its `_meta`.
const MODERN_META: &str = "io.modelcontextprotocol/protocolVersion";

/// What line, tender and calls share.
pub(crate) struct Shared {
    pub(crate) server: Arc<Server>,
    pub(crate) clock: Clock,
    pub(crate) published: watch::Receiver<Published>,
    pub(crate) catalogue: watch::Receiver<Arc<Catalogue>>,
    pub(crate) inbox: mpsc::Sender<Inbox>,
    pub(crate) seats: Semaphore,
    pub(crate) waiting: AtomicUsize,
    pub(crate) calls: AtomicU64,
    pub(crate) retry: std::sync::Mutex<RetryBudget>,
    pub(crate) wishes: Arc<Wishes>,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Its time.
    pub deadline: Deadline,
}

/// Whose the deadline is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Deadline {
    /// Ours, by the policy: progress extends it, up to the cap.
    #[default]
    Policy,
    /// Ours, and this long.
    After(Span),
    /// The agent's. We only look for life when it has been quiet for the policy's limit.
    Agent,
}

/// The server's answer, as it was spelt.
#[derive(Clone, Debug)]
pub struct Answer {
    frame: Frame,
}

/// One call on its way.
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) options: Options,
}

impl Answer {
    pub(crate) const fn new(frame: Frame) -> Self {
        Self { frame }
    }

    /// The result, raw; `null` if it is an error.
    pub fn result(&self) -> &str {
        match self.frame.message() {
            Message::Response { outcome: Some((Outcome::Result, result)), .. } => result,
            _ => "null",
        }
    }

    /// The JSON-RPC error, raw, if it is one.
    pub fn error(&self) -> Option<&str> {
        match self.frame.message() {
            Message::Response { outcome: Some((Outcome::Error, error)), .. } => Some(error),
            _ => None,
        }
    }

    /// The whole message with another id in place of ours.
    pub fn with_id(&self, id: &str) -> Bytes {
        self.frame.with_id(id)
    }
}

impl Call<'_> {
    /// Waits for the line as a call would, and makes none.
    pub(crate) async fn ready(self) -> Result<(), CallError> {
        let until = self.shared.clock.now() + self.shared.server.policy.settings().dial.start;
        self.admit(&Record::new(Safety::Protocol), until).await.map(drop)
    }

    /// Makes the call, however many tries that takes.
    pub(crate) async fn run(self) -> Result<Answer, CallError> {
        let shared = self.shared;
        let policy = shared.server.policy.settings();
        shared.calls.fetch_add(1, Ordering::Relaxed);
        let arrived = shared.clock.now();
        let limit = match self.options.deadline {
            Deadline::Policy => policy.call.limit,
            Deadline::After(span) => span,
            Deadline::Agent => policy.call.limit,
        };
        let mut record = Record::new(self.safety());
        let _seat = self.seat(&record, arrived + limit).await?;
        loop {
            let link = self.admit(&record, arrived + limit).await?;
            match self.attempt(&link, record, arrived, limit).await {
                Try::Answer(frame) => {
                    let answer = Answer::new(frame);
                    if answer.error().is_none() {
                        shared.wishes.granted(self.method, self.params);
                    }
                    return Ok(answer);
                }
                Try::Over(kind, record, cause) => {
                    return Err(self.error(kind, "with the server", cause, &record));
                }
                Try::Sealed => {}
                Try::Lost(lost) => record = self.after_loss(&link, lost, arrived + limit).await?,
            }
        }
    }

    fn safety(&self) -> Safety {
        let method = match self.method {
            "tools/call" => Method::CallTool,
            "server/discover" => Method::Discover,
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => Method::List,
            "resources/read" => Method::ReadResource,
            "prompts/get" => Method::GetPrompt,
            "completion/complete" => Method::Complete,
            "tasks/get" => Method::GetTask,
            _ => Method::Other,
        };
        let listed = self.tool.is_some_and(|tool| self.shared.server.safe_tools.contains(tool));
        Safety::of(method, self.shared.server.policy.settings().trust_annotations, listed)
    }

    /// A place among the calls in flight, or in the queue for one.
    async fn seat(
        &self,
        record: &Record,
        deadline: Instant,
    ) -> Result<tokio::sync::SemaphorePermit<'_>, CallError> {
        if let Ok(seat) = self.shared.seats.try_acquire() {
            return Ok(seat);
        }
        let queue = usize::from(self.shared.server.policy.settings().limits.queue);
        let waiting = Waiting::enter(&self.shared.waiting);
        if waiting.before >= queue {
            let cause = format!("{queue} calls wait for this server already");
            return Err(self.error(CallErrorKind::Overloaded, "before the line", cause, record));
        }
        let seat = tokio::time::timeout_at(self.shared.clock.at(deadline), self.shared.seats.acquire()).await;
        seat.ok().and_then(Result::ok).ok_or_else(|| {
            let record = record.step(RecordStep::Expire).unwrap_or(*record);
            let cause = "its turn did not come in time: the calls before it are not answered".to_owned();
            self.error(CallErrorKind::TimedOut, "before the line", cause, &record)
        })
    }

    /// Waits at the gate, and knocks if it has to.
    async fn admit(&self, record: &Record, deadline: Instant) -> Result<Arc<Link>, CallError> {
        let clock = self.shared.clock;
        let mut published = self.shared.published.clone();
        let mut held: Option<Held> = None;
        loop {
            let (gate, link) = {
                let now = published.borrow_and_update();
                (now.gate, now.link.clone())
            };
            let admission = match held {
                None => gate.admit(clock.now()),
                Some(held) => gate.recheck(held),
            };
            let admission = match admission {
                Admission::Knock => self.knock().await,
                other => other,
            };
            match admission {
                Admission::Go { generation } => match link.filter(|link| link.generation == generation) {
                    Some(link) => return Ok(link),
                    // What the tender said is newer than what we read: read again.
                    None => tokio::task::yield_now().await,
                },
                Admission::Hold(now_held) => {
                    held = Some(now_held);
                    let until = now_held.until.min(deadline);
                    if self.changed_before(&mut published, until).await.is_err() {
                        return Err(self.held_too_long(record));
                    }
                }
                Admission::Refuse { why, next } => return Err(self.refused(why, next, record)),
                Admission::Knock => {
                    return Err(self.refused(Refusal::Closed, linetender_core::NextTry::Never, record));
                }
            }
        }
    }

    async fn changed_before(
        &self,
        published: &mut watch::Receiver<Published>,
        until: Instant,
    ) -> Result<(), ()> {
        match tokio::time::timeout_at(self.shared.clock.at(until), published.changed()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(()),
        }
    }

    async fn knock(&self) -> Admission {
        let (reply, told) = oneshot::channel();
        let closed = Admission::Refuse { why: Refusal::Closed, next: linetender_core::NextTry::Never };
        if self.shared.inbox.send(Inbox::Knock(reply)).await.is_err() {
            return closed;
        }
        told.await.unwrap_or(closed)
    }

    /// One try on one generation.
    async fn attempt(&self, link: &Arc<Link>, record: Record, arrived: Instant, limit: Span) -> Try {
        let text = |id| self.text(id, link);
        let (entry, answer) = match link.ledger.register(true, record, text) {
            Ok(seat) => seat,
            Err(NoSeat::Sealed) => {
                // The death is published a moment after the seal.
                let mut published = self.shared.published.clone();
                if published
                    .borrow_and_update()
                    .link
                    .as_ref()
                    .is_some_and(|now| now.generation == link.generation)
                {
                    let soon =
                        self.shared.clock.now() + self.shared.server.policy.settings().call.wait_for_line;
                    let _ = self.changed_before(&mut published, soon).await;
                }
                return Try::Sealed;
            }
            Err(NoSeat::Full) => {
                let record = record.step(RecordStep::Cancel).unwrap_or(record);
                return Try::Over(
                    CallErrorKind::Overloaded,
                    record,
                    "the server does not read its input".into(),
                );
            }
        };
        let mut out = Out::new(self.shared, link, entry, arrived + limit);
        out.wait(answer, self.options.deadline, arrived, limit).await
    }

    fn text(&self, id: u64, link: &Link) -> Bytes {
        match (link.era(), self.params) {
            // An agent of that era has said it already, and its words are not touched.
            (linetender_wire::handshake::Era::Modern, Some(params)) if params.contains(MODERN_META) => {
                frame::request(id, self.method, Some(params))
            }
            (linetender_wire::handshake::Era::Modern, params) => {
                let params = with_meta(params, &self.shared.server.hello);
                frame::request(id, self.method, Some(&params))
            }
            (linetender_wire::handshake::Era::Legacy, params) => frame::request(id, self.method, params),
        }
    }

    /// What becomes of a call that its generation lost: the core decides.
    async fn after_loss(&self, link: &Link, lost: Record, deadline: Instant) -> Result<Record, CallError> {
        let shared = self.shared;
        let policy = shared.server.policy.settings();
        let mut declared = Declared::NotYet;
        loop {
            let rules = Rules::new(policy, true, declared);
            let withdraw = || {
                let mut budget = shared.retry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                budget.withdraw(policy.retry, shared.calls.load(Ordering::Relaxed), shared.clock.now())
            };
            match lost.next(rules, withdraw) {
                Some(Next::Bind(record) | Next::Again { record, .. }) => return Ok(record),
                Some(Next::AskNewGeneration) => declared = self.ask_new_generation(link, deadline).await,
                Some(Next::Settle(_)) | None => {
                    let why = link.ledger.ended.get();
                    let cause = why.map_or_else(|| "the connection ended".to_owned(), |why| why.text.clone());
                    let mut error = self.error(CallErrorKind::Lost, "with the server", cause, &lost);
                    error.stderr = why.and_then(|why| why.stderr.clone());
                    return Err(error);
                }
            }
        }
    }

    /// What the new generation says of the tool; unsafe, if it does not say so in time.
    async fn ask_new_generation(&self, link: &Link, deadline: Instant) -> Declared {
        let lost = link.generation.number();
        let mut catalogue = self.shared.catalogue.clone();
        let patience = self.shared.clock.now() + self.shared.server.policy.settings().call.wait_for_line;
        let read = catalogue.wait_for(|catalogue| catalogue.generation > lost);
        match tokio::time::timeout_at(self.shared.clock.at(patience.min(deadline)), read).await {
            Ok(Ok(catalogue)) if self.tool.is_some_and(|tool| catalogue.declares_safe(tool)) => {
                Declared::Safe
            }
            _ => Declared::Unsafe,
        }
    }

    fn last_cause(&self) -> Option<String> {
        self.shared.published.borrow().status.cause.as_ref().map(|why| why.text.clone())
    }

    fn error(&self, kind: CallErrorKind, phase: &'static str, cause: String, record: &Record) -> CallError {
        let (gate, why) = {
            let now = self.shared.published.borrow();
            (now.gate, now.status.cause.clone())
        };
        CallError {
            kind,
            server: Arc::clone(&self.shared.server.name),
            phase,
            cause,
            delivery: record.verdict().unwrap_or(Delivery::NotExecuted(Proof::Queued)),
            next_try: status::next_try_of(gate, self.shared.clock),
            stderr: why.and_then(|why| why.stderr.clone()),
        }
    }

    fn refused(&self, why: Refusal, next: linetender_core::NextTry, record: &Record) -> CallError {
        let words = status::refusal(why);
        let cause = match self.last_cause() {
            Some(cause) => format!("{words}: {cause}"),
            None => words.to_owned(),
        };
        let record = record.step(RecordStep::Cancel).unwrap_or(*record);
        let mut error = self.error(CallErrorKind::Refused(why), "before the line", cause, &record);
        error.next_try = status::next_try(next, self.shared.clock);
        error
    }

    fn held_too_long(&self, record: &Record) -> CallError {
        let cause = match self.last_cause() {
            Some(cause) => format!("the line did not come up in time; before that, {cause}"),
            None => "the line did not come up in time".to_owned(),
        };
        let record = record.step(RecordStep::Expire).unwrap_or(*record);
        self.error(CallErrorKind::HeldTooLong, "before the line", cause, &record)
    }
}

/// One of those who wait for a seat.
struct Waiting<'a> {
    count: &'a AtomicUsize,
    before: usize,
}

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        Self { count, before: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The params with what a modern server wants to see on every request, and every other byte as it was.
fn with_meta(params: Option<&str>, hello: &linetender_wire::handshake::Hello) -> String {
    #[derive(serde::Deserialize)]
    struct Looked<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a serde_json::value::RawValue>,
    }
    let ours = hello.meta().to_string();
    let ours = ours.strip_prefix('{').and_then(|ours| ours.strip_suffix('}')).unwrap_or_default();
    let params = params.unwrap_or("{}");
    // What is no object is not ours to mend: the server says what it thinks of it.
    if !params.trim_start().starts_with('{') {
        return params.to_owned();
    }
    let Ok(looked) = serde_json::from_str::<Looked<'_>>(params) else { return params.to_owned() };
    match looked.meta.map(serde_json::value::RawValue::get).filter(|meta| meta.starts_with('{')) {
        Some(meta) => {
            let at = meta.as_ptr() as usize - params.as_ptr() as usize;
            format!("{}{}", &params[..at], put_first(&params[at..], ours))
        }
        None => put_first(params, &format!(r#""_meta":{{{ours}}}"#)),
    }
}

/// An object's text with these members before its own.
fn put_first(object: &str, members: &str) -> String {
    let open = object.find('{').map_or(0, |at| at + 1);
    let comma = if object[open..].trim_start().starts_with('}') { "" } else { "," };
    format!("{}{members}{comma}{}", &object[..open], &object[open..])
}

#[cfg(test)]
mod tests {
    use super::with_meta;
    use linetender_wire::handshake::Hello;

    #[test]
    fn meta_is_spliced_in_and_every_other_byte_stays() {
        let hello = Hello::Ours { name: "n".into(), version: "1".into() };
        for (params, tail) in [
            (Some(r#"{"z":12345678901234567890123,"a":1.50}"#), r#","z":12345678901234567890123,"a":1.50}"#),
            (Some("{ }"), " }"),
            (None, "}"),
            (Some(r#"{"b":1,"_meta":{"progressToken":7},"a":2}"#), r#","progressToken":7},"a":2}"#),
        ] {
            let made = with_meta(params, &hello);
            assert!(made.ends_with(tail), "{made}");
            let read: serde_json::Value = serde_json::from_str(&made).unwrap();
            assert_eq!(read["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{made}");
            assert_eq!(read["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "n", "{made}");
        }
        assert_eq!(with_meta(Some("[1]"), &hello), "[1]");
    }
}
