//! One budget of bytes for everything that others make the process keep: bodies that are coming in, calls on their way, answers that
//! servers have not finished or agents have not read, streams that can be resumed, results that were cut.
//!
//! Three eighths of the memory that the gateway may use are for this and its reserve. The rest is for the sessions themselves, the program, lines and
//! what they read, the servers' lists (if these take more, that is taken off), and what the allocator cannot give back.
//!
//! Everything that agents make us keep has a bound of its own, and many agents within their bounds are still more than a machine has. So all of them
//! draw on this. Within the budget that is one atomic addition. Beyond it somebody gives way: first requests of which only the beginning
//! has come, then what is kept for convenience, then what nobody reads, then what has not all come; of those what does not move, then the largest, by whom it
//! is for and then by connection. What is small never gives way, and a call that a server has is nobody's victim.
//!
//! So it can be used up with nobody left who could give way. Beside it there is a reserve for small requests alone.

mod limit;
mod reading;
mod reserve;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use limit::of_this_machine;
use reserve::Reserve;

/// A request that weighs less can have some of the reserve.
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
    /// The beginning of a request, of whom nobody knows yet who sends it.
    Head,
    /// The whole of a result that was cut, for whoever wants to read on.
    Result,
    /// What was said on a stream, for whoever comes back for it.
    Tape,
    /// An answer that its agent has not read.
    Answer,
    /// A message that has not all come.
    Body,
    /// A message that a server has not finished sending.
    Reading,
    /// A message that was taken. It never gives way.
    Call,
}

impl Class {
    /// What weighs less is counted, and is not worth looking for. Of answers each connection has one account, and there are thousands.
    const fn small(self) -> usize {
        match self {
            Self::Head | Self::Answer | Self::Result => SMALL / 16,
            _ => SMALL,
        }
    }

    /// Those that give way.
    const GIVE_WAY: [Self; 6] =
        [Self::Head, Self::Result, Self::Tape, Self::Answer, Self::Body, Self::Reading];

    const fn name(self) -> &'static str {
        match self {
            Self::Head => "unfinished request headers",
            Self::Result => "kept results",
            Self::Tape => "stored stream events",
            Self::Answer => "unread responses",
            Self::Body => "unfinished requests",
            Self::Reading => "unfinished responses",
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
    /// What of that is for messages that servers have not finished.
    reading: AtomicUsize,
    /// How much was given back since somebody looked.
    released: AtomicUsize,
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
        let (limit, used, reading) = (AtomicUsize::new(whole), AtomicUsize::new(0), AtomicUsize::new(0));
        let reserve = Reserve::new(whole / RESERVE);
        let released = AtomicUsize::new(0);
        Self(Arc::new(Inner { whole, limit, used, reading, released, reserve, book: Mutex::default() }))
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

    /// What there is of it in all.
    pub(crate) fn whole(&self) -> usize {
        self.0.whole
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
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed) + self.0.reserve.used()
    }

    /// How many bytes servers have not finished.
    fn reading(&self) -> usize {
        self.0.reading.load(Ordering::Relaxed)
    }

    /// So many bytes more, if there is room or can be made.
    fn draw(&self, bytes: usize, class: Class, owner: Owner, own: usize) -> Result<(), OverBudget> {
        self.count(bytes, class);
        let made = if class == Class::Reading {
            // Room for the answer to a call that was made is kept: only beyond it others of these are asked.
            let _ = self.make_room(class, owner, own, &Class::GIVE_WAY[..5], || self.is_within());
            self.below_half(owner, own)
        } else {
            let _ = self.below_half(owner, 0);
            self.make_room(class, owner, own, &Class::GIVE_WAY, || self.is_within())
        };
        if made.is_err() {
            self.uncount(bytes, class);
        }
        made
    }

    /// When there is no room, what servers have not finished has half of the budget at most; and that much in any case.
    fn below_half(&self, owner: Owner, own: usize) -> Result<(), OverBudget> {
        let enough = || self.is_within() || self.reading() <= self.limit() / 2;
        self.make_room(Class::Reading, owner, own, &[Class::Reading], enough)
    }

    /// Whether so much was given back since this was last so that the allocator may keep a good deal of it.
    pub(crate) fn gave_back_much(&self) -> bool {
        let much = self.0.released.load(Ordering::Relaxed) > self.0.whole / 4;
        if much {
            self.0.released.store(0, Ordering::Relaxed);
        }
        much
    }

    fn count(&self, bytes: usize, class: Class) {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        if class == Class::Reading {
            self.0.reading.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn uncount(&self, bytes: usize, class: Class) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        self.0.released.fetch_add(bytes, Ordering::Relaxed);
        if class == Class::Reading {
            self.0.reading.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn is_within(&self) -> bool {
        self.0.used.load(Ordering::Relaxed) <= self.limit()
    }

    /// Makes room among these until there is enough.
    fn make_room(
        &self,
        class: Class,
        owner: Owner,
        own: usize,
        among: &[Class],
        is_enough: impl Fn() -> bool,
    ) -> Result<(), OverBudget> {
        if is_enough() {
            return Ok(());
        }
        // Whoever keeps something all the same has a new number for it, and is not asked again: there is an end to this.
        let newest = self.book().last;
        while !is_enough() {
            let mut book = self.book();
            let number = book.gives_way(class, owner, own, newest, among).ok_or(OverBudget)?;
            let Some(entry) = book.large.remove(&number) else { return Err(OverBudget) };
            entry.gone.store(true, Ordering::Release);
            self.uncount(entry.bytes, entry.class);
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
    fn gives_way(&self, class: Class, owner: Owner, own: usize, newest: u64, among: &[Class]) -> Option<u64> {
        for &candidate in among {
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
            // What an agent is taking or sending is not given up for what a server has only begun.
            if class == Class::Reading && matches!(candidate, Class::Answer | Class::Body) {
                continue;
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
            // And of one server's messages the one that has come furthest goes on.
            let own_server = class == Class::Reading && largest.principal == owner.principal;
            if candidate == class && (largest == owner || own_server || !has_less) {
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

    /// Some of it has come.
    pub(crate) fn touch(&mut self) -> Result<(), OverBudget> {
        if self.is_gone() { Err(OverBudget) } else { self.note(0) }
    }

    /// So many more, whether there is room or not: whoever else has most of what may give way makes it. Whether that was enough.
    pub(crate) fn force(&mut self, bytes: usize) -> Result<(), OverBudget> {
        if std::mem::take(&mut self.reserved) {
            self.budget.0.used.fetch_add(self.bytes, Ordering::Relaxed);
            self.budget.0.reserve.give_back(self.owner.principal, self.bytes);
        }
        self.budget.count(bytes, self.class);
        let enough = || self.budget.is_within();
        let made = self.budget.make_room(self.class, self.owner, 0, &Class::GIVE_WAY, enough);
        if self.note(bytes).is_err() {
            // It was told to give way, and keeps this alone.
            self.anew(bytes);
        }
        made
    }

    /// So many and no others, whether there is room or not. Nobody gives way for what was kept before.
    pub(crate) fn anew(&mut self, bytes: usize) {
        *self = self.budget.hold(self.class, self.owner, self.holder.clone());
        self.budget.count(bytes, self.class);
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
        let Some(entry) = book.large.get_mut(number) else { return };
        (entry.bytes, entry.moved) = (entry.bytes - bytes, Instant::now());
        self.bytes -= bytes;
        self.budget.uncount(bytes, self.class);
        if self.bytes == 0 {
            book.large.remove(number);
            drop(book);
            self.large = None;
        }
    }

    /// Bytes are not counted any more, where they were.
    fn give_back(&self, bytes: usize) {
        if self.reserved {
            self.budget.0.reserve.give_back(self.owner.principal, bytes);
        } else {
            self.budget.uncount(bytes, self.class);
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
            None if grown <= self.class.small() => {}
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
                    self.budget.uncount(bytes, self.class);
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
