//! What a generation offers, and what it was asked to keep doing: read and asked anew whenever there is a new one.

use std::sync::Arc;
use std::time::Duration;

use linetender_core::Generation;
use linetender_wire::handshake::Era;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{LineEvent, News, Running};
use crate::basics::kind::Kind;
use crate::catalogue::{Catalogue, Change, Reading};
use crate::generation::{ListsHeard, Live, listen};

/// How often a generation's lists are read as soon as it says that they changed; if it says so more often than once in so
/// long, that is how often they are read.
const READ_AT_ONCE: u32 = 3;
const READ_GAP: Duration = Duration::from_secs(1);

/// A list that could not be read is tried again after this long, and then after twice as long each time, so often. After
/// that it is read when the server says that it changed.
const READ_AGAIN: Duration = Duration::from_secs(1);
const READ_TRIES: u32 = 8;

/// Whether a generation's lists are being read: once at a time, however often the server says that they changed.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Lists {
    Quiet,
    Reading,
    /// They changed while they were being read.
    Stale,
}

impl Running {
    /// Callers asked the last generation to keep doing something: this one is asked too.
    pub(super) fn restore(&mut self, generation: Generation, link: &Arc<Live>) {
        let (wishes, hello) = (Arc::clone(&self.tender.wishes), self.tender.server.hello.clone());
        let seed = self.seed ^ generation.number();
        let Some(current) = self.current(generation) else { return };
        let era = link.era();
        match era {
            Era::Legacy => {
                let link = Arc::clone(link);
                drop(current.tasks.spawn(async move { wishes.tell(&link).await }));
            }
            Era::Modern => drop(current.tasks.spawn(listen(Arc::clone(link), wishes, hello.meta(), seed))),
        }
        self.remembered = Some(era);
        self.tender.greetings.send_replace(Some(Arc::clone(&link.greeting)));
    }

    /// The server said something of its lists, or may have.
    pub(super) fn lists_heard(&mut self, generation: Generation, heard: ListsHeard) {
        if !heard.changed.is_empty() {
            self.read_lists(generation, heard.changed);
        }
        if !heard.gap {
            return;
        }
        let news = self.news.0.clone();
        let Some(current) = self.current(generation) else { return };
        if current.gap.as_ref().is_none_or(AbortHandle::is_finished) {
            // A proxy may cut streams every minute: what changed is looked at when a caller comes.
            let ledger = Arc::clone(&current.ledger);
            current.gap = Some(current.tasks.spawn(async move {
                ledger.usage.next().await;
                let _ = news.send(News::Used(generation)).await;
            }));
        }
    }

    /// A caller comes after the server may have said something: lists of which it would have said that they changed are read.
    pub(super) fn used_after_gap(&mut self, generation: Generation) {
        let Some(current) = self.current(generation) else { return };
        let live = current.connection.live();
        let tells: Vec<Kind> = live.map(|live| live.tells_of().collect()).unwrap_or_default();
        if !tells.is_empty() {
            self.read_lists(generation, tells);
        }
    }

    /// Reads these lists, and those that are still wanted.
    pub(super) fn read_lists(&mut self, generation: Generation, kinds: impl IntoIterator<Item = Kind>) {
        let server = Arc::clone(&self.tender.server);
        let before = Arc::clone(&self.tender.catalogue.borrow());
        let news = self.news.0.clone();
        let keys = self.keys.as_ref().map(|keys| Arc::clone(&keys.ring));
        let Some(current) = self.current(generation) else { return };
        let Some(link) = current.connection.live().cloned() else { return };
        current.wanted.extend(kinds);
        if current.lists != Lists::Quiet {
            current.lists = Lists::Stale;
            return;
        }
        current.lists = Lists::Reading;
        let wanted = std::mem::take(&mut current.wanted);
        let now = Instant::now();
        let paid = current.read_until.map_or(now, |until| until.max(now)) + READ_GAP;
        current.read_until = Some(paid);
        let wait = (paid - now).saturating_sub(READ_GAP * READ_AT_ONCE);
        current.tasks.spawn(async move {
            // A server may say that its lists changed whenever they are read. Even no time at all would be a tick of the timer.
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let meta = (link.era() == Era::Modern).then(|| server.hello.meta().to_string());
            let limit = server.policy.settings().dial.handshake;
            let tell = |some: Reading| {
                let (news, some) = (news.clone(), News::SomeLists(generation, Box::new(some)));
                async move { drop(news.send(some).await) }
            };
            let read = Reading::of((&server.name, &link), &wanted, keys, meta, before, limit, tell).await;
            let _ = news.send(News::Lists(generation, read.map(Box::new))).await;
        });
    }

    /// Somebody looks at lists whose time is over. Those that are being read are new soon.
    pub(super) fn lists_expired(&mut self) {
        let due = self.tender.catalogue.borrow().due();
        let quiet = self.current.as_ref().filter(|current| current.lists == Lists::Quiet);
        if let Some(generation) = quiet.map(|current| current.generation).filter(|_| !due.is_empty()) {
            self.read_lists(generation, due);
        }
    }

    /// The lists of a generation have been read, or could not be. Whoever read them has compared them too.
    pub(super) fn lists_read(&mut self, generation: Generation, read: Option<Box<Reading>>) {
        let Some(current) = self.current(generation) else { return };
        let stale = std::mem::replace(&mut current.lists, Lists::Quiet) == Lists::Stale;
        let whole = read.as_ref().is_some_and(|read| read.catalogue.is_given());
        if whole {
            current.unread = 0;
        }
        current.wanted.extend(read.iter().flat_map(|read| read.catalogue.missing()));
        if let Some(read) = read {
            self.lists_given(generation, *read, stale);
        }
        if stale {
            self.read_lists(generation, []);
        } else if !whole {
            self.read_later(generation);
        }
    }

    /// What a generation gave of its lists.
    pub(super) fn lists_given(&self, generation: Generation, read: Reading, stale: bool) {
        let Reading { catalogue, changes, mirrored } = read;
        if self.current.as_ref().is_none_or(|current| current.generation != generation) {
            return;
        }
        if let Some(mirrored) = mirrored
            && let Some(link) = self.link(generation).filter(|link| link.reach.has_exchanges())
        {
            link.reach.mirror(mirrored);
        }
        self.new_catalogue(catalogue, changes, stale);
    }

    fn read_later(&mut self, generation: Generation) {
        let news = self.news.0.clone();
        let Some(current) = self.current(generation) else { return };
        if current.unread >= READ_TRIES {
            return;
        }
        let wait = READ_AGAIN * (1 << current.unread);
        current.unread += 1;
        current.tasks.spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = news.send(News::ListsAgain(generation)).await;
        });
    }

    fn new_catalogue(&self, catalogue: Catalogue, changes: Vec<(Kind, Change)>, stale: bool) {
        let known = self.tender.catalogue.borrow().is_known();
        let stale = stale || self.keys.as_ref().is_some_and(|keys| keys.ring.agents_knew_of_nothing());
        let changes = match (known, stale) {
            (true, _) => changes,
            // The first reading is no change: nobody had another.
            (false, false) => Vec::new(),
            // But somebody may have: the server says that they changed, and agents read them too.
            (false, true) => catalogue.kinds().map(|kind| (kind, Change::default())).collect(),
        };
        self.tender.catalogue.send_replace(Arc::new(catalogue));
        for (kind, change) in changes {
            let _ = self.tender.events.send(LineEvent::Changed(kind, Arc::new(change)));
        }
    }
}
