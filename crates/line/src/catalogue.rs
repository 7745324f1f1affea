//! What a server offers: tools, prompts, resources. Read anew each generation, compared, and kept while it is down.
//!
//! A server decides how long its lists are. All work on them is done by the task that reads them (and on a thread of its
//! own where it is long), never by the tender, and none of it takes more than n log n.

mod diff;
mod hidden;
mod item;
mod offered;
mod read;
mod shelf;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::basics::kind::Kind;
use hidden::Hidden;
use item::Item;
pub use offered::{Prompt, Resource, ResourceTemplate, Tool};
pub(crate) use read::Reading;
pub use shelf::Freshness;
use shelf::Shelf;

/// What a server offers, as it was spelt.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The generation that it was read from; zero if none of this line was read yet.
    pub generation: u64,
    /// Shared with the one before where nothing changed: whoever compares two of them looks at that first.
    lists: BTreeMap<Kind, Arc<Vec<Item>>>,
    /// Tools that this generation calls read-only or idempotent.
    safe: Arc<HashSet<String>>,
    /// Tools that this generation calls read-only.
    read_only: Arc<HashSet<String>>,
    /// Lists that the server says it has, and that were never read.
    unread: BTreeSet<Kind>,
    /// Lists that this generation did not give: they are what they were.
    kept: BTreeSet<Kind>,
    /// Lists that are longer than what is kept of them.
    cut: BTreeSet<Kind>,
    /// Tools that the server has and that are not offered.
    hidden: Hidden,
    /// Whether it was known before this line.
    remembered: bool,
    /// How long its lists are good.
    shelf: Shelf,
}

/// How one list differs from what it was.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// New names.
    pub added: Vec<String>,
    /// Names that are gone.
    pub removed: Vec<String>,
    /// Names that mean something else now.
    pub changed: Vec<String>,
}

impl Catalogue {
    /// The entries of a list, raw, in the server's order.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.items(kind).iter().map(|item| &*item.text)
    }

    fn items(&self, kind: Kind) -> &[Item] {
        self.lists.get(&kind).map(|items| items.as_slice()).unwrap_or_default()
    }

    /// Whether every list is the very one that the other has, in memory too: a reading that finds no change keeps what there was.
    #[doc(hidden)] // for linetender's gateway
    pub fn shares_lists_with(&self, other: &Self) -> bool {
        let mut pairs = self.lists.iter().zip(&other.lists);
        self.lists.len() == other.lists.len()
            && pairs
                .all(|((kind, list), (its_kind, its_list))| kind == its_kind && Arc::ptr_eq(list, its_list))
    }

    /// Whether a list has more entries than are known here: it is longer than what is kept of one.
    pub fn is_cut(&self, kind: Kind) -> bool {
        self.cut.contains(&kind)
    }

    /// What was known of the server before this line: it is shown, but it is nobody's word that a tool is safe.
    pub(crate) fn remembered(lists: BTreeMap<Kind, Vec<Box<RawValue>>>) -> Self {
        let items = |list: Vec<Box<RawValue>>| Arc::new(list.iter().map(|entry| Item::of(entry).0).collect());
        let lists = lists.into_iter().map(|(kind, list)| (kind, items(list))).collect();
        Self { lists, remembered: true, ..Self::default() }
    }

    /// Its lists, to be known the next time.
    pub(crate) fn to_remember(&self) -> BTreeMap<Kind, Vec<Box<RawValue>>> {
        let raw = |item: &Item| RawValue::from_string(item.text.to_string()).ok();
        self.lists.iter().map(|(kind, list)| (*kind, list.iter().filter_map(raw).collect())).collect()
    }

    /// Which lists there are.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.lists.keys().copied()
    }

    /// A list that this generation gave, tools before others.
    pub(crate) fn given(&self) -> Option<Kind> {
        self.kinds().find(|kind| !self.kept.contains(kind))
    }

    /// Whether it says anything of the server, be it of this line or of one before.
    pub(crate) fn is_known(&self) -> bool {
        self.generation > 0 || self.remembered
    }

    /// Whether every list that the server has was read from it, to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.generation > 0 && self.is_given() && self.cut.is_empty()
    }

    /// Whether this generation gave every list that it says it has.
    pub(crate) fn is_given(&self) -> bool {
        self.unread.is_empty() && self.kept.is_empty()
    }

    /// Lists that this generation says it has, and did not give.
    pub(crate) fn missing(&self) -> BTreeSet<Kind> {
        &self.unread | &self.kept
    }

    /// A whole list as the result of asking for it, if it is known.
    pub(crate) fn result(&self, kind: Kind) -> Option<String> {
        let items = self.lists.get(&kind)?;
        let entries: Vec<&str> = items.iter().map(|item| &*item.text).collect();
        Some(format!(r#"{{"{}":[{}]}}"#, kind.member(), entries.join(",")))
    }

    /// How long a list is good for whoever is shown it.
    pub(crate) fn freshness(&self, kind: Kind) -> Freshness {
        self.shelf.freshness(kind)
    }

    /// The lists whose time is over, of which the server does not tell when they change.
    pub(crate) fn due(&self) -> BTreeSet<Kind> {
        self.shelf.due()
    }

    /// Somebody looks at its lists: has them read again if their time is over. `ask` returns false if it could not be heard.
    pub(crate) fn seen(&self, ask: impl FnOnce() -> bool) {
        if self.shelf.is_to_be_asked() && !ask() {
            self.shelf.was_not_asked();
        }
    }

    /// Whether the server calls this tool read-only or idempotent.
    pub(crate) fn declares_safe(&self, tool: &str) -> bool {
        self.safe.contains(tool)
    }

    /// Whether the server calls this tool read-only.
    pub(crate) fn declares_read_only(&self, tool: &str) -> bool {
        self.read_only.contains(tool)
    }

    /// Whether a list could be read at all.
    pub(crate) fn is_read(&self, kind: Kind) -> bool {
        !self.unread.contains(&kind)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::{Catalogue, Kind};

    #[test]
    fn a_server_that_comes_back_with_the_same_lists_shares_them_with_itself_and_with_no_other() {
        let of = |name: &str| {
            let tool = RawValue::from_string(format!(r#"{{"name":"{name}"}}"#)).unwrap();
            Catalogue::remembered(BTreeMap::from([(Kind::Tools, vec![tool])]))
        };
        let before = of("echo");
        let back = Catalogue { generation: 7, ..before.clone() };
        assert!(back.shares_lists_with(&before), "another generation, the same lists");
        let more = Catalogue::remembered(BTreeMap::from([(Kind::Tools, vec![]), (Kind::Prompts, vec![])]));
        for other in [of("echo"), of("other"), more, Catalogue::default()] {
            assert!(!other.shares_lists_with(&before) && !before.shares_lists_with(&other));
        }
    }
}
