//! The calls of one generation: registered, answered, settled. And the ears of that generation.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use linetender_core::{Evidence, Generation, Record, Vitals};
use linetender_wire::frame::{self, Frame, Message, Outcome};
use linetender_wire::handshake::Era;
use linetender_wire::seam::{Exchange, Listener, Loss, Outbox, Outgoing, Refused, Ticket};
use linetender_wire::{About, Detail, Item, Redacted, Seen, queue};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::audience::Audience;
use crate::catalogue::Kind;
use crate::clock::Clock;
use crate::entry::{Entry, Heed, Last, Notice, Reply};
use crate::server::Stderr;
use crate::signs::{GiveUp, Signs};
use crate::status::Why;
use crate::sync::{Mutex, MutexGuard};

/// How many lines of noise are kept for whoever asks why.
const NOISE_KEPT: usize = 8;

/// What a server is told whose question cannot be read.
const UNREADABLE: &str = r#"{"code":-32700,"message":"linetender: the request cannot be read"}"#;

/// How it shows that a program is no MCP server.
const ECHO: &str = "it writes back what it reads";
const UTF_16: &str = "it writes UTF-16, and MCP is UTF-8";

/// How much of an error without an id is shown.
const ERROR_SHOWN: usize = 400;

/// Why a call could not be registered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoSeat {
    /// The generation is over: ask the gate again.
    Sealed,
    /// Too many wait to be written.
    Full,
}

/// A call's seat, where its answer comes, and what came of sending it.
type Seated<T> = (Arc<Entry>, oneshot::Receiver<Reply>, T);

/// Something that the server wants of the agent.
#[derive(Clone, Debug)]
pub(crate) struct FromServer {
    pub(crate) generation: Generation,
    pub(crate) frame: Frame,
}

/// An agent on a line.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) era: Era,
    /// Where the server's questions go, and what it says about them; and what has to be told in other words.
    pub(crate) said: mpsc::Sender<FromServer>,
    /// Where its notifications go: straight to the agent, so that none comes after the answer it was written before.
    pub(crate) direct: queue::Sender<bytes::Bytes>,
}

/// The calls of one generation.
pub(crate) struct Ledger {
    pub(crate) generation: Generation,
    clock: Clock,
    book: Mutex<Book>,
    next_id: AtomicU64,
    /// What was heard from the server, and what was given up since.
    pub(crate) signs: Arc<Signs>,
    /// Lines that were no frames, and answers that nobody waited for.
    odd: AtomicU64,
    /// Whether it has written anything that is a message.
    spoke: AtomicBool,
    /// What shows that this is no MCP server, if anything does.
    pub(crate) no_server: OnceLock<&'static str>,
    outbox: OnceLock<Outbox>,
    /// Whether each call has an exchange of its own.
    exchanges: AtomicBool,
    /// Whether the last thing that was written was no call: an error without an id may be about that.
    last: Arc<Last>,
    audience: Arc<Audience>,
    /// Why the generation ended, once it has.
    pub(crate) ended: OnceLock<Arc<Why>>,
    /// Somebody wants to know when nothing is in flight any more.
    pub(crate) draining: AtomicBool,
    /// The server said that a list of its changed.
    pub(crate) lists_changed: AtomicBool,
    /// Wakes the tender: it looks at the two above.
    pub(crate) nudge: Arc<Notify>,
    /// Where the server's stderr goes, and what the server is called there.
    stderr: Option<(Stderr, Arc<str>)>,
}

#[derive(Default)]
struct Book {
    sealed: bool,
    calls: HashMap<u64, Arc<Entry>>,
    /// Those that a caller waits for, the oldest first.
    waited: BTreeSet<u64>,
    noise: Vec<String>,
}

impl Ledger {
    pub(crate) fn new(
        generation: Generation,
        clock: Clock,
        audience: Arc<Audience>,
        nudge: Arc<Notify>,
    ) -> Self {
        Self {
            generation,
            clock,
            book: Mutex::new(Book::default()),
            next_id: AtomicU64::new(1),
            signs: Arc::new(Signs::new(clock)),
            odd: AtomicU64::new(0),
            spoke: AtomicBool::new(false),
            no_server: OnceLock::new(),
            outbox: OnceLock::new(),
            exchanges: AtomicBool::new(false),
            last: Arc::default(),
            audience,
            ended: OnceLock::new(),
            draining: AtomicBool::new(false),
            lists_changed: AtomicBool::new(false),
            nudge,
            stderr: None,
        }
    }

    /// The same, for a server whose stderr goes somewhere.
    pub(crate) fn with_stderr(self, stderr: Stderr, server: &Arc<str>) -> Self {
        let stderr = (stderr != Stderr::Off).then(|| (stderr, Arc::clone(server)));
        Self { stderr, ..self }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way down is known, and whether each call has an exchange of its own there. If the end has begun in the
    /// meantime, nothing goes there any more.
    pub(crate) fn open(&self, outbox: Outbox, exchanges: bool) {
        let book = self.book();
        self.exchanges.store(exchanges, Ordering::Relaxed);
        if book.sealed {
            outbox.seal();
        }
        let _ = self.outbox.set(outbox);
    }

    /// Registers a call and hands it to the writer. The frame is made once the id is known.
    pub(crate) fn register(
        &self,
        heed: Option<Heed>,
        record: Record,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<(Arc<Entry>, oneshot::Receiver<Reply>), NoSeat> {
        self.seat(heed, record, frame, Outbox::send).map(|(entry, answer, ())| (entry, answer))
    }

    /// The same for a caller that carries its call's exchange, if that has one.
    pub(crate) fn carry(
        &self,
        heed: Option<Heed>,
        record: Record,
        frame: impl FnOnce(u64) -> Frame,
    ) -> Result<Seated<Option<Exchange>>, NoSeat> {
        self.seat(heed, record, frame, Outbox::carry)
    }

    fn seat<T>(
        &self,
        heed: Option<Heed>,
        record: Record,
        frame: impl FnOnce(u64) -> Frame,
        send: impl FnOnce(&Outbox, Outgoing) -> Result<T, Refused>,
    ) -> Result<Seated<T>, NoSeat> {
        let outbox = self.outbox.get().ok_or(NoSeat::Sealed)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (entry, answer) = Entry::new(id, heed, record, Arc::clone(&self.last));
        let entry = Arc::new(entry);
        // In the book first: whoever settles comes after the seal, so it finds this call, or the seal is found below.
        self.book().insert(Arc::clone(&entry));
        let ticket = Some(Arc::clone(&entry) as Arc<dyn Ticket>);
        match send(outbox, Outgoing::frame(frame(id), ticket)) {
            Ok(sent) => Ok((entry, answer, sent)),
            Err(refused) => {
                self.remove(id);
                Err(match refused {
                    Refused::Full => NoSeat::Full,
                    Refused::Sealed => NoSeat::Sealed,
                })
            }
        }
    }

    /// Tells the server something that needs no answer; whether there was room for it.
    pub(crate) fn tell(&self, text: bytes::Bytes) -> bool {
        self.outbox.get().is_some_and(|outbox| outbox.send(self.notice(text)).is_ok())
    }

    /// Tells the server something that it waits for.
    pub(crate) async fn tell_surely(&self, text: bytes::Bytes) {
        if let Some(outbox) = self.outbox.get() {
            outbox.send_when_room(self.notice(text)).await;
        }
    }

    fn notice(&self, text: bytes::Bytes) -> Outgoing {
        let ticket = Arc::new(Notice(Arc::clone(&self.last)));
        Outgoing::text(text, Some(ticket))
    }

    /// The end has begun: the way down takes nothing more, and whoever has a seat will be settled.
    pub(crate) fn seal(&self) {
        let mut book = self.book();
        book.sealed = true;
        if let Some(outbox) = self.outbox.get() {
            outbox.seal();
        }
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.book().sealed
    }

    /// Takes out a call that nobody waits for any more, and that was never on its way to the server.
    pub(crate) fn withdrawn(&self, id: u64) {
        drop(self.remove(id));
    }

    /// Takes out a call that was given up: the server has it, or does not read. If the server may not be busy with an older
    /// one, the tender has to look at it.
    pub(crate) fn given_up(&self, id: u64, how: GiveUp) {
        let mut book = self.book();
        book.remove(id);
        let oldest = book.waited.first().is_none_or(|oldest| id < *oldest);
        if self.signs.given_up(how, oldest) {
            self.nudge.notify_one();
        }
        self.tell_if_empty(&book);
    }

    fn remove(&self, id: u64) -> Option<Arc<Entry>> {
        let mut book = self.book();
        let entry = book.remove(id);
        self.tell_if_empty(&book);
        entry
    }

    /// What we ask of a server ourselves keeps nobody waiting: a modern one is listened to for as long as it lives.
    fn tell_if_empty(&self, book: &Book) {
        if self.draining.load(Ordering::Relaxed) && book.waited.is_empty() {
            self.nudge.notify_one();
        }
    }

    /// Settles the calls that the writer never touched.
    pub(crate) fn settle_queued(&self) {
        let queued = self.book().calls.values().filter(|entry| entry.queued()).cloned().collect();
        for entry in in_order(queued) {
            entry.lose(Evidence::Nothing, None);
            self.remove(entry.id);
        }
    }

    /// Settles all that are left; what was seen, if that is not the same as why the generation ended.
    pub(crate) fn settle_all(&self, evidence: Evidence, seen: Option<&Detail>) {
        let calls = self.book().take_all();
        for entry in in_order(calls.into_values().collect()) {
            entry.lose(evidence, seen.cloned());
        }
        self.tell_if_empty(&self.book());
    }

    pub(crate) fn vitals(&self) -> Vitals {
        let in_flight = u32::try_from(self.book().waited.len()).unwrap_or(u32::MAX);
        let exchanges = self.exchanges.load(Ordering::Relaxed);
        Vitals {
            in_flight,
            // An exchange that was given up is closed: the server owes nothing for it.
            owed: !exchanges && self.signs.owed(),
            abandoned_at: self.signs.abandoned_at(),
            exchanges,
            answered: self.signs.callers_answered(),
            heard_at: self.signs.heard_at(),
        }
    }

    fn take_response(&self, frame: Frame) {
        let Message::Response { id, outcome } = frame.message() else { return };
        match (frame.response_number(), id) {
            (Some(number), _) => {
                let reply = match outcome {
                    Some(_) => Reply::Answer(frame),
                    None => Reply::Unusable("the answer has neither a result nor an error".into()),
                };
                self.answer(number, reply);
            }
            (None, None) => self.answer_without_id(&frame),
            (None, Some(_)) => self.count_odd(),
        }
    }

    fn answer(&self, id: u64, reply: Reply) {
        // Nobody can answer what was not sent: the call goes on.
        if self.book().calls.get(&id).is_some_and(|entry| entry.queued()) {
            return self.count_odd();
        }
        match self.remove(id) {
            Some(entry) if entry.callers() => {
                if entry.answer(reply) {
                    self.signs.answered();
                }
            }
            Some(entry) => drop(entry.answer(reply)),
            None => self.count_odd(),
        }
    }

    /// An error without an id: about the one call in flight, if it can only be about that.
    fn answer_without_id(&self, frame: &Frame) {
        let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
            return self.count_odd();
        };
        let error = Redacted::head(error, ERROR_SHOWN);
        let text =
            Redacted::head(&format!("the server answered without saying to what: {error}"), 2 * ERROR_SHOWN);
        let only = {
            let book = self.book();
            let mut sent = book.calls.values().filter(|entry| !entry.queued());
            match (sent.next(), sent.next()) {
                (Some(entry), None) if !self.last.was_notice() => Some(entry.id),
                _ => None,
            }
        };
        match only {
            Some(id) => {
                let Some(entry) = self.remove(id) else { return };
                if entry.callers() {
                    self.signs.answered();
                }
                entry.answer(Reply::Unusable(text.to_string()));
            }
            None => self.settle_all(Evidence::Nothing, Some(&Arc::new(Seen::Unusable { words: text }))),
        }
    }

    /// Progress keeps its call alive. A token that no call has belongs to one that is over: nobody wants to hear of it.
    fn note_progress(&self, params: Option<&str>) {
        #[derive(serde::Deserialize)]
        struct Progress<'a> {
            #[serde(borrow, rename = "progressToken")]
            token: &'a serde_json::value::RawValue,
        }
        let progress = params.and_then(|params| Some((params, serde_json::from_str(params).ok()?)));
        let entry = progress.and_then(|(params, Progress { token })| {
            let entry = self.book().calls.get(&frame::number(token.get())?).cloned()?;
            Some((params, entry))
        });
        match entry {
            Some((params, entry)) => entry.progressed(self.clock.now(), params),
            None => self.count_odd(),
        }
    }

    fn hear_frame(&self, frame: Frame) {
        // Only clients say these. Before anything else was heard, it is our own question that comes back (`cat`).
        if matches!(frame.message(), Message::Request { method: "initialize" | "server/discover", .. })
            && !self.spoke.load(Ordering::Relaxed)
        {
            return self.no_server(ECHO);
        }
        self.spoke.store(true, Ordering::Relaxed);
        match frame.message() {
            Message::Request { id, method: "ping", .. } => drop(self.tell(frame::reply(id, "{}"))),
            Message::Request { id, .. } => {
                let id = id.to_owned();
                if let Err(why) = self.pass_on(frame) {
                    self.tell(frame::error_reply(&id, why));
                }
            }
            Message::Notification { method: "notifications/progress", params } => self.note_progress(params),
            Message::Notification { method, .. } if Kind::changed_by(method) => {
                self.gap();
            }
            // It answers a listening request of ours; agents have streams of their own, and acknowledgements of those.
            Message::Notification { method: "notifications/subscriptions/acknowledged", .. } => {}
            // About a question of its own: the agent knows that by another number.
            Message::Notification { method: "notifications/cancelled", .. } => {
                if self.pass_on(frame).is_err() {
                    self.count_odd();
                }
            }
            Message::Notification { .. } => {
                // An agent that reads too slowly misses it; what is lost here is never an answer.
                if self.audience.tell(self.generation, &frame) > 0 {
                    self.count_odd();
                }
            }
            Message::Response { .. } => self.take_response(frame),
        }
    }

    /// What it writes cannot be MCP: whoever waits for the handshake need not wait for its time to be up.
    fn no_server(&self, why: &'static str) {
        self.count_odd();
        let ours = self.book().calls.values().filter(|entry| !entry.callers()).cloned().collect();
        let _ = self.no_server.set(why);
        for entry in in_order(ours) {
            self.answer(entry.id, Reply::Unusable(why.into()));
        }
    }

    fn pass_on(&self, frame: Frame) -> Result<(), &'static str> {
        self.audience.ask(FromServer { generation: self.generation, frame })
    }

    fn count_odd(&self) {
        self.odd.fetch_add(1, Ordering::Relaxed);
    }

    /// How many lines were no frames or answered nothing, and the first of them.
    pub(crate) fn odd(&self) -> (u64, Vec<String>) {
        (self.odd.load(Ordering::Relaxed), self.book().noise.clone())
    }
}

impl Book {
    fn insert(&mut self, entry: Arc<Entry>) {
        if entry.callers() {
            self.waited.insert(entry.id);
        }
        self.calls.insert(entry.id, entry);
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Entry>> {
        self.waited.remove(&id);
        self.calls.remove(&id)
    }

    fn take_all(&mut self) -> HashMap<u64, Arc<Entry>> {
        self.waited.clear();
        std::mem::take(&mut self.calls)
    }
}

/// Text of which nearly every other byte is zero. A banner has none.
fn is_utf_16(line: &[u8]) -> bool {
    let pairs = line[..line.len().min(256)].chunks_exact(2);
    let (all, zero) = (pairs.len(), pairs.filter(|pair| pair.contains(&0)).count());
    all >= 4 && zero * 10 >= all * 8
}

/// Who called first is told first.
fn in_order(mut calls: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    calls.sort_unstable_by_key(|entry| entry.id);
    calls
}

impl Listener for Ledger {
    fn lost(&self, id: u64, loss: Loss) {
        match self.remove(id) {
            Some(entry) => drop(entry.fail(loss)),
            None => self.count_odd(),
        }
    }

    fn gap(&self) {
        self.lists_changed.store(true, Ordering::Release);
        self.nudge.notify_one();
    }

    fn wants_stderr(&self) -> bool {
        self.stderr.is_some()
    }

    fn stderr(&self, line: &[u8]) {
        if let Some((stderr, server)) = &self.stderr {
            stderr.hear(server, line);
        }
    }

    fn heard(&self) {
        self.signs.heard();
    }

    fn hear(&self, item: Item) {
        match item {
            Item::Frame(frame) => self.hear_frame(frame),
            Item::Noise(noise) => {
                self.count_odd();
                // Before the first message: after one it has shown that it can.
                if is_utf_16(&noise) && !self.spoke.load(Ordering::Relaxed) {
                    self.no_server(UTF_16);
                }
                let mut book = self.book();
                if book.noise.len() < NOISE_KEPT {
                    let text = String::from_utf8_lossy(&noise);
                    book.noise.push(Redacted::head(&text, 200).to_string());
                }
            }
            Item::Unreadable { about, bad, seen } => {
                let why = format!("the answer is {bad} ({seen} bytes had come)");
                match about {
                    About::Answer(id) => match frame::number(&id) {
                        Some(id) => self.answer(id, Reply::Unusable(why)),
                        None => self.count_odd(),
                    },
                    // A question of the server's own: its id is none of ours.
                    About::Question(id) => {
                        self.count_odd();
                        if let Some(id) = id {
                            self.tell(frame::error_reply(&id, UNREADABLE));
                        }
                    }
                    About::Unknown => {
                        let seen = Seen::Unusable { words: Redacted::head(&why, ERROR_SHOWN) };
                        self.settle_all(Evidence::Nothing, Some(&Arc::new(seen)));
                    }
                }
            }
        }
    }
}
