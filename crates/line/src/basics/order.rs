//! The order of one agent's calls on their way to the server.
//!
//! An agent that sends `write`, `edit` and `commit` at once relies on the pipe: the server gets them in that order. Calls that
//! are held until a server has started, or sent again after it died, each wait in a task of their own, and those tasks wake in
//! any order. So every call of a session has a number, and two rules hold:
//!
//! 1. The work of a call begins only after the work of all earlier calls has begun. Every queue on the way (the session's
//!    backlog, the line's turns) is first in, first out, so it keeps that order. A call that the server can take at once is
//!    with the server when its work has begun, and costs a few loads and one store.
//! 2. A call that had to wait, or was lost, is *unsent* until it is with the server, has ended, or is overtaken. A call that
//!    may be sent waits until no earlier call of its session is unsent.
//!
//! No call waits in vain: a call that ends is unsent no more, whatever ended it, and no call waits longer than
//! [`LONGEST_WAIT`] for earlier ones while the server takes calls.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::basics::sync::{Mutex, MutexGuard};

/// Longest time that a call waits for earlier calls of its agent while the server takes calls. An earlier call may wait for
/// more than a server: for a new key, for the time that a server asked for. That is its own affair.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Numbers the calls of one session.
#[derive(Debug, Default)]
pub(crate) struct CallOrder {
    queue: Arc<Queue>,
    next: u64,
}

/// A call that has arrived. Dropped, it holds up no later call.
#[derive(Debug)]
pub(crate) struct Arrival(Place);

/// The place of one call among the calls of its session.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    queue: Arc<Queue>,
    number: u64,
}

#[derive(Debug, Default)]
struct Queue {
    /// Number of the first call whose work has not begun. Only that call moves it, or whoever holds `lists` if that call has
    /// ended.
    begun: AtomicU64,
    /// Number of entries in `lists`: while it is zero, no call looks into them.
    listed: AtomicUsize,
    lists: Mutex<Lists>,
}

/// The calls that are not on the fast path. Each call of the session is in one of the lists at most, so they are bounded by
/// the session's tasks.
#[derive(Debug, Default)]
struct Lists {
    /// Calls that were looked at before it was their turn to begin.
    early: BTreeMap<u64, Waker>,
    /// Calls that ended before their work could begin.
    gone: BTreeSet<u64>,
    unsent: BTreeMap<u64, Unsent>,
    /// Notifications that wait for earlier calls. They hold up no call.
    followers: BTreeMap<u64, Waker>,
    /// Number of the last entry of `unsent`.
    last_entry: u64,
}

/// A call that has yet to be sent, for the first time or again.
#[derive(Debug)]
struct Unsent {
    /// When it became unsent, counted in such entries.
    entry: u64,
    /// Wakes the call that waits for earlier ones.
    waker: Option<Waker>,
}

impl CallOrder {
    /// Gives the next call its number.
    pub(crate) fn arrive(&mut self) -> Arrival {
        let place = Place { queue: Arc::clone(&self.queue), number: self.next };
        self.next += 1;
        Arrival(place)
    }
}

impl Arrival {
    pub(crate) fn place(&self) -> Place {
        self.0.clone()
    }

    /// Runs the work of a notification, which begins when no earlier call is unsent. It holds up no later call.
    pub(crate) async fn follow<T>(self, work: impl Future<Output = T>) -> T {
        let arrival = self;
        let place = &arrival.0;
        poll_fn(|context| place.poll_begin(context)).await;
        place.queue.begin_after(place.number);
        poll_fn(|context| place.poll_follow(context)).await;
        work.await
    }

    /// True if all earlier calls are with the server or have ended.
    pub(crate) fn is_next(&self) -> bool {
        self.0.queue.begun.load(SeqCst) == self.0.number && self.0.is_first()
    }

    /// Runs the work of this call, which begins after that of all earlier calls. If the work has to wait before the call is
    /// sent, the call is unsent from then on.
    pub(crate) async fn run<T>(self, work: impl Future<Output = T>) -> T {
        // What is declared last is dropped first: this call holds up later ones until its work is gone.
        let arrival = self;
        let place = &arrival.0;
        let mut work = pin!(work);
        poll_fn(|context| place.poll_begin(context)).await;
        let mut begins = true;
        poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if std::mem::take(&mut begins) && polled.is_pending() {
                place.is_held();
            }
            polled
        })
        .await
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let Place { queue, number } = &self.0;
        let begun = queue.begun.load(SeqCst);
        if begun == *number {
            queue.begin_after(*number);
        } else if begun < *number {
            queue.change(|lists| {
                lists.early.remove(number);
                lists.gone.insert(*number);
            });
            queue.wake_next();
        }
        self.0.step_aside();
        if queue.is_listed() {
            queue.change(|lists| lists.followers.remove(number));
        }
    }
}

impl Place {
    fn poll_begin(&self, context: &Context<'_>) -> Poll<()> {
        let is_next = || self.queue.begun.load(SeqCst) == self.number;
        let leaves = || self.queue.change(|lists| lists.early.remove(&self.number));
        if is_next() {
            // The task may have been woken by something else, and not yet by the call before this one.
            if self.queue.is_listed() {
                leaves();
            }
            return Poll::Ready(());
        }
        self.queue.change(|lists| lists.early.insert(self.number, context.waker().clone()));
        // The call before this one looks for entries after it has moved `begun`; this one looks in the other order.
        if !is_next() {
            return Poll::Pending;
        }
        leaves();
        Poll::Ready(())
    }

    /// Notes that the work of this call has begun and has to wait. If the call is with the server by now, nothing is left to
    /// be noted.
    fn is_held(&self) {
        if self.queue.begun.load(SeqCst) == self.number {
            self.return_to_queue();
            self.queue.begin_after(self.number);
        }
    }

    /// Notes that the call is with the server.
    pub(crate) fn mark_sent(&self) {
        self.step_aside();
        if self.queue.begun.load(SeqCst) == self.number {
            self.queue.begin_after(self.number);
        }
    }

    /// Notes that the call was lost and may be sent again.
    pub(crate) fn return_to_queue(&self) {
        self.queue.change(|lists| lists.enter(self.number, None));
    }

    /// Lets later calls pass: this one is with the server, has ended, or waits for something that they need not wait for.
    pub(crate) fn step_aside(&self) {
        if !self.queue.is_listed() {
            return;
        }
        let next = self.queue.change(|lists| match lists.unsent.remove(&self.number) {
            Some(_) => lists.freed(),
            None => Vec::new(),
        });
        next.iter().for_each(Waker::wake_by_ref);
    }

    /// True if no earlier call is unsent.
    fn is_first(&self) -> bool {
        !self.queue.is_listed() || self.queue.change(|lists| lists.is_first(self.number))
    }

    /// Waits until no earlier call is unsent, for as long as `left`, which is what remains of [`LONGEST_WAIT`] to this call.
    /// After that the call overtakes all that it has waited for from the beginning: they hold up no other call either.
    ///
    /// # Errors
    /// If the call's own time ends before that, at `end`.
    pub(crate) async fn wait_for_turn(&self, left: &mut Duration, end: Instant) -> Result<(), Elapsed> {
        if self.is_first() {
            return Ok(());
        }
        let began = Instant::now();
        let newest = self.queue.change(|lists| lists.last_entry);
        let overtakes = began + *left;
        let waits = poll_fn(|context| self.poll_turn(context));
        if let Err(elapsed) = timeout_at(overtakes.min(end), waits).await {
            if end < overtakes {
                return Err(elapsed);
            }
            let next = self.queue.change(|lists| {
                lists.overtake(self.number, newest);
                lists.freed()
            });
            next.iter().for_each(Waker::wake_by_ref);
        }
        *left = left.saturating_sub(began.elapsed());
        Ok(())
    }

    fn poll_follow(&self, context: &Context<'_>) -> Poll<()> {
        if !self.queue.is_listed() {
            return Poll::Ready(());
        }
        self.queue.change(|lists| {
            if lists.is_first(self.number) {
                lists.followers.remove(&self.number);
                return Poll::Ready(());
            }
            lists.followers.insert(self.number, context.waker().clone());
            Poll::Pending
        })
    }

    fn poll_turn(&self, context: &Context<'_>) -> Poll<()> {
        self.queue.change(|lists| {
            if lists.is_first(self.number) {
                return Poll::Ready(());
            }
            lists.enter(self.number, Some(context.waker().clone()));
            Poll::Pending
        })
    }
}

impl Queue {
    fn is_listed(&self) -> bool {
        self.listed.load(SeqCst) != 0
    }

    fn change<T>(&self, change: impl FnOnce(&mut Lists) -> T) -> T {
        let mut lists: MutexGuard<'_, Lists> = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut lists);
        self.listed
            .store(lists.early.len() + lists.gone.len() + lists.unsent.len() + lists.followers.len(), SeqCst);
        changed
    }

    /// The work of this call has begun, or never will: the next one's turn. Only for the call that `begun` names.
    fn begin_after(&self, number: u64) {
        self.begun.store(number + 1, SeqCst);
        if self.is_listed() {
            self.wake_next();
        }
    }

    /// Passes over calls that are gone, and wakes the next one if it was looked at too early.
    fn wake_next(&self) {
        let next = self.change(|lists| {
            loop {
                let begun = self.begun.load(SeqCst);
                // A call that is gone moves nothing, and `gone` is changed under the lock only.
                if !lists.gone.remove(&begun) {
                    return lists.early.remove(&begun);
                }
                self.begun.store(begun + 1, SeqCst);
            }
        });
        next.inspect(Waker::wake_by_ref);
    }
}

impl Lists {
    /// Enters a call as unsent; one that is entered already keeps its entry.
    fn enter(&mut self, number: u64, waker: Option<Waker>) {
        let last_entry = &mut self.last_entry;
        let unsent = self.unsent.entry(number).or_insert_with(|| {
            *last_entry += 1;
            Unsent { entry: *last_entry, waker: None }
        });
        unsent.waker = waker.or(unsent.waker.take());
    }

    fn is_first(&self, number: u64) -> bool {
        self.unsent.first_key_value().is_none_or(|(first, _)| *first >= number)
    }

    /// Takes out what wakes the first unsent call, if that waits for earlier ones, and the notifications before it.
    fn freed(&mut self) -> Vec<Waker> {
        let first = self.unsent.first_key_value().map_or(u64::MAX, |(first, _)| *first);
        let later = self.followers.split_off(&first);
        let free = std::mem::replace(&mut self.followers, later).into_values();
        let call = self.unsent.first_entry().and_then(|mut first| first.get_mut().waker.take());
        free.chain(call).collect()
    }

    /// Takes out the calls before this one, but for those that were entered later than `newest`.
    fn overtake(&mut self, number: u64, newest: u64) {
        let before = self.unsent.range(..number).filter(|(_, unsent)| unsent.entry <= newest);
        let before: Vec<_> = before.map(|(number, _)| *number).collect();
        for number in before {
            self.unsent.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests;
