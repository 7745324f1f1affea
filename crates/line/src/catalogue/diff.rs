//! How a list differs from what it was, by a table of names: no list is searched once per entry of the other.

use std::collections::HashMap;

use super::item::Item;
use super::{Catalogue, Change, Kind};

impl Catalogue {
    /// What is different now, per list; nothing if nothing is.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<(Kind, Change)> {
        // What could not be read has not changed.
        let read = |kind: &Kind| !before.unread.contains(kind) && !self.unread.contains(kind);
        let changes = Kind::ALL.into_iter().filter(read).map(|kind| {
            let (old, new) = (before.items(kind), self.items(kind));
            // The same list, also in memory: most readings find no change.
            let same = std::ptr::eq(old, new);
            (kind, if same { Change::default() } else { between(old, new) })
        });
        changes.filter(|(_, change)| *change != Change::default()).collect()
    }
}

fn between(old: &[Item], new: &[Item]) -> Change {
    let (was, is) = (by_name(old), by_name(new));
    let mut change = Change::default();
    for item in firsts(new, &is) {
        match was.get(&*item.name) {
            None => change.added.push(item.name.clone()),
            Some(before) if before.text != item.text => change.changed.push(item.name.clone()),
            Some(_) => {}
        }
    }
    let gone = firsts(old, &was).filter(|item| !is.contains_key(&*item.name));
    change.removed = gone.map(|item| item.name.clone()).collect();
    change
}

/// Of several with one name, the first is meant.
fn by_name(items: &[Item]) -> HashMap<&str, &Item> {
    let mut named = HashMap::with_capacity(items.len());
    for item in items {
        named.entry(&*item.name).or_insert(item);
    }
    named
}

/// A list without those that are not meant, in its order.
fn firsts<'a>(items: &'a [Item], named: &HashMap<&str, &Item>) -> impl Iterator<Item = &'a Item> {
    items.iter().filter(|item| named.get(&*item.name).is_some_and(|first| std::ptr::eq(*first, *item)))
}

#[cfg(test)]
mod tests {
    use super::between;
    use crate::catalogue::Change;
    use crate::catalogue::item::Item;

    fn items(named: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<Item> {
        let item = |(name, text): (&str, &str)| Item { name: name.into(), text: text.into() };
        named.into_iter().map(item).collect()
    }

    #[test]
    fn what_came_what_went_and_what_means_something_else() {
        let old = items([("a", "1"), ("b", "1"), ("c", "1"), ("b", "2")]);
        let new = items([("c", "1"), ("d", "1"), ("b", "2"), ("a", "1")]);
        let change = between(&old, &new);
        assert_eq!(
            (change.added, change.removed, change.changed),
            (vec!["d".into()], vec![], vec!["b".into()])
        );
        let gone = between(&old, &[]);
        assert_eq!(gone.removed, ["a", "b", "c"]);
        assert_eq!(between(&old, &old), Change::default());
    }

    #[test]
    fn two_lists_of_a_hundred_thousand_are_compared_in_one_pass() {
        let list = |text: &str| -> Vec<Item> {
            (0..100_000).map(|n| Item { name: format!("tool-{n}"), text: text.into() }).collect()
        };
        // Searched once per entry, this would be ten thousand million comparisons, which no test would see the end of.
        assert_eq!(between(&list("a"), &list("b")).changed.len(), 100_000);
    }
}
