//! Whose turn it is: so many calls in flight, so many in a queue, and nobody's calls push out another agent's.
//!
//! Agents take turns, not calls: one that asks for everything at once waits behind itself. So do the principals that agents
//! act for: one with four hundred names has one turn in each round. Calls that are slow cannot be taken back, so no agent and
//! no principal has all the slots of a shared line: some are left for whoever comes next. When the queue is full, the newest
//! call of whoever has most in it makes room for somebody who has less.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use linetender_wire::renewed;
use tokio::sync::oneshot;

use super::context::AgentContext;

/// Whose an agent's requests are, among those that share a line. Both are numbers that whoever lets it in has given.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Who {
    /// Whom it acts for: a user of the machine, a token, an address; never what an agent calls itself.
    pub principal: u64,
    /// Which of that principal's agents it is.
    pub agent: u64,
}

/// An agent that somebody let in: whose it is, and what that one is called.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    /// Whose its requests are.
    pub who: Who,
    /// The name of whom it acts for.
    pub name: Arc<str>,
    /// What it relies on in the server's memory.
    pub context: AgentContext,
}

/// Who calls, among those that share the line.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Caller {
    /// Callers of the library are one, and so is the agent of a line of its own.
    #[default]
    Owner,
    /// An agent of whom nothing else is known, by its number.
    Listener(u64),
    /// An agent that somebody let in.
    Known(Who),
}

impl Caller {
    pub(crate) fn principal(self) -> u64 {
        match self {
            Self::Owner | Self::Listener(_) => 0,
            Self::Known(who) => who.principal,
        }
    }
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
pub(crate) struct Slot {
    of: Arc<Turns>,
    caller: Caller,
}

/// There is no room, not even to wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Full;

#[derive(Debug, Default)]
struct Book {
    taken: usize,
    /// Who has them, but for the owner, who may have all. Few have any at a time, and every call counts: these are small.
    agents: BTreeMap<Caller, usize>,
    principals: BTreeMap<u64, usize>,
    waiting: usize,
    /// Those who wait; whoever is first has the next turn, and is last after it.
    groups: VecDeque<Group>,
    last: u64,
}

/// A principal whose calls wait.
#[derive(Debug)]
struct Group {
    principal: u64,
    rows: VecDeque<Row>,
}

/// An agent whose calls wait.
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

    /// Whether nobody has a slot or waits for one.
    pub(crate) fn is_quiet(&self) -> bool {
        let book = self.book();
        book.taken == 0 && book.waiting == 0
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Whoever waits is told that there is no room; slots that are out come back to a book that does not know them.
        renewed(&self.book, |book| *book = Book::default())
    }

    /// Waits for a slot, in the queue if there is room.
    pub(crate) async fn take(self: &Arc<Self>, caller: Caller) -> Result<Slot, Full> {
        let (number, slot) = {
            let mut book = self.book();
            if book.taken < self.in_flight && book.may(caller, self.in_flight) {
                book.give(caller);
                return Ok(Slot { of: Arc::clone(self), caller });
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
        let next = {
            let mut book = self.of.book();
            book.take_back(self.caller);
            book.next(self.of.in_flight)
        };
        // It is sent when the book is closed again: nobody may be there any more, and then it is dropped once more.
        if let Some((caller, next)) = next {
            let _ = next.send(Self { of: Arc::clone(&self.of), caller });
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.turns.book().leave(self.caller, self.number);
    }
}

impl Book {
    /// Whether somebody may have one more of so many slots. A quarter is left by each agent, and an eighth by each principal;
    /// the owner of a line shares it with nobody.
    fn may(&self, caller: Caller, in_flight: usize) -> bool {
        if caller == Caller::Owner {
            return true;
        }
        let agent = self.agents.get(&caller).copied().unwrap_or_default();
        let principal = self.principals.get(&caller.principal()).copied().unwrap_or_default();
        agent < in_flight - in_flight / 8 * 2 && principal < in_flight - in_flight / 8
    }

    fn give(&mut self, caller: Caller) {
        self.taken += 1;
        if caller == Caller::Owner {
            return;
        }
        *self.agents.entry(caller).or_default() += 1;
        *self.principals.entry(caller.principal()).or_default() += 1;
    }

    fn take_back(&mut self, caller: Caller) {
        self.taken = self.taken.saturating_sub(1);
        if caller == Caller::Owner {
            return;
        }
        less(&mut self.agents, &caller);
        less(&mut self.principals, &caller.principal());
    }

    fn enter(&mut self, caller: Caller, queue: usize) -> Result<(u64, oneshot::Receiver<Slot>), Full> {
        if self.waiting >= queue {
            self.make_room(caller)?;
        }
        self.last += 1;
        self.waiting += 1;
        let (tell, told) = oneshot::channel();
        let principal = caller.principal();
        let at = self.groups.iter().position(|group| group.principal == principal).unwrap_or_else(|| {
            self.groups.push_back(Group { principal, rows: VecDeque::new() });
            self.groups.len() - 1
        });
        let rows = &mut self.groups[at].rows;
        match rows.iter_mut().find(|row| row.caller == caller) {
            Some(row) => row.calls.push_back((self.last, tell)),
            None => rows.push_back(Row { caller, calls: VecDeque::from([(self.last, tell)]) }),
        }
        Ok((self.last, told))
    }

    /// Whoever has most in the queue gives way to somebody who has less: first among principals, then among a principal's own.
    fn make_room(&mut self, caller: Caller) -> Result<(), Full> {
        let principal = caller.principal();
        let own = self.groups.iter().find(|group| group.principal == principal).map_or(0, Group::waiting);
        let longest = self.groups.iter_mut().max_by_key(|group| group.waiting()).ok_or(Full)?;
        // Of its own principal's calls, those of another agent give way; of another's, whichever agent has most.
        let (own, most) = if longest.principal == principal {
            let row = longest.rows.iter().find(|row| row.caller == caller);
            (row.map_or(0, |row| row.calls.len()), longest.rows.iter().map(|row| row.calls.len()).max())
        } else {
            (own, Some(longest.waiting()))
        };
        if most.unwrap_or_default() <= own + 1 {
            return Err(Full);
        }
        let row = longest.rows.iter_mut().max_by_key(|row| row.calls.len()).ok_or(Full)?;
        row.calls.pop_back();
        self.waiting -= 1;
        self.forget_empty();
        Ok(())
    }

    fn leave(&mut self, caller: Caller, number: u64) {
        let principal = caller.principal();
        let Some(group) = self.groups.iter_mut().find(|group| group.principal == principal) else { return };
        let Some(row) = group.rows.iter_mut().find(|row| row.caller == caller) else { return };
        // They stand in the order of their numbers. All of an agent's may leave at once, so none is looked for one by one.
        let Ok(at) = row.calls.binary_search_by_key(&number, |(of, _)| *of) else { return };
        row.calls.remove(at);
        self.waiting -= 1;
        if row.calls.is_empty() {
            self.forget_empty();
        }
    }

    fn forget_empty(&mut self) {
        for group in &mut self.groups {
            group.rows.retain(|row| !row.calls.is_empty());
        }
        self.groups.retain(|group| !group.rows.is_empty());
    }

    /// Who takes over a slot; without anybody who may have it, it is free.
    fn next(&mut self, in_flight: usize) -> Option<(Caller, oneshot::Sender<Slot>)> {
        for at in 0..self.groups.len() {
            let may = |row: &Row| self.may(row.caller, in_flight);
            let Some(place) = self.groups[at].rows.iter().position(may) else { continue };
            let mut group = self.groups.remove(at)?;
            let mut row = group.rows.remove(place)?;
            let (_, tell) = row.calls.pop_front()?;
            let caller = row.caller;
            if !row.calls.is_empty() {
                group.rows.push_back(row);
            }
            if !group.rows.is_empty() {
                self.groups.push_back(group);
            }
            self.waiting -= 1;
            self.give(caller);
            return Some((caller, tell));
        }
        None
    }
}

impl Group {
    fn waiting(&self) -> usize {
        self.rows.iter().map(|row| row.calls.len()).sum()
    }
}

/// One less; without any, no entry.
fn less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Caller::{self, Known, Listener, Owner};
    use super::{Full, Turns, Who};
    use std::pin::pin;
    use std::sync::Arc;

    fn known(principal: u64, agent: u64) -> Caller {
        Known(Who { principal, agent })
    }

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
        let (a, b) = (Listener(1), known(1, 1));
        let order = order(&Turns::new(1, 8), &[a, a, a, b, b]).await;
        assert_eq!(order, [Ok(a), Ok(b), Ok(a), Ok(b), Ok(a)]);
    }

    #[tokio::test]
    async fn a_full_queue_makes_room_for_whoever_has_less_in_it() {
        let (a, b) = (Listener(1), known(1, 1));
        let order = order(&Turns::new(1, 3), &[a, a, a, a, b, b]).await;
        assert_eq!(order, [Err(a), Err(a), Err(b), Ok(a), Ok(b), Ok(a)]);
    }

    #[tokio::test]
    async fn x07_many_names_of_one_principal_have_one_turn_in_each_round() {
        let (a, b, c, victim) = (known(1, 1), known(1, 2), known(1, 3), known(2, 1));
        let order = order(&Turns::new(1, 8), &[a, b, c, victim, victim]).await;
        assert_eq!(order, [Ok(a), Ok(victim), Ok(b), Ok(victim), Ok(c)]);
    }

    #[tokio::test]
    async fn x07_a_full_queue_makes_room_for_another_principal_whatever_its_agents_are_called() {
        let names: Vec<_> = (0..4).map(|agent| known(1, agent)).collect();
        let victim = known(2, 1);
        let order = order(&Turns::new(1, 4), &[&*names, &[victim, victim]].concat()).await;
        assert_eq!(order.iter().filter(|one| **one == Ok(victim)).count(), 2, "{order:?}");
        assert_eq!(order.iter().filter(|one| one.is_err()).count(), 2, "{order:?}");
    }

    #[tokio::test]
    async fn x07_slow_calls_of_one_leave_slots_for_the_next() {
        let turns = Turns::new(128, 256);
        let mut held = Vec::new();
        for (caller, share) in [(known(1, 1), 96), (known(1, 2), 16), (known(2, 1), 16)] {
            for _ in 0..share {
                held.push(turns.take(caller).await.unwrap());
            }
            let mut waits = pin!(turns.take(caller));
            assert!(is_pending(&mut waits).await, "{caller:?} has its share");
        }
        // A slot that its own caller may not have goes to somebody who may.
        let (mut own, mut other) = (pin!(turns.take(known(1, 2))), pin!(turns.take(known(3, 1))));
        assert!(is_pending(&mut own).await && is_pending(&mut other).await);
        drop(held.pop());
        drop(other.await.unwrap());
        assert!(is_pending(&mut own).await, "its principal has its share");
        drop(held);
        drop(own.await.unwrap());
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
        assert_eq!((book.taken, book.waiting, book.groups.len(), book.agents.len()), (0, 0, 0, 0));
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
