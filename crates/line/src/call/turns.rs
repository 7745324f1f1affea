//! Whose turn it is: so many calls in flight, so many in a queue, and nobody's calls push out another agent's.
//!
//! Agents take turns, not calls: one that asks for everything at once waits behind itself. When the queue is full, the
//! newest call of whoever has most in it makes room for an agent that has less.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use linetender_wire::renewed;
use tokio::sync::oneshot;

/// Who calls, among those that share the line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Caller {
    /// Callers of the library are one, and so is the agent of a line of its own.
    #[default]
    Owner,
    /// An agent that has a session, by its number.
    Listener(u64),
    /// An agent that has none, by what whoever let it in knows it by.
    Known(u64),
}

/// The places of a line.
#[derive(Debug)]
pub(crate) struct Turns {
    in_flight: usize,
    queue: usize,
    book: Mutex<Book>,
}

/// A place among the calls in flight. Dropped, it is the next one's.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Turns>);

/// There is no room, not even to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Full;

#[derive(Debug, Default)]
struct Book {
    taken: usize,
    waiting: usize,
    /// Those who wait; whoever is first has the next turn, and is last after it.
    rows: VecDeque<Row>,
    last: u64,
}

#[derive(Debug)]
struct Row {
    caller: Caller,
    calls: VecDeque<(u64, oneshot::Sender<Slot>)>,
}

/// A place in the queue. Dropped, it is nobody's.
struct Ticket<'a> {
    turns: &'a Turns,
    caller: Caller,
    number: u64,
}

impl Turns {
    pub(crate) fn new(in_flight: usize, queue: usize) -> Arc<Self> {
        Arc::new(Self { in_flight, queue, book: Mutex::default() })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Whoever waits is told that there is no room; slots that are out come back to a book that does not know them.
        renewed(&self.book, |book| *book = Book::default())
    }

    /// Waits for a slot, in the queue if there is room.
    pub(crate) async fn take(self: &Arc<Self>, caller: Caller) -> Result<Slot, Full> {
        let (number, slot) = {
            let mut book = self.book();
            if book.taken < self.in_flight {
                book.taken += 1;
                return Ok(Slot(Arc::clone(self)));
            }
            book.enter(caller, self.queue)?
        };
        let _ticket = Ticket { turns: self, caller, number };
        // Whoever is pushed out loses its sender.
        slot.await.map_err(|_| Full)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // It is sent when the book is closed again: nobody may be there any more, and then it is dropped once more.
        let next = self.0.book().next();
        if let Some(next) = next {
            let _ = next.send(Self(Arc::clone(&self.0)));
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.turns.book().leave(self.caller, self.number);
    }
}

impl Book {
    fn enter(&mut self, caller: Caller, queue: usize) -> Result<(u64, oneshot::Receiver<Slot>), Full> {
        if self.waiting >= queue {
            let own = self.rows.iter().find(|row| row.caller == caller).map_or(0, |row| row.calls.len());
            let longest = self.rows.iter_mut().max_by_key(|row| row.calls.len()).ok_or(Full)?;
            if longest.calls.len() <= own + 1 {
                return Err(Full);
            }
            longest.calls.pop_back();
            self.waiting -= 1;
        }
        self.last += 1;
        self.waiting += 1;
        let (tell, told) = oneshot::channel();
        match self.rows.iter_mut().find(|row| row.caller == caller) {
            Some(row) => row.calls.push_back((self.last, tell)),
            None => self.rows.push_back(Row { caller, calls: VecDeque::from([(self.last, tell)]) }),
        }
        Ok((self.last, told))
    }

    fn leave(&mut self, caller: Caller, number: u64) {
        let Some(at) = self.rows.iter().position(|row| row.caller == caller) else { return };
        let Some(row) = self.rows.get_mut(at) else { return };
        let before = row.calls.len();
        row.calls.retain(|(of, _)| *of != number);
        self.waiting -= before - row.calls.len();
        if row.calls.is_empty() {
            self.rows.remove(at);
        }
    }

    /// Who takes over a slot; without anybody, it is free.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let Some(mut row) = self.rows.pop_front() else {
            self.taken = self.taken.saturating_sub(1);
            return None;
        };
        let next = row.calls.pop_front();
        self.waiting -= 1;
        if !row.calls.is_empty() {
            self.rows.push_back(row);
        }
        next.map(|(_, tell)| tell)
    }
}

#[cfg(test)]
mod tests {
    use super::Caller::{self, Known, Listener, Owner};
    use super::{Full, Turns};
    use std::pin::pin;
    use std::sync::Arc;

    /// Everybody who was told, in order, as slots come free one after the other.
    async fn order(turns: &Arc<Turns>, callers: &[Caller]) -> Vec<Result<Caller, Caller>> {
        let first = turns.take(Owner).await.unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in callers.iter().copied() {
            let (turns, tell) = (Arc::clone(turns), tell.clone());
            tasks.spawn(async move {
                let slot = turns.take(caller).await;
                let _ = tell.send(slot.as_ref().map(|_| caller).map_err(|_| caller));
            });
            tokio::task::yield_now().await;
        }
        drop((first, tell));
        let mut order = Vec::new();
        while let Some(one) = told.recv().await {
            order.push(one);
        }
        order
    }

    #[tokio::test]
    async fn agents_take_turns_whoever_asks_more() {
        let (a, b) = (Listener(1), Known(1));
        let order = order(&Turns::new(1, 8), &[a, a, a, b, b]).await;
        assert_eq!(order, [Ok(a), Ok(b), Ok(a), Ok(b), Ok(a)]);
    }

    #[tokio::test]
    async fn a_full_queue_makes_room_for_whoever_has_less_in_it() {
        let (a, b) = (Listener(1), Known(1));
        let order = order(&Turns::new(1, 3), &[a, a, a, a, b, b]).await;
        assert_eq!(order, [Err(a), Err(a), Err(b), Ok(a), Ok(b), Ok(a)]);
    }

    #[tokio::test]
    async fn who_gives_up_leaves_no_place_behind() {
        let turns = Turns::new(1, 1);
        let slot = turns.take(Owner).await.unwrap();
        {
            let mut gone = pin!(turns.take(Listener(1)));
            assert!(is_pending(&mut gone).await);
            assert_eq!(turns.take(Listener(1)).await.err(), Some(Full));
        }
        let mut waits = pin!(turns.take(Listener(1)));
        assert!(is_pending(&mut waits).await, "there is room again");
        drop(slot);
        drop(waits.await.unwrap());
        let book = turns.book();
        assert_eq!((book.taken, book.waiting, book.rows.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn a_slot_that_comes_to_nobody_is_free() {
        let turns = Turns::new(1, 1);
        let slot = turns.take(Owner).await.unwrap();
        {
            let mut gone = pin!(turns.take(Listener(1)));
            assert!(is_pending(&mut gone).await);
            drop(slot);
        }
        assert_eq!(turns.book().taken, 0);
        drop(turns.take(Owner).await.unwrap());
    }

    async fn is_pending<F: Future>(future: &mut std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending()))
            .await
    }
}
