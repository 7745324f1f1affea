//! What a server says, and whose it is: an answer is its call's, a question or a notification its agents'.

mod early;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use linetender_core::{LossReport, RetryReason};
use linetender_wire::frame::{self, Frame, Message, Outcome, Routing};
use linetender_wire::seam::{Listener, Loss};
use linetender_wire::{About, Item, Redacted, Room, Seen};
use tokio::sync::Notify;

use super::stray::Stray;
use super::wishes::Wishes;
use crate::audience::{Audience, FromServer, UPDATED, WhileOpen};
use crate::basics::kind::Kind;
use crate::basics::rooms::Rooms;
use crate::basics::sync::{Mutex, MutexGuard};
use crate::book::{Ledger, OpenQuestion, Reply};
use crate::server::{Server, Stderr};
use early::{Early, Kept};

/// How many lines of noise are kept for whoever asks why.
const NOISE_KEPT: usize = 8;

/// The longest notification that a resource changed: it says which one.
const UPDATE_LONGEST: usize = 64 * 1024;

/// A stream of a server somewhere else that ends after this long without use is opened again at the next use.
pub(crate) const UNUSED: Duration = Duration::from_secs(600);

/// What a server is told whose question cannot be read.
const UNREADABLE: &str = r#"{"code":-32700,"message":"linetender: the request cannot be parsed"}"#;

/// What a server is told that asks agents before its handshake is over, and waits for their answer.
const TOO_EARLY: &str =
    r#"{"code":-32600,"message":"linetender: the handshake is not complete, so no agent can answer yet"}"#;

/// How it shows that a program is no MCP server.
const ECHO: &str = "it echoes its input";
const UTF_16: &str = "it writes UTF-16, and MCP is UTF-8";

/// How much of an error without an id is shown.
const ERROR_SHOWN: usize = 400;

/// The ear of one generation.
pub(crate) struct Ear {
    pub(crate) ledger: Arc<Ledger>,
    audience: Arc<Audience>,
    /// What the server is called.
    server: Arc<str>,
    /// Where its stderr goes.
    stderr: Stderr,
    /// Who counts what is kept of its unfinished messages.
    rooms: Option<Arc<dyn Rooms>>,
    /// What agents want to be told of.
    wishes: Arc<Wishes>,
    /// Whether it has written anything that is a message.
    spoke: AtomicBool,
    /// What shows that this is no MCP server, if anything does.
    no_server: OnceLock<&'static str>,
    /// Lines that were no frames, and answers that nobody waited for: how many, and the first of them.
    odd: AtomicU64,
    noise: Mutex<Vec<String>>,
    /// What was heard of the server's lists since the tender last looked: a bit for each list that changed, and [`GAP`].
    lists: AtomicU8,
    /// What it said to agents before its handshake was over.
    early: Early,
    /// Errors without an id that could be about several calls: how many, and one of them.
    strays: AtomicU64,
    stray: Mutex<Option<Stray>>,
}

/// The server may have said that a list changed while no stream was open.
const GAP: u8 = 1 << 7;

/// What was heard of a server's lists.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct ListsHeard {
    /// The server says that these changed.
    pub(crate) changed: BTreeSet<Kind>,
    /// It may have said so of others.
    pub(crate) gap: bool,
}

impl Ear {
    pub(crate) fn new(ledger: Arc<Ledger>, audience: Arc<Audience>) -> Self {
        Self {
            ledger,
            audience,
            server: Arc::from(""),
            stderr: Stderr::Off,
            rooms: None,
            wishes: Arc::default(),
            spoke: AtomicBool::new(false),
            no_server: OnceLock::new(),
            odd: AtomicU64::new(0),
            noise: Mutex::new(Vec::new()),
            lists: AtomicU8::new(0),
            early: Early::default(),
            strays: AtomicU64::new(0),
            stray: Mutex::new(None),
        }
    }

    /// The same, as this server wants it.
    pub(crate) fn of(self, server: &Server, rooms: Option<Arc<dyn Rooms>>, wishes: Arc<Wishes>) -> Self {
        Self { server: Arc::clone(&server.name), stderr: server.stderr, rooms, wishes, ..self }
    }

    /// True if an agent wants to be told of something, or a caller came not long ago.
    fn is_used(&self) -> bool {
        let ledger = &self.ledger;
        ledger.usage.since() < UNUSED
            || self.wishes.has_resources()
            || self.audience.has_tasks(ledger.generation)
    }

    /// What shows that this is no MCP server, if anything does.
    pub(crate) fn no_server(&self) -> Option<&'static str> {
        self.no_server.get().copied()
    }

    /// The handshake is done, and agents can answer: they are passed what the server said so far, in its order.
    pub(crate) fn open(&self) {
        self.early.open(|frame| self.to_agents(frame, None));
    }

    /// Whether the handshake is done.
    pub(crate) fn is_open(&self) -> bool {
        self.early.is_open()
    }

    /// The server does not answer its handshake, perhaps because it waits for an answer itself: nobody can give that yet.
    pub(crate) fn refuse_early(&self) {
        for id in self.early.refuse() {
            let _ = self.ledger.tell(frame::error_reply(&id, TOO_EARLY));
        }
    }

    /// What was heard of the server's lists since this was last asked.
    pub(crate) fn lists_heard(&self) -> ListsHeard {
        let heard = self.lists.swap(0, Ordering::Acquire);
        let changed = Kind::ALL.into_iter().filter(|kind| heard & bit(*kind) != 0).collect();
        ListsHeard { changed, gap: heard & GAP != 0 }
    }

    fn hear_of_lists(&self, bits: u8) {
        if bits != 0 {
            self.lists.fetch_or(bits, Ordering::Release);
            self.ledger.nudge.notify_one();
        }
    }

    /// How many lines were no frames or answered nothing, and the first of them.
    pub(crate) fn odd(&self) -> (u64, Vec<String>) {
        (self.odd.load(Ordering::Relaxed), self.noise().clone())
    }

    fn noise(&self) -> MutexGuard<'_, Vec<String>> {
        self.noise.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_odd(&self) {
        self.odd.fetch_add(1, Ordering::Relaxed);
    }

    fn answer(&self, id: u64, reply: Reply) {
        if !self.ledger.answer(id, reply) {
            self.count_odd();
        }
    }

    /// Hears a message, which came on the exchange of a request of this number if it came on one.
    fn hear_frame(&self, frame: Frame, during: Option<u64>) {
        // Only clients say these. Before anything else was heard, it is our own question that comes back (`cat`).
        if matches!(frame.message(), Message::Request { method: "initialize" | "server/discover", .. })
            && !self.spoke.load(Ordering::Relaxed)
        {
            return self.is_no_server(ECHO);
        }
        self.spoke.store(true, Ordering::Relaxed);
        match frame.message() {
            Message::Request { id, method: "ping", .. } => {
                let _ = self.ledger.tell(frame::reply(id, "{}"));
            }
            Message::Notification { method: "notifications/progress", params } => self.note_progress(params),
            // Each agent that wants to hear of it gets a copy, under a name of its own.
            Message::Notification { method: UPDATED, .. } if frame.text().len() > UPDATE_LONGEST => {
                self.count_odd();
            }
            Message::Notification { method, .. } if Kind::changed_by(method).next().is_some() => {
                self.hear_of_lists(Kind::changed_by(method).map(bit).fold(0, |all, bit| all | bit));
            }
            // It answers a listening request of ours; agents have streams of their own, and acknowledgements of those.
            Message::Notification { method: "notifications/subscriptions/acknowledged", .. } => {}
            Message::Request { .. } | Message::Notification { .. } => match self.early.keep(frame) {
                Kept::Open(frame) => self.to_agents(frame, during),
                Kept::Waits => {}
                Kept::Refused(frame) => match frame.message() {
                    Message::Request { id, .. } => {
                        let _ = self.ledger.tell(frame::error_reply(id, TOO_EARLY));
                    }
                    Message::Notification { .. } | Message::Response { .. } => self.count_odd(),
                },
            },
            Message::Response { .. } => self.take_response(frame),
        }
    }

    /// Passes on what is for agents.
    fn to_agents(&self, frame: Frame, during: Option<u64>) {
        match frame.message() {
            Message::Request { id, .. } => {
                let id = id.to_owned();
                let question = self.ledger.question(during);
                if let Err(why) = self.pass_on(frame, Some(question)) {
                    let _ = self.ledger.tell(frame::error_reply(&id, &why));
                }
            }
            // About a question of its own: the agent knows that by another number.
            Message::Notification { method: "notifications/cancelled", .. } => {
                if self.pass_on(frame, None).is_err() {
                    self.count_odd();
                }
            }
            // An agent that reads too slowly misses it; what is lost here is never an answer.
            Message::Notification { .. } | Message::Response { .. } => {
                if self.audience.tell(self.ledger.generation, &frame) > 0 {
                    self.count_odd();
                }
            }
        }
    }

    fn take_response(&self, frame: Frame) {
        let Message::Response { id, outcome } = frame.message() else { return };
        match (frame.response_number(), id) {
            (Some(number), _) => {
                let reply = match outcome {
                    Some(_) => Reply::Answer(frame),
                    None => Reply::Unusable("the response has neither a result nor an error".into()),
                };
                self.answer(number, reply);
            }
            (None, None) => self.answer_without_id(&frame),
            (None, Some(_)) => self.count_odd(),
        }
    }

    /// An error without an id: about the one call in flight, if it can only be about that.
    fn answer_without_id(&self, frame: &Frame) {
        let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
            return self.count_odd();
        };
        let error = Redacted::head(error, ERROR_SHOWN);
        let text = Redacted::head(
            &format!("the server sent an error without a request id: {error}"),
            2 * ERROR_SHOWN,
        );
        match self.ledger.only_sent() {
            Some(id) => self.answer(id, Reply::Unusable(text.to_string())),
            None => self.stray(text),
        }
    }

    /// An error that may be about any of several calls, or about none: no call ends for it now.
    fn stray(&self, words: Redacted) {
        // The server decides how often it sends one.
        let count = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(server = &*self.server, count, %words, "error without a request id");
        }
        let about = self.ledger.in_flight();
        let mut stray = self.stray.lock().unwrap_or_else(PoisonError::into_inner);
        if stray.is_none() && !about.is_empty() {
            *stray = Some(Stray { seen: Arc::new(Seen::Unusable { words }), about });
            drop(stray);
            self.ledger.nudge.notify_one();
        }
    }

    /// An error without an id that was not looked at yet.
    pub(crate) fn take_stray(&self) -> Option<Stray> {
        self.stray.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Progress keeps its call alive. A token that no call has belongs to one that is over: nobody wants to hear of it.
    fn note_progress(&self, params: Option<&str>) {
        let token = Routing::of("notifications/progress", params).ok().and_then(|routing| routing.token);
        let known = token.zip(params).is_some_and(|(token, params)| {
            frame::number(token.get()).is_some_and(|id| self.ledger.progressed(id, params))
        });
        if !known {
            self.count_odd();
        }
    }

    /// What it writes cannot be MCP: whoever waits for the handshake need not wait for its time to be up.
    fn is_no_server(&self, why: &'static str) {
        self.count_odd();
        let _ = self.no_server.set(why);
        for id in self.ledger.our_own() {
            self.answer(id, Reply::Unusable(why.into()));
        }
    }

    fn pass_on(&self, frame: Frame, question: Option<OpenQuestion>) -> Result<(), Cow<'static, str>> {
        let question = question.map(|question| Arc::new(question) as WhileOpen);
        self.audience.ask(FromServer { generation: self.ledger.generation, frame, question })
    }
}

const fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}

/// Text of which nearly every other byte is zero. A banner has none.
fn is_utf_16(line: &[u8]) -> bool {
    let pairs = line[..line.len().min(256)].chunks_exact(2);
    let (all, zero) = (pairs.len(), pairs.filter(|pair| pair.contains(&0)).count());
    all >= 4 && zero * 10 >= all * 8
}

impl Listener for Ear {
    fn lost(&self, id: u64, loss: Loss) {
        if !self.ledger.fail(id, loss) {
            self.count_odd();
        }
    }

    fn redirected(&self, id: u64) {
        self.ledger.redirected(id);
    }

    fn repeated(&self, method: &str) {
        let reason = RetryReason::Auth.name();
        tracing::info!(server = &*self.server, method, reason, "message sent again");
    }

    fn gap(&self) {
        self.hear_of_lists(GAP);
    }

    fn stream_wanted(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if !self.is_used() {
                self.ledger.usage.next().await;
            }
        })
    }

    fn wants_stderr(&self) -> bool {
        self.stderr != Stderr::Off
    }

    fn stderr(&self, line: &[u8]) {
        self.stderr.hear(&self.server, line);
    }

    fn room(&self, wanted: &Arc<Notify>) -> Option<Box<dyn Room>> {
        self.rooms.as_ref().map(|rooms| rooms.room(&self.server, wanted))
    }

    fn hear_during(&self, id: u64, item: Item) {
        match item {
            Item::Frame(frame) => self.hear_frame(frame, Some(id)),
            other => self.hear(other),
        }
    }

    fn heard(&self) {
        self.ledger.signs.heard();
    }

    fn hear(&self, item: Item) {
        match item {
            Item::Frame(frame) => self.hear_frame(frame, None),
            Item::Noise(noise) => {
                self.count_odd();
                // Before the first message: after one it has shown that it can.
                if is_utf_16(&noise) && !self.spoke.load(Ordering::Relaxed) {
                    self.is_no_server(UTF_16);
                }
                let mut kept = self.noise();
                if kept.len() < NOISE_KEPT {
                    let text = String::from_utf8_lossy(&noise);
                    kept.push(Redacted::head(&text, 200).to_string());
                }
            }
            Item::Unreadable { about, bad, seen } => {
                let why = format!("the response is {bad} ({seen} bytes received)");
                match about {
                    About::Answer(id) => match frame::number(&id) {
                        Some(id) => self.answer(id, Reply::Unusable(why)),
                        None => self.count_odd(),
                    },
                    // A question of the server's own: its id is none of ours.
                    About::Question(id) => {
                        self.count_odd();
                        if let Some(id) = id {
                            let _ = self.ledger.tell(frame::error_reply(&id, UNREADABLE));
                        }
                    }
                    About::Unknown => {
                        let seen = Seen::Unusable { words: Redacted::head(&why, ERROR_SHOWN) };
                        self.ledger.settle_all(|_| LossReport::Nothing, Some(&Arc::new(seen)));
                    }
                }
            }
        }
    }
}
