//! One legacy agent's session: which stream a message belongs to, and streams that can be resumed.

mod access;
mod calls;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use linetender::Code;
use linetender::session::Agent;
use linetender_wire::frame::{self, Frame, Members, Message, Passed};
use linetender_wire::{queue, test_hooks};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Front;
use super::said::Form;
use super::shown::Credential;
use super::tape::Tape;
use crate::budget::{self, Budget, Owner};
use crate::ends::{Ended, Ends};
use crate::failed::{Failed, Full};
use crate::kept::{KeptResults, Of};
use crate::listing::{Endpoint, Listing};
use crate::mux::{self, Screened, request_id};
use crate::principal::Principal;
use calls::{Answered, Calls};

/// Streams of POSTs that can still be resumed, and what those that are over may weigh.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The most requests of a session that are not answered. Its servers take far fewer at once; the rest is shed here.
const CALLS: usize = 4096;

/// How long a session that takes nothing is waited for.
const HAND_OVER: Duration = Duration::from_secs(5);

/// What JSON-RPC calls a request that must not be.
pub(super) const INVALID_REQUEST: i32 = -32600;

/// The number of the stream that belongs to no POST.
const OWN: u64 = 0;

/// Where a server's filters are seen as they are now, and what they need.
#[derive(Clone)]
pub(super) struct Filters {
    pub(super) listing: watch::Receiver<Arc<Listing>>,
    pub(super) kept: KeptResults,
}

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) endpoint: Endpoint,
    /// Whose it is: nobody else finds it.
    pub(super) principal: Principal,
    /// What its streams draw on.
    pub(super) owner: Owner,
    budget: Budget,
    /// Where what it does not hand on ends.
    ends: Ends,
    /// The server behind its endpoint when it began, where that is one.
    berth: Option<u64>,
    to: mpsc::Sender<Passed>,
    /// Where the filters of its server are seen, if nothing behind this session knows them.
    filters: Option<Filters>,
    desk: Mutex<Desk>,
    /// Whether it is over.
    pub(super) over: watch::Sender<bool>,
    /// Whether another gateway had it before, and its streams with it.
    remade: AtomicBool,
    /// What its principal showed when it used it last.
    credential: Mutex<Option<Credential>>,
}

struct Desk {
    calls: Calls,
    own: Arc<Tape>,
    kept: VecDeque<Arc<Tape>>,
    last: u64,
    used: Instant,
    /// Requests and streams of it that there ever were. The first is its greeting.
    uses: u64,
    readers: usize,
}

/// A session that nothing is under way in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) since: Instant,
    /// Whether it was ever used, but for its greeting.
    pub(super) used: bool,
}

/// What became of what an agent said.
pub(super) enum Taken {
    /// Nothing of it needs an answer.
    Noted,
    /// Its answers will be on this stream.
    Tape(Arc<Tape>),
    /// There was no room.
    Full,
    /// A request has the id of another one that is not answered yet.
    IdInUse(Box<str>),
}

impl Session {
    pub(super) fn new(
        id: String,
        endpoint: Endpoint,
        berth: Option<u64>,
        to: mpsc::Sender<Passed>,
        filters: Option<Filters>,
        (budget, ends, principal): (&Budget, &Ends, &Principal),
    ) -> Self {
        let owner = Owner { principal: principal.number(), group: budget::next_group() };
        let desk = Desk {
            calls: Calls::default(),
            own: Tape::drawing_on(OWN, budget, owner),
            kept: VecDeque::new(),
            last: OWN,
            used: Instant::now(),
            uses: 0,
            readers: 0,
        };
        let (budget, desk, over) = (budget.clone(), Mutex::new(desk), watch::Sender::new(false));
        let (principal, ends) = (principal.clone(), ends.clone());
        Self {
            id,
            endpoint,
            principal,
            owner,
            budget,
            ends,
            berth,
            to,
            filters,
            desk,
            over,
            remade: AtomicBool::new(false),
            credential: Mutex::default(),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another gateway had it before.
    pub(super) fn is_remade(&self) {
        self.remade.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_remade(&self) -> bool {
        self.remade.load(Ordering::Relaxed)
    }

    /// Whether its server is still the one that it began with.
    pub(super) fn is_current(&self, front: &Front) -> bool {
        match &self.endpoint {
            Endpoint::All => true,
            Endpoint::One(name) => front.berth(&self.principal, name) == self.berth,
        }
    }

    /// Whether it takes nothing any more: it was ended, or what stood behind it ended by itself.
    pub(super) fn is_over(&self) -> bool {
        *self.over.borrow() || self.to.is_closed()
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        let desk = self.desk();
        desk.readers == 0 && desk.calls.is_empty() && desk.used.elapsed() >= limit
    }

    /// Since when nobody uses it, if nobody does.
    pub(super) fn idle_since(&self) -> Option<Idle> {
        let desk = self.desk();
        let idle = desk.readers == 0 && desk.calls.is_empty();
        idle.then(|| Idle { since: desk.used, used: desk.uses > 1 })
    }

    /// Whether nothing of it is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.desk().calls.is_empty()
    }

    /// Hands what the agent said to its servers. What cannot be handed over has ended, and is told of on the stream of the rest.
    pub(super) async fn take(&self, frames: &[Frame], form: &Form) -> Taken {
        let taken = self.expect(frames, form);
        let code = match &taken {
            Taken::Noted | Taken::Tape(_) => None,
            Taken::Full => Some(Code::Overloaded.number()),
            Taken::IdInUse(_) => Some(INVALID_REQUEST),
        };
        if let Some(code) = code {
            self.refuses(frames, code);
            return taken;
        }
        let mut left = Unhanded { session: self, frames };
        while !left.frames.is_empty() {
            let some = left.frames.len().min(self.to.max_capacity());
            let room = tokio::time::timeout(HAND_OVER, self.to.reserve_many(some)).await;
            let Ok(Ok(room)) = room else { break };
            let (now, rest) = left.frames.split_at(some);
            for (room, frame) in room.zip(now) {
                match self.screened(frame) {
                    Some(Screened::Ended(reply, ended)) => {
                        self.ends.saw(frame, &self.principal, ended);
                        reply.into_frame().iter().for_each(|reply| self.hear(reply));
                        continue;
                    }
                    Some(Screened::Handed(frame)) => room.send(frame.into()),
                    Some(Screened::Dropped) => continue,
                    None => room.send(frame.clone().into()),
                }
                self.withdraw(frame);
            }
            left.frames = rest;
        }
        let nothing = left.frames.len() == frames.len();
        if !left.frames.is_empty() && (nothing || matches!(taken, Taken::Noted)) {
            return Taken::Full;
        }
        taken
    }

    /// Requests that are not handed on: they have ended.
    fn refuses(&self, frames: &[Frame], code: i32) {
        for frame in frames {
            self.ends.saw(frame, &self.principal, Ended::Refused(code));
        }
    }

    /// What becomes of a message, if filters of its server are to be known here.
    fn screened(&self, frame: &Frame) -> Option<Screened> {
        let Filters { listing, kept } = self.filters.as_ref()?;
        let seen = mux::filtered(&listing.borrow(), &self.endpoint, &self.principal)?;
        if let Some((reply, ended)) = kept.read(frame, &seen, &self.principal, false) {
            return Some(Screened::Ended(reply.into(), ended));
        }
        Some(mux::screened(frame, &seen))
    }

    /// What the server says, no larger than it may be by now.
    fn cut(&self, frame: Frame) -> Frame {
        let (Some(Filters { listing, kept }), Message::Response { .. }) = (&self.filters, frame.message())
        else {
            return frame;
        };
        let Some(seen) = mux::filtered(&listing.borrow(), &self.endpoint, &self.principal) else {
            return frame;
        };
        let limit =
            seen.routes.first().and_then(|route| Some((route.berth.number, route.berth.entry.result_limit?)));
        match limit {
            Some((berth, limit)) => kept.cut(frame, Of { principal: &self.principal, berth, limit }),
            None => frame,
        }
    }

    /// Whether a filter hides what the server says.
    fn is_hidden(&self, frame: &Frame) -> bool {
        let updated = "notifications/resources/updated";
        let Some(filters) = &self.filters else { return false };
        if !matches!(frame.message(), Message::Notification { method, .. } if method == updated) {
            return false;
        }
        let seen = mux::filtered(&filters.listing.borrow(), &self.endpoint, &self.principal);
        seen.is_some_and(|seen| mux::is_hidden(frame, &seen))
    }

    /// A stream for the answers to these, if any needs one; nothing, if the session is over.
    fn expect(&self, frames: &[Frame], form: &Form) -> Taken {
        let mut desk = self.desk();
        // Whoever ends it says so before it comes to the desk: what is put there now is found, or the end is.
        if *self.over.borrow() {
            return Taken::Full;
        }
        let (mut ids, mut requests) = (HashSet::new(), 0);
        for frame in frames {
            let Message::Request { id, .. } = frame.message() else { continue };
            requests += 1;
            // Two requests with one id would have one answer, and the other none or the wrong one.
            if desk.calls.is_open(id) || (frames.len() > 1 && !ids.insert(id)) {
                return Taken::IdInUse(id.into());
            }
        }
        if desk.calls.len() + requests > CALLS {
            return Taken::Full;
        }
        desk.used = Instant::now();
        let mut tape = None;
        for frame in frames {
            let Message::Request { id, params, .. } = frame.message() else { continue };
            let tape = tape.get_or_insert_with(|| {
                desk.last += 1;
                let tape = Tape::drawing_on(desk.last, &self.budget, self.owner);
                if let Form::Batch { refusals } = form {
                    tape.collect(refusals);
                }
                tape
            });
            desk.uses += 1;
            desk.calls.expect(id, params.and_then(token), tape);
        }
        tape.map_or(Taken::Noted, Taken::Tape)
    }

    /// A request that the agent takes back is not answered any more, so its stream ends here, and for good.
    // MCP 2025-11-25, "Cancellation": receivers SHOULD not send a response for the cancelled request.
    fn withdraw(&self, frame: &Frame) {
        let Message::Notification { method: "notifications/cancelled", params } = frame.message() else {
            return;
        };
        let Some(id) = request_id(params) else { return };
        let mut desk = self.desk();
        if let Some(Answered::Last(tape)) = desk.calls.take(id) {
            desk.kept.retain(|kept| !Arc::ptr_eq(kept, &tape));
            tape.end();
        }
    }

    /// Nobody will come back for this stream.
    pub(super) fn forget(&self, tape: &Arc<Tape>) {
        self.desk().kept.retain(|kept| !Arc::ptr_eq(kept, tape));
    }

    /// The session's own stream, and up to where it was read.
    pub(super) fn own_stream(&self) -> (Arc<Tape>, u64) {
        let tape = Arc::clone(&self.desk().own);
        let read = tape.read();
        (tape, read)
    }

    /// Whether a stream is its own, which never ends by itself.
    pub(super) const fn is_own(tape: &Tape) -> bool {
        tape.number == OWN
    }

    /// The stream that an event was on, and its number there.
    pub(super) fn resume(&self, event: &str) -> Option<(Arc<Tape>, u64)> {
        let (stream, number) = event.split_once('-')?;
        let (stream, number): (u64, u64) = (stream.parse().ok()?, number.parse().ok()?);
        let desk = self.desk();
        let tape =
            if stream == OWN { Some(&desk.own) } else { desk.kept.iter().find(|tape| tape.number == stream) };
        Some((Arc::clone(tape?), number))
    }

    /// What the servers say goes to the stream that it belongs to.
    fn hear(&self, frame: &Frame) {
        let mut desk = self.desk();
        let text = frame.text().clone();
        match frame.message() {
            Message::Response { id: Some(id), .. } => match desk.calls.take(id) {
                Some(Answered::More(tape)) => tape.answer(text),
                Some(Answered::Last(tape)) => {
                    tape.finish(text);
                    desk.trim();
                }
                None => {}
            },
            Message::Notification { method: "notifications/progress", params } => {
                let token = params.and_then(|params| Members::of(params)?.get("progressToken"));
                if let Some(tape) = token.and_then(|token| desk.calls.with_token(token.get())) {
                    tape.push(text);
                }
            }
            // What comes while a single request is under way most probably belongs to it.
            Message::Request { .. }
            | Message::Notification { method: "notifications/message" | "notifications/cancelled", .. } => {
                desk.calls.only().unwrap_or(&desk.own).push(text);
            }
            Message::Notification { .. } | Message::Response { id: None, .. } => desk.own.push(text),
        }
    }

    /// It is over: everybody who reads learns it, and what is under way is told of.
    pub(super) fn end(&self) {
        self.end_for(&Failed::cut());
    }

    /// It is over for this reason.
    pub(super) fn end_for(&self, why: &Failed) {
        self.over.send_replace(true);
        let mut desk = self.desk();
        desk.own.end();
        let cut = why.clone().of(self.endpoint.server());
        let calls = desk.calls.drain();
        for (id, tape) in &calls {
            tape.answer(cut.error(id));
        }
        for (_, tape) in calls {
            tape.end();
        }
    }

    pub(super) fn begins_reading(&self, tape: &Arc<Tape>) {
        let mut desk = self.desk();
        desk.readers += 1;
        desk.uses += 1;
        desk.used = Instant::now();
        if tape.number != OWN && !desk.kept.iter().any(|kept| Arc::ptr_eq(kept, tape)) {
            desk.kept.push_back(Arc::clone(tape));
            desk.trim();
        }
    }

    pub(super) fn ends_reading(&self) {
        let mut desk = self.desk();
        desk.readers -= 1;
        desk.used = Instant::now();
        desk.trim();
    }

    /// Takes back requests whose agent hung up so long ago and did not come back for the answer: each keeps a place at its
    /// server, and while somebody seems to wait, a server that hangs is given time.
    pub(super) fn give_up_unread(&self, since: Duration) {
        let unread = self.desk().calls.unread(since);
        for id in unread {
            let params =
                format!(r#"{{"requestId":{id},"reason":"the agent disconnected and did not resume"}}"#);
            let text = frame::notification("notifications/cancelled", Some(&params));
            let Some(frame) = parsed(&text) else { continue };
            // A mux has calls that go on without their agent: it has to know that nobody has cancelled them.
            let said = if self.filters.is_none() { mux::unread(&params) } else { text };
            // If there is no room now, there may be at the next look.
            if self.to.try_send(said.into()).is_ok() {
                self.withdraw(&frame);
            }
        }
    }

    /// Forgets streams that were read to their end so long ago.
    pub(super) fn forget_read(&self, since: Duration) {
        self.desk().kept.retain(|tape| tape.read_out().is_none_or(|at| at.elapsed() < since));
    }
}

/// What is not handed over yet. Dropped, it never will be, also because the agent did not wait.
struct Unhanded<'a> {
    session: &'a Session,
    frames: &'a [Frame],
}

impl Drop for Unhanded<'_> {
    fn drop(&mut self) {
        let full = Failed::full(Full::Session).of(self.session.endpoint.server());
        self.session.refuses(self.frames, full.code());
        for frame in self.frames {
            if let Message::Request { id, .. } = frame.message()
                && let Some(refused) = parsed(&full.error(id))
            {
                self.session.hear(&refused);
            }
        }
    }
}

impl Desk {
    /// Streams that are over are kept for those who did not get their end; not too many, and not too much.
    fn trim(&mut self) {
        let mut left = KEPT_BYTES;
        // From the newest on: it is the one that is missed if any is.
        for at in (0..self.kept.len()).rev() {
            let weighs = self.kept[at].weighs();
            if weighs > left && self.kept[at].is_over() {
                self.kept.remove(at);
            } else {
                left = left.saturating_sub(weighs);
            }
        }
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }
}

/// The progress token in a request's params, as it was spelt.
fn token(params: &str) -> Option<&str> {
    // Names may be spelt with escapes, which hardly any are.
    if !params.contains("progressToken") && !params.contains(r"\u") {
        return None;
    }
    Some(Members::of(Members::of(params)?.get("_meta")?.get())?.get("progressToken")?.get())
}

/// Messages of our own sessions are of any size.
pub(super) fn parsed(text: &Bytes) -> Option<Frame> {
    frame::parse(text, frame::Limits { length: usize::MAX, depth: usize::MAX }).ok()
}

/// Hears the servers until the session is over.
pub(super) async fn pump(session: Arc<Session>, mut from: queue::Receiver<Passed>) {
    let mut over = session.over.subscribe();
    let mut filters = session.filters.clone().map(|Filters { listing, .. }| {
        let seen = Arc::clone(&listing.borrow());
        (seen, listing)
    });
    loop {
        tokio::select! {
            texts = filter_changes(&mut filters, &session) => {
                texts.iter().filter_map(parsed).for_each(|frame| session.hear(&frame));
            }
            said = from.recv() => match said {
                Some(said) => {
                    test_hooks::point("front");
                    if let Ok(frame) = said.into_frame()
                        && !session.is_hidden(&frame)
                    {
                        session.hear(&session.cut(frame));
                    }
                }
                None => return session.end(),
            },
            _ = over.wait_for(|over| *over) => return,
        }
    }
}

/// Waits until a filter changes what is listed, and returns what the agent is told then. Cancel-safe: what was seen last is
/// kept by the caller, beside where the next is seen.
async fn filter_changes(
    filters: &mut Option<(Arc<Listing>, watch::Receiver<Arc<Listing>>)>,
    session: &Session,
) -> Vec<Bytes> {
    let Some((seen, listing)) = filters else { return std::future::pending().await };
    loop {
        if listing.changed().await.is_err() {
            return std::future::pending().await;
        }
        let now = Arc::clone(&listing.borrow_and_update());
        let texts = mux::filter_changes(seen, &now, &session.endpoint, &session.principal);
        *seen = now;
        if !texts.is_empty() {
            return texts;
        }
    }
}

/// A session that was opened for an agent that is not there any more is ended.
pub(super) struct EndUnlessKept<'a> {
    front: &'a Front,
    session: &'a Session,
    kept: std::cell::Cell<bool>,
}

impl<'a> EndUnlessKept<'a> {
    pub(super) const fn new(front: &'a Front, session: &'a Session) -> Self {
        Self { front, session, kept: std::cell::Cell::new(false) }
    }

    pub(super) fn keep(self) {
        self.kept.set(true);
    }
}

impl Drop for EndUnlessKept<'_> {
    fn drop(&mut self) {
        if !self.kept.get() {
            self.front.sessions.end(&self.session.id);
        }
    }
}

/// An agent as a session.
pub(super) fn start(
    id: String,
    endpoint: Endpoint,
    berth: Option<u64>,
    agent: Agent,
    filters: Option<Filters>,
    drawing: (&Budget, &Ends, &Principal),
) -> (Arc<Session>, queue::Receiver<Passed>) {
    let Agent { to, from } = agent;
    (Arc::new(Session::new(id, endpoint, berth, to, filters, drawing)), from)
}
