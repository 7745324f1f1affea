//! What one connection is doing, and until when it may: its requests, their bodies, and what of its answers is not read.
//!
//! A connection that nobody watches can be held for as long as its peer likes: a header that never ends, an answer that is never
//! read, or nothing at all. So each has a deadline, and a connection whose end would cost nobody an answer can give way.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, Sleep};

use super::caller::Caller;
use super::quota::Permit;
use super::who::number;
use crate::budget::{self, Budget, Class, GiveWay, Held, Owner};

/// Deadline of a request's header, from its first byte to its last.
pub(super) const HEAD: Duration = Duration::from_secs(10);

/// Idle timeout: how long a connection may have no request in flight.
pub(super) const IDLE: Duration = Duration::from_secs(300);

/// How long an answer may be there and the peer take nothing of it. A slow reader takes something.
pub(super) const UNREAD: Duration = Duration::from_secs(120);

/// After this time an unread answer may be given up for somebody else's place.
const UNREAD_WHEN_FULL: Duration = Duration::from_secs(10);

/// A connection that sends more than this before it has asked for anything draws on the memory budget.
const LONG_HEADER: usize = 4 * 1024;

/// What it draws then, once: the most that is read of it before it is understood.
pub(super) const BUFFER: usize = 64 * 1024;

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The activity of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    caller: Caller,
    /// Whose bytes it makes us keep.
    owner: Owner,
    /// Which of its caller's agents it is, as its first request said. Whoever has many names has a connection for each.
    agent: OnceLock<u64>,
    /// What the beginnings of its requests draw on.
    budget: OnceLock<Budget>,
    state: Mutex<State>,
    gives_way: Notify,
    /// Who is asked to give way while a header is coming, and whether that is refused before it has come.
    head: Arc<Head>,
    refused: AtomicBool,
    /// Whether the peer leaves unread what was said before, so that nothing more can be written now.
    stuck: watch::Sender<bool>,
}

/// A header that is coming. It is told that there is no room for it.
#[derive(Debug, Default)]
struct Head(Notify);

impl GiveWay for Head {
    fn give_way(&self) {
        self.0.notify_one();
    }
}

/// What comes of a header for which there is no room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadRefused {
    /// It has come meanwhile, and its request is judged like any other.
    Came,
    /// Its peer is told so as soon as the connection reads again.
    Told,
    /// It is part of something that cannot be answered yet.
    Unsaid,
}

#[derive(Debug)]
struct State {
    protocol: Protocol,
    /// Requests in flight: from the end of a header to the end of its answer.
    requests: usize,
    /// Those of them whose body has not all come.
    receiving: usize,
    /// Those of them that ask for nothing but to be told what happens.
    listening: usize,
    /// Whether there ever was one.
    used: bool,
    /// Since when there is none.
    idle_since: Instant,
    /// When the first byte of a header came.
    head_since: Option<Instant>,
    /// How many bytes have come since there is no request in flight, and the room for them once they are many.
    head: usize,
    room: Option<Held>,
    /// Answers of which the peer takes nothing at the moment, and since when.
    unread: Vec<(u64, Instant)>,
    last: u64,
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Protocol {
    /// So many bytes came, and all of them could be HTTP/2's.
    Unknown(usize),
    Http1,
    Http2,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Overdue {
    /// A header did not end, or a handshake.
    Head,
    /// Nothing was asked.
    Idle,
    /// Nothing was read.
    Unread,
}

/// Who gives way first when all places are taken.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Rank {
    /// It gets no answers here.
    Stranger,
    /// It never asked anything.
    Unused,
    /// It asks nothing now.
    Idle,
    /// What it asks has not all come, so nothing of it was done.
    Receiving,
    /// It does not read its answers.
    Unread,
    /// It waits for notifications alone, and can ask for them again.
    Listening,
}

impl Activity {
    pub(super) fn new(caller: Caller) -> Arc<Self> {
        let state = State {
            protocol: Protocol::Unknown(0),
            requests: 0,
            receiving: 0,
            listening: 0,
            used: false,
            idle_since: Instant::now(),
            head_since: None,
            head: 0,
            room: None,
            unread: Vec::new(),
            last: 0,
        };
        let owner = Owner { principal: number(caller), group: budget::next_group() };
        let (agent, budget, gives_way) = (OnceLock::new(), OnceLock::new(), Notify::new());
        let (state, head, refused) = (Mutex::new(state), Arc::default(), AtomicBool::new(false));
        let stuck = watch::Sender::new(false);
        Arc::new(Self { caller, owner, agent, budget, state, gives_way, head, refused, stuck })
    }

    /// The beginnings of its requests draw on this.
    pub(super) fn draws_on(&self, budget: &Budget) {
        let _ = self.budget.set(budget.clone());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn caller(&self) -> Caller {
        self.caller
    }

    pub(super) const fn owner(&self) -> Owner {
        self.owner
    }

    /// Its agent: what the first request on it said, whatever later ones say.
    pub(super) fn agent(&self, says: impl FnOnce() -> u64) -> u64 {
        *self.agent.get_or_init(says)
    }

    /// These bytes came.
    pub(super) fn came(&self, bytes: &[u8]) {
        let mut state = self.state();
        self.makes_room(&mut state, bytes.len());
        if let Protocol::Unknown(before) = state.protocol {
            let rest = PREFACE.get(before..).unwrap_or_default();
            let known = bytes.len().min(rest.len());
            state.protocol = match () {
                () if bytes[..known] != rest[..known] => Protocol::Http1,
                () if known == rest.len() => Protocol::Http2,
                () => Protocol::Unknown(before + known),
            };
        }
        // On HTTP/2 bytes come for other reasons too. There a header that does not end keeps pings from being answered.
        if state.protocol == Protocol::Http2 {
            state.head_since = None;
        } else if state.requests == 0 && state.head_since.is_none() && !bytes.is_empty() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Counts what comes before it is a request. If there is no room for it, it is refused: no answer is lost by that.
    fn makes_room(&self, state: &mut State, bytes: usize) {
        if state.requests > 0 {
            return;
        }
        // A header of one piece is a request before the next one comes.
        let is_long = state.head > LONG_HEADER;
        state.head += bytes;
        if let (true, None, Some(budget)) = (is_long, &state.room, self.budget.get()) {
            let holder: Weak<Head> = Arc::downgrade(&self.head);
            let mut room = budget.hold(Class::Head, self.owner, holder);
            if room.grow(BUFFER).is_err() {
                self.head.give_way();
            }
            state.room = Some(room);
        }
    }

    /// Waits until there is no room for the header that is coming.
    pub(super) async fn has_no_room_for_head(&self) {
        self.head.0.notified().await;
    }

    /// Refuses the header that is coming.
    pub(super) fn refuses_head(&self) -> HeadRefused {
        let state = self.state();
        match state.protocol {
            _ if state.requests > 0 || state.head == 0 => HeadRefused::Came,
            Protocol::Http1 => {
                self.refused.store(true, Ordering::Release);
                HeadRefused::Told
            }
            Protocol::Unknown(_) | Protocol::Http2 => HeadRefused::Unsaid,
        }
    }

    /// True if what comes is not read any more, and the peer is to be told so.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }

    /// Something was to be written: it waits for the peer to read, or it does not.
    pub(super) fn writes(&self, is_stuck: bool) {
        self.stuck.send_if_modified(|stuck| std::mem::replace(stuck, is_stuck) != is_stuck);
    }

    pub(super) fn is_stuck(&self) -> bool {
        *self.stuck.borrow()
    }

    /// Waits until the peer has read what was said before.
    pub(super) async fn can_write(&self) {
        // The other half is its own.
        let _ = self.stuck.subscribe().wait_for(|stuck| !*stuck).await;
    }

    /// A handshake begins. It has as long as a header has, however its bytes come.
    pub(super) fn shakes_hands(&self) {
        self.state().head_since = Some(Instant::now());
    }

    /// Its handshake is done.
    pub(super) fn shook_hands(&self) {
        self.state().head_since = None;
    }

    /// A request begins. Whether it only listens is what it says of itself: one that says so falsely can lose its own answer.
    pub(super) fn request(self: &Arc<Self>, listens: bool) -> InFlight {
        let mut state = self.state();
        (state.used, state.head_since, state.head, state.room) = (true, None, 0, None);
        state.requests += 1;
        state.listening += usize::from(listens);
        state.last += 1;
        InFlight { of: Arc::clone(self), number: state.last, listens, permit: None }
    }

    /// When something is overdue next.
    fn deadline(&self) -> Option<(Instant, Overdue)> {
        let state = self.state();
        if let Some(since) = state.head_since {
            return Some((since + HEAD, Overdue::Head));
        }
        if state.requests == 0 {
            return Some((state.idle_since + IDLE, Overdue::Idle));
        }
        let since = state.unread.iter().map(|(_, since)| *since).min()?;
        Some((since + UNREAD, Overdue::Unread))
    }

    /// Whether it can give way, how easily, and since when: the longer, the sooner.
    pub(super) fn rank(&self, now: Instant) -> Option<(Rank, Instant)> {
        let state = self.state();
        let unread = || {
            let all = state.unread.len() == state.requests;
            let last = state.unread.iter().map(|(_, since)| *since).max().filter(|_| all)?;
            (last + UNREAD_WHEN_FULL <= now).then_some((Rank::Unread, last))
        };
        match () {
            () if self.caller.is_stranger() => Some((Rank::Stranger, state.idle_since)),
            () if state.requests == 0 && !state.used => Some((Rank::Unused, state.idle_since)),
            () if state.requests == 0 => Some((Rank::Idle, state.idle_since)),
            () if state.receiving == state.requests => Some((Rank::Receiving, state.idle_since)),
            () if state.listening == state.requests => unread().or(Some((Rank::Listening, state.idle_since))),
            () => unread(),
        }
    }

    /// Its place is wanted for somebody else.
    pub(super) fn give_way(&self) {
        self.gives_way.notify_one();
    }

    /// Waits until its place is wanted.
    pub(super) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl GiveWay for Activity {
    /// What it does not read is in the way.
    fn give_way(&self) {
        Self::give_way(self);
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    of: Arc<Activity>,
    number: u64,
    listens: bool,
    /// What its principal may have at once.
    permit: Option<Permit>,
}

impl InFlight {
    /// Its principal may ask this.
    pub(super) fn permitted(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// There is something to read for the peer.
    pub(super) fn offers(&self) {
        let mut state = self.of.state();
        let number = self.number;
        state.unread.retain(|(other, _)| *other != number);
        state.unread.push((number, Instant::now()));
    }

    /// The peer has taken it.
    pub(super) fn is_taken(&self) {
        let number = self.number;
        self.of.state().unread.retain(|(other, _)| *other != number);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.of.state();
        let number = self.number;
        state.unread.retain(|(other, _)| *other != number);
        state.requests -= 1;
        state.listening -= usize::from(self.listens);
        if state.requests == 0 {
            state.idle_since = Instant::now();
        }
    }
}

/// A request whose body has not all come. It is so for as long as this is kept.
pub(super) struct Receiving(Arc<Activity>);

impl Receiving {
    pub(super) fn of(activity: &Arc<Activity>) -> Self {
        activity.state().receiving += 1;
        Self(Arc::clone(activity))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.0.state().receiving -= 1;
    }
}

/// Waits until something of a connection is overdue. It has to be polled after the connection was, in the same task.
pub(super) struct Watch<'a> {
    activity: &'a Activity,
    timer: Pin<Box<Sleep>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(activity: &'a Activity) -> Self {
        Self { activity, timer: Box::pin(tokio::time::sleep(IDLE)) }
    }
}

impl Future for Watch<'_> {
    type Output = Overdue;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Overdue> {
        loop {
            let next = self.activity.deadline();
            // A timer that is too early is left alone: setting it for each request would cost more than one look too many.
            if let Some((at, _)) = next
                && at < self.timer.deadline()
            {
                self.timer.as_mut().reset(at);
            }
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            match next {
                Some((at, why)) if at <= now => return Poll::Ready(why),
                Some((at, _)) => self.timer.as_mut().reset(at),
                // A busy connection: whatever happens to it, it is looked at then.
                None => self.timer.as_mut().reset(now + IDLE),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, HEAD, IDLE, Overdue, PREFACE, Rank, Receiving, UNREAD, UNREAD_WHEN_FULL, Watch};
    use crate::front::caller::Caller;
    use std::time::Duration;
    use tokio::time::Instant;

    /// What of a connection is overdue next.
    async fn overdue(activity: &Activity) -> Overdue {
        tokio::time::timeout(IDLE * 100, Watch::new(activity)).await.expect("nothing is ever overdue")
    }

    #[tokio::test(start_paused = true)]
    async fn o08_what_does_not_end_is_overdue_in_its_time() {
        let begun = Instant::now();
        let activity = Activity::new(Caller::User(1));
        assert_eq!(overdue(&activity).await, Overdue::Idle);
        assert_eq!(begun.elapsed(), IDLE);
        activity.came(b"POST");
        tokio::time::sleep(HEAD / 2).await;
        activity.came(b" /mcp");
        assert_eq!(overdue(&activity).await, Overdue::Head, "more of it does not make it longer");
        assert_eq!(begun.elapsed(), IDLE + HEAD);
        let request = activity.request(false);
        let waits = tokio::time::timeout(IDLE * 10, Watch::new(&activity)).await;
        assert!(waits.is_err(), "nothing is overdue while the peer waits for its answer");
        request.offers();
        let begun = Instant::now();
        assert_eq!(overdue(&activity).await, Overdue::Unread);
        assert_eq!(begun.elapsed(), UNREAD);
        for _ in 0..5 {
            request.is_taken();
            request.offers();
            let waits = tokio::time::timeout(UNREAD * 3 / 4, Watch::new(&activity)).await;
            assert!(waits.is_err(), "a slow reader is not hung up on");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn o08_http2_has_no_header_that_is_waited_for() {
        let activity = Activity::new(Caller::User(1));
        activity.came(&PREFACE[..3]);
        activity.came(&PREFACE[3..]);
        activity.came(b"more");
        assert_eq!(overdue(&activity).await, Overdue::Idle);
        let slow = Activity::new(Caller::User(1));
        slow.came(&PREFACE[..20]);
        assert_eq!(overdue(&slow).await, Overdue::Head, "half a preface is a header that does not end");
    }

    #[tokio::test(start_paused = true)]
    async fn o08_a_call_that_is_under_way_never_gives_way() {
        let activity = Activity::new(Caller::User(1));
        let rank = || activity.rank(Instant::now()).map(|(rank, _)| rank);
        assert_eq!(rank(), Some(Rank::Unused));
        let request = activity.request(false);
        assert_eq!(rank(), None);
        let receiving = Receiving::of(&activity);
        assert_eq!(rank(), Some(Rank::Receiving));
        let second = activity.request(false);
        assert_eq!(rank(), None, "its other request is under way");
        drop(second);
        drop(receiving);
        request.offers();
        assert_eq!(rank(), None);
        tokio::time::sleep(UNREAD_WHEN_FULL + Duration::from_secs(1)).await;
        assert_eq!(rank(), Some(Rank::Unread));
        drop(request);
        assert_eq!(rank(), Some(Rank::Idle));
        let (listens, calls) = (activity.request(true), activity.request(false));
        assert_eq!(rank(), None);
        drop(calls);
        assert_eq!(rank(), Some(Rank::Listening));
        drop(listens);
        let stranger = Activity::new(Caller::Stranger(Some(2)));
        let _request = stranger.request(false);
        assert_eq!(stranger.rank(Instant::now()).map(|(rank, _)| rank), Some(Rank::Stranger));
    }
}
