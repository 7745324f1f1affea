//! What the exchanges of one generation share: the connections, the session, and whether it still counts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::replies::Replies;
use super::session::{Known, Pings};
use super::{Approach, Way, exchange};
use crate::frame::{self, Limits, Message};
use crate::handshake::Era;
use crate::http::Pool;
use crate::http::cookies::Jar;
use crate::http::headers::{ParamHeaders, SessionId};
use crate::http::key::{self, KeySlot, SentKey};
use crate::seam::{Carrier, Event, Exchange, Listener, Outgoing, Work};
use crate::seen::Seen;

/// Ids of our own pings. They are nobody's calls, so they are counted from the other end.
pub(super) const PINGS: u64 = 1 << 62;

/// What was agreed on.
#[derive(Clone, Debug)]
pub(super) struct Spoken {
    pub(super) era: Era,
    pub(super) version: Option<Box<str>>,
    pub(super) session: Option<SessionId>,
    /// Whether answers come on the event stream that is open, which is a session too.
    pub(super) attached: bool,
}

impl Spoken {
    /// Before anything was agreed on.
    pub(super) const fn nothing() -> Self {
        Self { era: Era::Legacy, version: None, session: None, attached: false }
    }

    /// Whether there is a session that the server may have forgotten.
    pub(super) const fn has_session(&self) -> bool {
        self.session.is_some() || self.attached
    }
}

pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) limits: Limits,
    pub(super) listener: Arc<dyn Listener>,
    pub(super) seed: u64,
    /// Maximum time that a refusal of the session may take. A request that was refused later may have been executed.
    pub(super) refusal_within: Duration,
    /// True if redirects of calls, notifications and answers are followed.
    pub(super) redirects_calls: bool,
    /// True if what was refused for its key is sent again with the next one.
    pub(super) repeats_after_auth: bool,
    /// How long an event stream may take to name the URL for messages.
    pub(super) endpoint_within: Duration,
    fixed: HeaderMap,
    /// The credential that changes, if there is one.
    pub(super) key: Option<KeySlot>,
    events: mpsc::Sender<Event>,
    way: Mutex<Way>,
    spoken: Mutex<Spoken>,
    /// Who waits for an answer on the event stream, where all come on one.
    pub(super) replies: Replies,
    cookies: Mutex<Jar>,
    mirrors: Mutex<Arc<HashMap<String, ParamHeaders>>>,
    /// Exchanges under way, by the id that they answer.
    running: Mutex<HashMap<u64, AbortHandle>>,
    first: AtomicBool,
    /// Whether the session has answered anything but its handshake.
    served: AtomicBool,
    /// Whether the handshake is done with: until then everything waits its turn.
    greeted: AtomicBool,
    /// Where exchanges go whose calls are over.
    rest: mpsc::Sender<Work>,
    ping_ids: AtomicU64,
    /// What is known of the session. One at a time finds out.
    pub(super) session: tokio::sync::Mutex<Known>,
    /// How that is found out.
    pub(super) pings: Pings,
    /// With which params a modern server was discovered.
    discovered: Mutex<Option<Box<str>>>,
}

impl Shared {
    pub(super) fn new(
        approach: Approach,
        listener: Arc<dyn Listener>,
        events: mpsc::Sender<Event>,
        rest: mpsc::Sender<Work>,
    ) -> Self {
        let sizes = approach.sizes;
        Self {
            pool: Pool::new(approach.endpoint, approach.around, approach.settings),
            limits: Limits { length: sizes.message as usize, depth: sizes.depth.into() },
            listener,
            seed: approach.seed,
            refusal_within: approach.refusal_within,
            redirects_calls: approach.redirects_calls,
            repeats_after_auth: approach.repeats_after_auth,
            endpoint_within: approach.endpoint_within,
            fixed: approach.headers,
            key: approach.key,
            events,
            way: Mutex::new(approach.way),
            replies: Replies::new(),
            spoken: Mutex::new(Spoken::nothing()),
            cookies: Mutex::default(),
            mirrors: Mutex::default(),
            running: Mutex::default(),
            first: AtomicBool::new(true),
            served: AtomicBool::new(false),
            greeted: AtomicBool::new(false),
            rest,
            ping_ids: AtomicU64::new(PINGS),
            session: tokio::sync::Mutex::new(Known::default()),
            pings: approach.pings,
            discovered: Mutex::default(),
        }
    }

    /// The tender takes what it is told when it can; if it is gone, nobody wants to know.
    pub(super) async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }

    pub(super) async fn lost(&self, seen: Seen) {
        self.tell(Event::Lost(seen)).await;
    }

    /// The session has answered something.
    pub(super) fn served(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// What to say of a session that is gone (H26).
    pub(super) fn session_lost(&self) -> Seen {
        if self.served.load(Ordering::Relaxed) { Seen::SessionLost } else { Seen::SessionNeverKnown }
    }

    /// Something came from the server.
    pub(super) async fn heard(&self) {
        self.listener.heard();
        self.begun().await;
    }

    /// Something came from where the server should be: a dial has got that far.
    pub(super) async fn begun(&self) {
        if self.first.swap(false, Ordering::Relaxed) {
            self.tell(Event::FirstByte).await;
        }
    }

    pub(super) fn way(&self) -> Way {
        *lock(&self.way)
    }

    pub(super) fn turn_to(&self, way: Way) {
        *lock(&self.way) = way;
        self.pool.stay_at(self.pool.endpoint().clone());
        *self.spoken() = Spoken::nothing();
    }

    /// Whether the event stream is open that all answers come on.
    pub(super) fn is_attached(&self) -> bool {
        self.spoken().attached
    }

    pub(super) fn spoken(&self) -> MutexGuard<'_, Spoken> {
        lock(&self.spoken)
    }

    pub(super) fn discovered(&self) -> MutexGuard<'_, Option<Box<str>>> {
        lock(&self.discovered)
    }

    /// Whether it is.
    pub(super) fn is_greeted(&self) -> bool {
        self.greeted.load(Ordering::Acquire)
    }

    /// The handshake is done with: nothing that is said from now on can overtake it.
    pub(super) fn greeted(&self) {
        self.greeted.store(true, Ordering::Release);
    }

    /// A handshake was given this session, before or with its answer.
    pub(super) fn granted(&self, session: Option<SessionId>) {
        if session.is_some() {
            self.spoken().session = session;
        }
    }

    pub(super) fn running(&self, id: u64, exchange: AbortHandle) {
        lock(&self.running).insert(id, exchange);
    }

    pub(super) fn done(&self, id: Option<u64>) {
        if let Some(id) = id {
            lock(&self.running).remove(&id);
        }
    }

    /// One that has not begun finds out by its ticket.
    pub(super) fn cancel(&self, id: u64) {
        if let Some(exchange) = lock(&self.running).remove(&id) {
            exchange.abort();
        }
    }

    pub(super) fn mirror(&self, tools: HashMap<String, ParamHeaders>) {
        *lock(&self.mirrors) = Arc::new(tools);
    }

    pub(super) fn mirrors(&self) -> Arc<HashMap<String, ParamHeaders>> {
        Arc::clone(&lock(&self.mirrors))
    }

    pub(super) fn next_ping(&self) -> u64 {
        self.ping_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Our own headers, what every request carries, and the key of this moment, which is told where there can be one.
    pub(super) fn with_fixed(&self, ours: HeaderMap) -> (HeaderMap, Option<SentKey>) {
        let key = self.key.as_ref().map(KeySlot::read);
        let mut all = match &key {
            Some(key) => key.among(&self.fixed, ours),
            None => key::with(&self.fixed, ours),
        };
        lock(&self.cookies).put(&mut all);
        (all, key)
    }

    /// What a response sets for the rest of a legacy session. A modern request stands by itself.
    pub(super) fn keep_cookies(&self, era: Era, headers: &HeaderMap) {
        if era == Era::Legacy {
            lock(&self.cookies).take(headers, self.pool.endpoint().is_secure());
        }
    }
}

impl Carrier for Shared {
    fn carry(self: Arc<Self>, outgoing: Outgoing) -> Result<Exchange, Outgoing> {
        if !self.is_greeted() {
            return Err(outgoing);
        }
        let (frame, ticket) = outgoing.read(self.limits.depth)?;
        let Message::Request { id, .. } = frame.message() else { return Err(Outgoing::frame(frame, ticket)) };
        let (id, rest) = (frame::number(id), self.rest.clone());
        Ok(Exchange::new(Box::pin(exchange::run(self, frame, id, ticket)), rest))
    }
}

/// No code that holds one of these locks can panic, and none waits.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
