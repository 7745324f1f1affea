//! The calls of one generation: registered, answered, settled.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use linetender_core::{Generation, LossReport, Record, Vitals};
use linetender_wire::Detail;
use linetender_wire::frame::{Frame, Message, Outcome, Passed};
use linetender_wire::seam::{Exchange, Loss, Outbox, Outgoing, Refused, Ticket};
use tokio::sync::{Notify, oneshot};

use super::entry::{Entry, Heed, Last, Notice, Reply};
use super::question::OpenQuestion;
use super::usage::Usage;
use crate::basics::clock::Clock;
use crate::basics::refusal::Refusal;
use crate::basics::sync::{Mutex, MutexGuard};
use crate::status::Why;
use crate::status::signs::{GiveUp, Signs};

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

/// The calls of one generation.
pub(crate) struct Ledger {
    pub(crate) generation: Generation,
    clock: Clock,
    book: Mutex<Book>,
    next_id: AtomicU64,
    /// What was heard from the server, and what was given up since.
    pub(crate) signs: Arc<Signs>,
    outbox: OnceLock<Outbox>,
    /// Whether each call has an exchange of its own.
    exchanges: AtomicBool,
    /// Whether the server's processes work.
    works: AtomicBool,
    /// Whether the last thing that was written was no call: an error without an id may be about that.
    last: Arc<Last>,
    /// Why the generation ended, once it has.
    pub(crate) ended: OnceLock<Arc<Why>>,
    /// Somebody wants to know when nothing is in flight any more.
    pub(crate) draining: AtomicBool,
    /// When callers last used the server.
    pub(crate) usage: Usage,
    /// Wakes the tender, which looks at what changed.
    pub(crate) nudge: Arc<Notify>,
}

#[derive(Default)]
struct Book {
    sealed: bool,
    calls: HashMap<u64, Arc<Entry>>,
    /// Those that a caller waits for, the oldest first.
    waited: BTreeSet<u64>,
}

impl Ledger {
    pub(crate) fn new(generation: Generation, clock: Clock, nudge: Arc<Notify>) -> Self {
        Self {
            generation,
            clock,
            book: Mutex::new(Book::default()),
            next_id: AtomicU64::new(1),
            signs: Arc::new(Signs::new(clock)),
            outbox: OnceLock::new(),
            exchanges: AtomicBool::new(false),
            works: AtomicBool::new(false),
            last: Arc::default(),
            ended: OnceLock::new(),
            draining: AtomicBool::new(false),
            usage: Usage::new(clock),
            nudge,
        }
    }

    /// The same with numbers above this one, which were given out by a generation before on the same pipes.
    pub(crate) fn numbered_after(self, last: u64) -> Self {
        self.next_id.store(last + 1, Ordering::Relaxed);
        self
    }

    /// No number above this one was given out.
    pub(crate) fn last_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
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

    /// The server's processes were looked at: whether they work.
    pub(crate) fn set_works(&self, works: bool) {
        self.works.store(works, Ordering::Relaxed);
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
        let frame = frame(id);
        let (entry, answer) =
            Entry::new(id, heed, record, self.clock.now(), Arc::clone(&self.last), frame.text());
        let entry = Arc::new(entry);
        if entry.callers() {
            self.usage.mark();
        }
        // In the book first: whoever settles comes after the seal, so it finds this call, or the seal is found below.
        {
            let mut book = self.book();
            if book.sealed {
                return Err(NoSeat::Sealed);
            }
            book.insert(Arc::clone(&entry));
        }
        let ticket = Some(Arc::clone(&entry) as Arc<dyn Ticket>);
        match send(outbox, Outgoing::frame(frame, ticket)) {
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

    /// Tells the server something that needs no answer.
    ///
    /// # Errors
    /// If the server does not read now, or the generation is over.
    pub(crate) fn tell(&self, text: impl Into<Passed>) -> Result<(), Refused> {
        let outbox = self.outbox.get().filter(|_| !self.is_sealed()).ok_or(Refused::Sealed)?;
        outbox.send(self.notice(text.into()))
    }

    /// Returns when there is room for so many bytes on the way down; `false` if the generation is over before that.
    pub(crate) async fn room_for(&self, bytes: usize) -> bool {
        match self.outbox.get() {
            Some(outbox) if !self.is_sealed() => outbox.room_for(bytes).await,
            _ => false,
        }
    }

    /// Tells the server something that it waits for.
    pub(crate) async fn tell_surely(&self, text: Passed) {
        if let Some(outbox) = self.outbox.get() {
            outbox.send_when_room(self.notice(text)).await;
        }
    }

    fn notice(&self, text: Passed) -> Outgoing {
        let ticket = Arc::new(Notice(Arc::clone(&self.last)));
        match text {
            Passed::Frame(frame) => Outgoing::frame(frame, Some(ticket)),
            Passed::Text(text) => Outgoing::text(text, Some(ticket)),
        }
    }

    /// The end has begun: the way down takes nothing more, and whoever has a seat will be settled.
    pub(crate) fn seal(&self) {
        let mut book = self.book();
        book.sealed = true;
        if let Some(outbox) = self.outbox.get() {
            outbox.seal();
        }
    }

    /// The same where the next generation has the same way down: the writer goes on, but writes nothing more of this one.
    pub(crate) fn hand_over(&self) {
        self.book().sealed = true;
        self.last.ends();
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
        let began = book.remove(id).map_or_else(|| self.clock.now(), |entry| entry.began);
        let oldest = book.waited.first().is_none_or(|oldest| id < *oldest);
        if self.signs.given_up(how, began, oldest) {
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
            entry.lose(LossReport::Nothing, None);
            self.remove(entry.id);
        }
    }

    /// Settles all that are left; what was seen, if that is not the same as why the generation ended.
    pub(crate) fn settle_all(&self, report: impl Fn(&Entry) -> LossReport, seen: Option<&Detail>) {
        let calls = self.book().take_all();
        for entry in in_order(calls.into_values().collect()) {
            entry.lose(report(&entry), seen.cloned());
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
            works: self.works.load(Ordering::Relaxed),
            answered: self.signs.callers_answered(),
            heard_at: self.signs.heard_at(),
        }
    }

    /// The server answered a call; whether anybody waited for that.
    pub(crate) fn answer(&self, id: u64, reply: Reply) -> bool {
        // Nobody can answer what was not sent: the call goes on.
        if self.book().calls.get(&id).is_some_and(|entry| entry.queued()) {
            return false;
        }
        let Some(entry) = self.remove(id) else { return false };
        // Whether that is service is judged by the call.
        let is_doubtful = is_doubtful(&reply);
        if entry.answer(reply) && entry.callers() && !is_doubtful {
            self.signs.answered();
        }
        true
    }

    /// A call's own exchange failed; whether anybody waited for it.
    pub(crate) fn fail(&self, id: u64, loss: Loss) -> bool {
        let Some(entry) = self.remove(id) else { return false };
        entry.fail(loss);
        true
    }

    /// The server redirected a call, and it was sent again to the new place.
    pub(crate) fn redirected(&self, id: u64) {
        if let Some(entry) = self.book().calls.get(&id) {
            entry.mark_redirected();
        }
    }

    /// The server reports progress on a call; whether there is one.
    pub(crate) fn progressed(&self, id: u64, params: &str) -> bool {
        let entry = self.book().calls.get(&id).cloned();
        entry.inspect(|entry| entry.progressed(self.clock.now(), params)).is_some()
    }

    /// The server asks the agent something: during this call, or, where nothing says that, during any of those that wait.
    pub(crate) fn question(&self, during: Option<u64>) -> OpenQuestion {
        let book = self.book();
        let waited = || book.waited.iter().filter_map(|id| book.calls.get(id));
        let calls = match during.and_then(|id| book.calls.get(&id)) {
            Some(call) => vec![Arc::clone(call)],
            None => waited().cloned().collect(),
        };
        OpenQuestion::new(self.clock, calls)
    }

    /// The call that an error without an id is about, if it can only be about that.
    pub(crate) fn only_sent(&self) -> Option<u64> {
        let book = self.book();
        let mut sent = book.calls.values().filter(|entry| !entry.queued());
        match (sent.next(), sent.next()) {
            (Some(entry), None) if !self.last.was_notice() => Some(entry.id),
            _ => None,
        }
    }

    /// The calls that were sent and not answered.
    pub(crate) fn in_flight(&self) -> Vec<u64> {
        let mut sent: Vec<u64> =
            self.book().calls.values().filter(|entry| !entry.queued()).map(|entry| entry.id).collect();
        sent.sort_unstable();
        sent
    }

    pub(crate) fn is_in_flight(&self, id: u64) -> bool {
        self.book().calls.contains_key(&id)
    }

    /// It is not known what became of a call, and no answer will come.
    pub(crate) fn lose(&self, id: u64, seen: &Detail) {
        if let Some(entry) = self.remove(id) {
            entry.lose(LossReport::Nothing, Some(seen.clone()));
        }
    }

    /// Our own questions that are not answered, the first one first.
    pub(crate) fn our_own(&self) -> Vec<u64> {
        let ours = self.book().calls.values().filter(|entry| !entry.callers()).cloned().collect();
        in_order(ours).into_iter().map(|entry| entry.id).collect()
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

/// True if this may be the answer of a server that was never initialized.
fn is_doubtful(reply: &Reply) -> bool {
    let Reply::Answer(frame) = reply else { return false };
    let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
        return false;
    };
    Refusal::of(error).is_some()
}

/// Who called first is told first.
fn in_order(mut calls: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    calls.sort_unstable_by_key(|entry| entry.id);
    calls
}
