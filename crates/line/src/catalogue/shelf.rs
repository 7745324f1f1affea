//! How long a server's lists are good, in its own words. A server that does not tell of changes says by this when it is to be asked again.
// MCP 2026-07-28, "Caching": `ttlMs` and `cacheScope` on every list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::basics::kind::Kind;

/// What a list is still good for that is being read again, at the most.
const BEING_READ: Duration = Duration::from_secs(1);

/// The longest that is believed.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long each list is good, as of one reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    /// How good each is, and when it is to be read again, if the server does not tell about it.
    lists: BTreeMap<Kind, (Good, Option<Instant>)>,
    /// Whether the tender was asked to read again what is due. Every reading has a shelf of its own.
    asked: Arc<AtomicBool>,
}

/// How long one list is good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Good {
    time: Duration,
    is_public: bool,
}

/// How long a list is good for whoever is shown it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[doc(hidden)] // for linetender's gateway
pub struct Freshness {
    /// In milliseconds, if the server says so.
    pub ttl: Option<u64>,
    /// Whether the server says that it is for one user alone.
    pub is_private: bool,
}

impl Good {
    /// What a page says.
    pub(super) fn of(ttl: Option<f64>, scope: Option<&str>) -> Option<Self> {
        let millis = ttl.filter(|ttl| *ttl >= 0.0)?;
        let longest = LONGEST.as_secs_f64() * 1000.0;
        let time = Duration::from_secs_f64(millis.min(longest) / 1000.0);
        Some(Self { time, is_public: scope == Some("public") })
    }

    /// A list is as good as its worst page.
    pub(super) fn and(self, page: Self) -> Self {
        Self { time: self.time.min(page.time), is_public: self.is_public && page.is_public }
    }
}

impl Shelf {
    /// Of lists that were read, or kept, just now. Of some the server tells when they change.
    pub(super) fn new(lists: BTreeMap<Kind, Good>, told: &BTreeSet<Kind>) -> Self {
        let now = Instant::now();
        let due = |kind: &Kind, good: &Good| (!told.contains(kind)).then(|| now + good.time);
        let lists = lists.into_iter().map(|(kind, good)| (kind, (good, due(&kind, &good)))).collect();
        Self { lists, asked: Arc::default() }
    }

    /// The same with those lists of the reading before that were not asked for now.
    pub(super) fn with_rest(mut self, before: &Self, is_rest: impl Fn(Kind) -> bool) -> Self {
        self.lists.extend(before.lists.iter().filter(|(kind, _)| is_rest(**kind)));
        self
    }

    pub(super) fn good(&self, kind: Kind) -> Option<Good> {
        self.lists.get(&kind).map(|(good, _)| *good)
    }

    /// The lists that are to be read again.
    pub(super) fn due(&self) -> BTreeSet<Kind> {
        self.lists.keys().copied().filter(|kind| self.is_due(*kind)).collect()
    }

    fn is_due(&self, kind: Kind) -> bool {
        self.lists.get(&kind).and_then(|(_, due)| *due).is_some_and(|due| Instant::now() >= due)
    }

    /// Whether the tender is to be asked to read some again: once for each reading.
    pub(super) fn is_to_be_asked(&self) -> bool {
        self.lists.keys().any(|kind| self.is_due(*kind)) && !self.asked.swap(true, Ordering::Relaxed)
    }

    /// The tender did not hear it.
    pub(super) fn was_not_asked(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    pub(super) fn freshness(&self, kind: Kind) -> Freshness {
        let good = self.good(kind);
        let ttl = good.map(|good| if self.is_due(kind) { good.time.min(BEING_READ) } else { good.time });
        Freshness {
            ttl: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            is_private: good.is_some_and(|good| !good.is_public),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::{Good, Kind, Shelf};

    #[tokio::test(start_paused = true)]
    async fn h36_lists_are_asked_for_once_when_their_time_is_over_unless_the_server_tells_of_changes() {
        let good = |ttl: f64| Good::of(Some(ttl), Some("public")).unwrap();
        let lists = BTreeMap::from([(Kind::Tools, good(3_000.0)), (Kind::Prompts, good(5_000.0))]);
        let told = Shelf::new(lists.clone(), &BTreeSet::from([Kind::Tools, Kind::Prompts]));
        let shelf = Shelf::new(lists, &BTreeSet::from([Kind::Prompts]));
        assert!(!shelf.is_to_be_asked());
        assert_eq!(shelf.freshness(Kind::Tools).ttl, Some(3_000));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(shelf.is_to_be_asked() && !shelf.is_to_be_asked() && !told.is_to_be_asked());
        assert_eq!(shelf.due(), BTreeSet::from([Kind::Tools]));
        shelf.was_not_asked();
        assert!(shelf.is_to_be_asked());
        assert_eq!(shelf.freshness(Kind::Tools).ttl, Some(1_000), "it is being read");
        assert_eq!(shelf.freshness(Kind::Prompts).ttl, Some(5_000));
        let prompts = BTreeMap::from([(Kind::Prompts, good(5_000.0))]);
        let partly = Shelf::new(prompts, &BTreeSet::new()).with_rest(&shelf, |kind| kind != Kind::Prompts);
        assert_eq!(partly.due(), BTreeSet::from([Kind::Tools]), "it was not read again");
        assert_eq!(shelf.freshness(Kind::Resources).ttl, None);
    }

    #[test]
    fn h36_a_list_is_as_good_as_its_worst_page() {
        let page = |ttl, scope| Good::of(Some(ttl), Some(scope));
        let both = page(5.0, "public").unwrap().and(page(3.0, "private").unwrap());
        assert_eq!(both, Good { time: Duration::from_millis(3), is_public: false });
        assert!(page(-1.0, "public").is_none() && page(f64::NAN, "public").is_none());
        assert!(page(f64::MAX, "public").unwrap().time <= super::LONGEST);
    }
}
