//! One budget of bytes for everything that agents make the process keep: bodies that are coming in, answers that are not read,
//! streams that can be resumed.
//!
//! Three eighths of the memory that the gateway may use are for this and its reserve. The rest is for the sessions themselves, the program, lines and
//! what they read, the servers' lists (if these take more, that is taken off), and what the allocator cannot give back.
//!
//! Everything that agents make us keep has a bound of its own, and many agents within their bounds are still more than a machine has. So all of them
//! draw on this. Within the budget that is one atomic addition. Beyond it somebody gives way: first what is kept for
//! convenience, then what nobody reads, then what has not all come; of those what does not move, then the largest, by whom it
//! is for and then by connection. What is small never gives way, and a call that a server has is nobody's victim.
//!
//! So it can be used up with nobody left who could give way. Beside it there is a reserve for small requests alone.

mod limit;
mod reserve;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use limit::of_this_machine;
use reserve::Reserve;

/// What weighs less is counted, and is not worth looking for. A request that weighs less can have some of the reserve.
const SMALL: usize = 64 * 1024;

/// What has not moved for so long gives way before what does, however small it is.
const STALLED: Duration = Duration::from_millis(500);

/// The reserve is so many times smaller than the budget, and beside it.
const RESERVE: usize = 8;

/// How often it is told that something gave way.
const TOLD: Duration = Duration::from_secs(10);

/// What bytes are kept for, in the order in which it gives way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Class {
    /// What was said on a stream, for whoever comes back for it.
    Tape,
    /// An answer that its agent has not read.
    Answer,
    /// A message that has not all come.
    Body,
    /// A message that was taken. It never gives way.
    Call,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Tape => "stored stream events",
            Self::Answer => "unread responses",
            Self::Body => "unfinished requests",
            Self::Call => "calls",
        }
    }
}

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Owner {
    pub(crate) principal: u64,
    /// The connection or session.
    pub(crate) group: u64,
}

/// Something that can let go of what it keeps. It is told once, and not waited for.
pub(crate) trait GiveWay: Send + Sync {
    fn give_way(&self);
}

/// The budget. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Budget(Arc<Inner>);

struct Inner {
    /// What there is if the servers' lists are of an ordinary size.
    whole: usize,
    limit: AtomicUsize,
    used: AtomicUsize,
    reserve: Reserve,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    large: HashMap<u64, Entry>,
    last: u64,
    /// What gave way since it was last told, and when that was.
    gave_way: HashMap<Class, u64>,
    told: Option<Instant>,
}

struct Entry {
    class: Class,
    owner: Owner,
    bytes: usize,
    moved: Instant,
    gone: Arc<AtomicBool>,
    holder: Weak<dyn GiveWay>,
}

/// Bytes that are kept. Dropped, they are not any more.
pub(crate) struct Held {
    budget: Budget,
    class: Class,
    owner: Owner,
    bytes: usize,
    /// Whether all of them are of the reserve.
    reserved: bool,
    /// Its number in the book, if it is large, and whether it had to give way.
    large: Option<(u64, Arc<AtomicBool>)>,
    holder: Weak<dyn GiveWay>,
}

/// There is no room, and nobody who should give way before whoever asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OverBudget;

impl Budget {
    /// One of so many bytes, and a reserve of an eighth of that beside it.
    pub(crate) fn new(whole: usize) -> Self {
        let (limit, used) = (AtomicUsize::new(whole), AtomicUsize::new(0));
        let reserve = Reserve::new(whole / RESERVE);
        Self(Arc::new(Inner { whole, limit, used, reserve, book: Mutex::default() }))
    }

    /// The servers' lists take so many bytes. They cannot give way, so what they take beyond an ordinary size is taken off the
    /// budget; a quarter of it is left to agents whatever servers do.
    pub(crate) fn beside_lists(&self, bytes: usize) {
        let whole = self.0.whole;
        let beyond = bytes.saturating_sub(whole / 2);
        if beyond > 0 {
            tracing::warn!(
                bytes,
                "the servers' lists are so large that less memory is left for agents (gateway.memory)"
            );
        }
        self.0.limit.store(whole - beyond.min(whole / 4 * 3), Ordering::Relaxed);
    }

    fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing yet, of this class. `holder` is told when it has to give way.
    pub(crate) fn hold(&self, class: Class, owner: Owner, holder: Weak<dyn GiveWay>) -> Held {
        Held { budget: self.clone(), class, owner, bytes: 0, reserved: false, large: None, holder }
    }

    /// How many bytes are kept.
    #[cfg(test)]
    fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed) + self.0.reserve.used()
    }

    /// So many bytes more, if there is room or can be made.
    fn draw(&self, bytes: usize, class: Class, owner: Owner, own: usize) -> Result<(), OverBudget> {
        let used = self.0.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.limit()
            && let Err(over) = self.make_room(class, owner, own)
        {
            self.0.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(over);
        }
        Ok(())
    }

    /// Makes room until what is kept is within the budget.
    fn make_room(&self, class: Class, owner: Owner, own: usize) -> Result<(), OverBudget> {
        // Whoever keeps something all the same has a new number for it, and is not asked again: there is an end to this.
        let newest = self.book().last;
        while self.0.used.load(Ordering::Relaxed) > self.limit() {
            let mut book = self.book();
            let number = book.gives_way(class, owner, own, newest).ok_or(OverBudget)?;
            let Some(entry) = book.large.remove(&number) else { return Err(OverBudget) };
            entry.gone.store(true, Ordering::Release);
            self.0.used.fetch_sub(entry.bytes, Ordering::Relaxed);
            book.tell(entry.class, self.limit());
            drop(book);
            // It may keep something all the same, and comes back to the book for that.
            if let Some(holder) = entry.holder.upgrade() {
                holder.give_way();
            }
        }
        Ok(())
    }
}

impl Book {
    /// Who gives way to somebody of this class who then has so much, of those up to this number.
    fn gives_way(&self, class: Class, owner: Owner, own: usize, newest: u64) -> Option<u64> {
        for candidate in [Class::Tape, Class::Answer, Class::Body] {
            if candidate > class {
                break;
            }
            let candidates =
                || self.large.iter().filter(|(number, entry)| **number <= newest && entry.class == candidate);
            let is_stalled = |entry: &Entry| entry.owner != owner && entry.moved.elapsed() >= STALLED;
            let stalled = candidates().filter(|(_, entry)| is_stalled(entry));
            if let Some((number, _)) = stalled.max_by_key(|(_, entry)| entry.bytes) {
                return Some(*number);
            }
            let mut principals: HashMap<u64, usize> = HashMap::new();
            let mut groups: HashMap<Owner, usize> = HashMap::new();
            for (_, entry) in candidates() {
                *principals.entry(entry.owner.principal).or_default() += entry.bytes;
                *groups.entry(entry.owner).or_default() += entry.bytes;
            }
            let largest = groups.iter().max_by_key(|(of, bytes)| (principals[&of.principal], **bytes));
            let Some((&largest, &bytes)) = largest else { continue };
            // Among equals nobody gives way to somebody who has as much.
            let mine = principals.get(&owner.principal).copied().unwrap_or_default();
            let theirs = principals[&largest.principal];
            let has_less = own == 0 || (mine, own) < (theirs, bytes);
            if candidate == class && (largest == owner || !has_less) {
                return None;
            }
            let entries = candidates().filter(|(_, entry)| entry.owner == largest);
            return entries.max_by_key(|(_, entry)| entry.bytes).map(|(number, _)| *number);
        }
        None
    }

    fn tell(&mut self, class: Class, limit: usize) {
        *self.gave_way.entry(class).or_default() += 1;
        if self.told.is_none_or(|at| at.elapsed() >= TOLD) {
            self.told = Some(Instant::now());
            for (class, count) in self.gave_way.drain() {
                tracing::warn!(
                    limit,
                    dropped = count,
                    what = class.name(),
                    "memory budget reached (gateway.memory)"
                );
            }
        }
    }
}

impl Held {
    /// So many more.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if self.is_gone() {
            return Err(OverBudget);
        }
        let (own, grown) = (self.bytes, self.bytes + bytes);
        let Inner { used, reserve, .. } = &*self.budget.0;
        let is_small = self.class == Class::Body && self.large.is_none() && grown <= SMALL;
        if self.reserved && is_small {
            if !reserve.take(self.owner.principal, bytes) {
                return Err(OverBudget);
            }
            self.bytes = grown;
            return Ok(());
        }
        // What was of the reserve is not any more when it is too large for it.
        let wants = if self.reserved { grown } else { bytes };
        match self.budget.draw(wants, self.class, self.owner, grown) {
            Ok(()) => {
                if std::mem::take(&mut self.reserved) {
                    reserve.give_back(self.owner.principal, own);
                }
                self.note(bytes)
            }
            Err(_) if is_small && reserve.take(self.owner.principal, grown) => {
                used.fetch_sub(own, Ordering::Relaxed);
                (self.reserved, self.bytes) = (true, grown);
                Ok(())
            }
            Err(over) => Err(over),
        }
    }

    /// So many more, whether there is room or not: whoever else has most of what may give way makes it.
    pub(crate) fn force(&mut self, bytes: usize) {
        if std::mem::take(&mut self.reserved) {
            self.budget.0.used.fetch_add(self.bytes, Ordering::Relaxed);
            self.budget.0.reserve.give_back(self.owner.principal, self.bytes);
        }
        let used = self.budget.0.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used > self.budget.limit() {
            let _ = self.budget.make_room(self.class, self.owner, 0);
        }
        if self.note(bytes).is_err() {
            // It was told to give way, and keeps this alone.
            self.anew(bytes);
        }
    }

    /// So many and no others, whether there is room or not. Nobody gives way for what was kept before.
    pub(crate) fn anew(&mut self, bytes: usize) {
        *self = self.budget.hold(self.class, self.owner, self.holder.clone());
        self.budget.0.used.fetch_add(bytes, Ordering::Relaxed);
        // It is in no book yet, so nothing can have told it to give way.
        let _ = self.note(bytes);
    }

    /// So many less.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let Some((number, _)) = &self.large else {
            self.bytes -= bytes;
            self.give_back(bytes);
            return;
        };
        let mut book = self.budget.book();
        if let Some(entry) = book.large.get_mut(number) {
            (entry.bytes, entry.moved) = (entry.bytes - bytes, Instant::now());
            self.bytes -= bytes;
            self.budget.0.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes are not counted any more, where they were.
    fn give_back(&self, bytes: usize) {
        if self.reserved {
            self.budget.0.reserve.give_back(self.owner.principal, bytes);
        } else {
            self.budget.0.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub(crate) fn bytes(&self) -> usize {
        if self.is_gone() { 0 } else { self.bytes }
    }

    /// It is of this class from now on.
    pub(crate) fn becomes(&mut self, class: Class) {
        self.class = class;
        if let Some((number, _)) = &self.large
            && let Some(entry) = self.budget.book().large.get_mut(number)
        {
            entry.class = class;
        }
    }

    /// Whether it was told to give way. What it keeps is not counted any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.large.as_ref().is_some_and(|(_, gone)| gone.load(Ordering::Acquire))
    }

    /// Bytes that were counted become its own.
    fn note(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let grown = self.bytes + bytes;
        match &self.large {
            None if grown <= SMALL => {}
            None => {
                let mut book = self.budget.book();
                book.last += 1;
                let (number, gone) = (book.last, Arc::<AtomicBool>::default());
                self.large = Some((number, Arc::clone(&gone)));
                let (class, owner, holder) = (self.class, self.owner, self.holder.clone());
                book.large.insert(
                    number,
                    Entry { class, owner, bytes: grown, moved: Instant::now(), gone, holder },
                );
            }
            Some((number, _)) => {
                let mut book = self.budget.book();
                let Some(entry) = book.large.get_mut(number) else {
                    self.budget.0.used.fetch_sub(bytes, Ordering::Relaxed);
                    return Err(OverBudget);
                };
                (entry.bytes, entry.moved) = (grown, Instant::now());
            }
        }
        self.bytes = grown;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What gave way was taken off when it did.
        let counted = match &self.large {
            None => true,
            Some((number, _)) => self.budget.book().large.remove(number).is_some(),
        };
        if counted {
            self.give_back(self.bytes);
        }
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("class", &self.class).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Numbers for groups: a connection or a session each.
pub(crate) fn next_group() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Class, GiveWay, Held, OverBudget, Owner, SMALL};
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Weak};

    const MIB: usize = 1024 * 1024;

    #[derive(Default)]
    struct Told(AtomicUsize);

    impl GiveWay for Told {
        fn give_way(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn owner(principal: u64, group: u64) -> Owner {
        Owner { principal, group }
    }

    fn held(budget: &Budget, class: Class, owner: Owner, bytes: usize) -> (Held, Arc<Told>) {
        let told = Arc::<Told>::default();
        let holder: Weak<Told> = Arc::downgrade(&told);
        let mut held = budget.hold(class, owner, holder);
        held.grow(bytes).unwrap();
        (held, told)
    }

    #[test]
    fn o09_what_is_kept_for_convenience_gives_way_first_then_what_nobody_reads() {
        let budget = Budget::new(10 * MIB);
        let (tape, tape_told) = held(&budget, Class::Tape, owner(1, 1), 4 * MIB);
        let (answer, answer_told) = held(&budget, Class::Answer, owner(1, 2), 5 * MIB);
        let (mut body, _) = held(&budget, Class::Body, owner(1, 3), MIB);
        body.grow(MIB).unwrap();
        assert!(tape.is_gone() && !answer.is_gone() && tape_told.0.load(Ordering::Relaxed) == 1);
        body.grow(4 * MIB).unwrap();
        assert!(answer.is_gone() && answer_told.0.load(Ordering::Relaxed) == 1);
        body.grow(4 * MIB).unwrap();
        assert_eq!(body.grow(1), Err(OverBudget), "there is nobody else");
        body.becomes(Class::Call);
        let mut next = budget.hold(Class::Body, owner(2, 9), Weak::<Told>::new());
        assert_eq!(next.grow(SMALL + 1), Err(OverBudget), "what was taken is nobody's victim");
        drop((body, tape, answer));
        assert_eq!(budget.used(), 0);
        next.grow(10 * MIB).unwrap();
    }

    #[test]
    fn o09_the_largest_gives_way_by_whom_it_is_for_and_never_to_somebody_who_has_as_much() {
        let budget = Budget::new(10 * MIB);
        let (mut one, _) = held(&budget, Class::Body, owner(1, 1), 3 * MIB);
        let (two, _) = held(&budget, Class::Body, owner(1, 2), 3 * MIB);
        let (three, _) = held(&budget, Class::Body, owner(2, 3), 4 * MIB);
        assert_eq!(one.grow(MIB), Err(OverBudget), "its principal has most, and it would have most of that");
        let (four, _) = held(&budget, Class::Body, owner(3, 4), 2 * MIB);
        assert!(three.is_gone() ^ (one.is_gone() || two.is_gone()));
        assert!(!three.is_gone(), "of a principal that has less");
        drop((one, two, three, four));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn x05_a_small_request_gets_through_when_everything_is_used_up() {
        let budget = Budget::new(10 * MIB);
        let mut call = budget.hold(Class::Call, owner(1, 1), Weak::<Told>::new());
        // Beyond the budget, as what is forced can be.
        call.force(30 * MIB);
        let body = |group| budget.hold(Class::Body, owner(1, group), Weak::<Told>::new());
        let mut tape = budget.hold(Class::Tape, owner(1, 2), Weak::<Told>::new());
        assert_eq!(tape.grow(1), Err(OverBudget), "it is for requests");
        let mut small = body(3);
        small.grow(SMALL / 2).unwrap();
        small.grow(SMALL / 2).unwrap();
        assert_eq!(small.grow(1), Err(OverBudget), "it is not small any more");
        small.becomes(Class::Call);
        let others: Vec<_> = (4..)
            .map(|group| {
                let mut other = body(group);
                other.grow(SMALL).map(|()| other)
            })
            .map_while(Result::ok)
            .collect();
        assert_eq!(others.len() + 1, 10 * MIB / 8 / 2 / SMALL, "one principal has half of it");
        budget.hold(Class::Body, owner(2, 1), Weak::<Told>::new()).grow(SMALL).unwrap();
        drop(call);
        // With room again it may grow, out of the reserve.
        let mut grows = others.into_iter().next().unwrap();
        grows.grow(MIB).unwrap();
        assert_eq!((budget.0.reserve.used(), budget.used()), (SMALL, 2 * SMALL + MIB));
        drop((grows, small, tape));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn o09_large_lists_of_servers_leave_less_to_agents_but_never_nothing() {
        let budget = Budget::new(8 * MIB);
        let fits = |bytes| budget.hold(Class::Body, owner(1, 1), Weak::<Told>::new()).grow(bytes).is_ok();
        budget.beside_lists(4 * MIB);
        assert!(fits(8 * MIB), "of an ordinary size");
        budget.beside_lists(7 * MIB);
        assert!(fits(5 * MIB) && !fits(6 * MIB));
        budget.beside_lists(usize::MAX);
        assert!(fits(2 * MIB) && !fits(3 * MIB));
        budget.beside_lists(0);
        assert!(fits(8 * MIB), "the server is gone");
    }

    proptest! {
        #[test]
        fn what_is_dropped_is_not_counted_any_more(steps in proptest::collection::vec((0_u8..4, 0_u64..4, 0_usize..3 * MIB, any::<bool>()), 1..80)) {
            let budget = Budget::new(8 * MIB);
            let mut all: Vec<Held> = Vec::new();
            for (what, group, bytes, odd) in steps {
                let class = [Class::Tape, Class::Answer, Class::Body, Class::Call][usize::from(what)];
                match (odd, all.pop()) {
                    (true, Some(mut last)) => {
                        if last.grow(bytes).is_err() && !last.is_gone() {
                            last.shrink(last.bytes / 2);
                        }
                        all.insert(0, last);
                    }
                    (_, last) => {
                        let mut new = budget.hold(class, owner(group / 2, group), Weak::<Told>::new());
                        if new.grow(bytes).is_err() {
                            new.force(bytes / 4);
                        }
                        all.push(new);
                        all.extend(last.filter(|_| bytes % 3 > 0));
                    }
                }
                let sum: usize = all.iter().filter(|held| !held.is_gone()).map(|held| held.bytes).sum();
                prop_assert_eq!(budget.used(), sum);
            }
            drop(all);
            prop_assert_eq!(budget.used(), 0);
        }
    }
}
