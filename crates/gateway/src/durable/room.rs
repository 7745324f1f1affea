//! How many calls are under way and remembered at once, and of whom. Nobody's records give way to somebody else's: a call that was forgotten
//! could run twice. Who would have more than is left for others is refused.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use linetender_core::lease::Revision;
use tokio::time::Instant;

use crate::budget::Held;

/// So much of something, for all principals.
#[derive(Debug)]
pub(super) struct Shares {
    whole: usize,
    all: usize,
    by: HashMap<u64, usize>,
}

impl Shares {
    pub(super) fn new(whole: usize) -> Self {
        Self { whole, all: 0, by: HashMap::new() }
    }

    /// Takes some, if a principal then has no more than is left: so whoever comes next gets some too.
    pub(super) fn take(&mut self, principal: u64, much: usize) -> bool {
        let (own, all) = (self.by.get(&principal).copied().unwrap_or_default() + much, self.all + much);
        let fits = self.whole.checked_sub(all).is_some_and(|left| own <= left);
        if fits {
            self.all = all;
            self.by.insert(principal, own);
        }
        fits
    }

    pub(super) fn give_back(&mut self, principal: u64, much: usize) {
        self.all = self.all.saturating_sub(much);
        if let Some(own) = self.by.get_mut(&principal) {
            *own = own.saturating_sub(much);
            if *own == 0 {
                self.by.remove(&principal);
            }
        }
    }
}

/// The records that this node has begun, and for how long they are to be kept.
pub(super) struct Room {
    records: HashMap<String, Record>,
    shares: Shares,
    bytes: Shares,
    /// Those of calls that ended, by when their time is over.
    over: BTreeSet<(Instant, String)>,
}

struct Record {
    principal: u64,
    /// When it is over, and what is noted then.
    until: Option<(Instant, Option<Revision>)>,
    memory: Memory,
}

/// What a record takes of this process's memory.
#[derive(Default)]
pub(super) struct Memory {
    bytes: usize,
    /// The same bytes of the gateway's budget.
    held: Option<Held>,
}

impl Room {
    /// For so many records, with so many bytes of memory.
    pub(super) fn new(records: usize, bytes: usize) -> Self {
        let (shares, bytes) = (Shares::new(records), Shares::new(bytes));
        Self { records: HashMap::new(), shares, bytes, over: BTreeSet::new() }
    }

    /// A record is begun. Whether it has a new place; `None` if there is none for it.
    pub(super) fn enter(&mut self, name: &str, principal: u64) -> Option<bool> {
        if self.records.contains_key(name) {
            return Some(false);
        }
        self.shares.take(principal, 1).then(|| {
            let record = Record { principal, until: None, memory: Memory::default() };
            self.records.insert(name.to_owned(), record);
            true
        })
    }

    /// Memory for a record, if there is some left for this principal.
    pub(super) fn memory(&mut self, principal: u64, mut held: Held, bytes: usize) -> Option<Memory> {
        if !self.bytes.take(principal, bytes) {
            return None;
        }
        if held.grow(bytes).is_err() {
            self.bytes.give_back(principal, bytes);
            return None;
        }
        Some(Memory { bytes, held: Some(held) })
    }

    /// The call of a record ended: it is kept for so long.
    pub(super) fn keep(
        &mut self,
        name: &str,
        principal: u64,
        (kept, noted): (Duration, Option<Revision>),
        memory: Memory,
    ) {
        if self.records.contains_key(name) {
            self.leave(name);
        }
        // It is there, whether there is room for it or not.
        self.shares.all += 1;
        *self.shares.by.entry(principal).or_default() += 1;
        let until = Instant::now() + kept;
        self.records.insert(name.to_owned(), Record { principal, until: Some((until, noted)), memory });
        self.over.insert((until, name.to_owned()));
    }

    /// It is not this node's, or need not be kept.
    pub(super) fn leave(&mut self, name: &str) {
        let Some(Record { principal, until, memory }) = self.records.remove(name) else { return };
        if let Some((until, _)) = until {
            self.over.remove(&(until, name.to_owned()));
        }
        self.shares.give_back(principal, 1);
        self.bytes.give_back(principal, memory.bytes);
        drop(memory.held);
    }

    /// One whose time is over, and is kept no longer; what was noted of it last.
    pub(super) fn next_over(&mut self) -> Option<(String, Option<Revision>)> {
        let (until, name) = self.over.first()?;
        if *until > Instant::now() {
            return None;
        }
        let name = name.clone();
        let noted = self.records.get(&name).and_then(|record| record.until?.1);
        self.leave(&name);
        Some((name, noted))
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, Room};
    use crate::budget::{Budget, Class, Held, Owner};
    use linetender_core::lease::Revision;
    use std::sync::{Arc, Weak};
    use std::time::Duration;

    struct Nobody;

    impl crate::budget::GiveWay for Nobody {
        fn give_way(&self) {}
    }

    fn held(budget: &Budget) -> Held {
        let nobody: Weak<Nobody> = Arc::downgrade(&Arc::new(Nobody));
        budget.hold(Class::Call, Owner::default(), nobody)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_begins_many_is_refused_and_others_are_not() {
        let mut room = Room::new(8, 100);
        let hers = (0..8).filter(|at| room.enter(&format!("hers {at}"), 1).is_some()).count();
        assert_eq!(hers, 4);
        assert_eq!(room.enter("hers 0", 1), Some(false), "it has its place already");
        assert_eq!((room.enter("his", 2), room.enter("his other", 2)), (Some(true), Some(true)));
        assert_eq!(room.enter("his third", 2), None);
        room.keep("his", 2, (Duration::from_secs(60), Some(Revision(7))), Memory::default());
        room.leave("hers 1");
        assert_eq!((room.next_over(), room.records.len()), (None, 5));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(room.next_over(), Some(("his".to_owned(), Some(Revision(7)))));
        assert_eq!(room.next_over(), None);
        for name in ["hers 0", "hers 2", "hers 3", "his other", "never"] {
            room.leave(name);
        }
        assert!(room.shares.by.is_empty() && room.shares.all == 0 && room.over.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_given_back_with_the_record() {
        let budget = Budget::new(1000);
        let mut room = Room::new(8, 100);
        let memory = room.memory(1, held(&budget), 40).unwrap();
        assert!(room.memory(1, held(&budget), 20).is_none(), "it would have more than is left");
        room.keep("a", 1, (Duration::from_secs(60), None), memory);
        let memory = room.memory(2, held(&budget), 30).unwrap();
        room.keep("b", 2, (Duration::from_secs(120), None), memory);
        // It ended anew: what was kept before is not any more.
        room.keep("a", 1, (Duration::from_secs(60), None), Memory::default());
        assert_eq!(room.bytes.all, 30);
        tokio::time::advance(Duration::from_secs(121)).await;
        let over = [room.next_over(), room.next_over()].map(|over| over.unwrap().0);
        assert_eq!(over, ["a", "b"]);
        assert!(room.bytes.all == 0 && room.shares.all == 0 && room.next_over().is_none());
        assert!(room.memory(1, held(&Budget::new(10)), 40).is_none(), "the gateway has none left");
        assert_eq!(room.bytes.all, 0);
    }
}
