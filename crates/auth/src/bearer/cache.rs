//! Tokens that were verified, so that each request does not verify its token again.
//!
//! Two generations: when the young one is full it becomes the old one, and what was old is forgotten at once. Whatever is in
//! use is brought back from the old one, so it survives. Keys are hashes: the tokens themselves are nowhere kept.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use super::Known;
use super::claims::For;

/// The most tokens of one generation; there are two.
const HALF: usize = 2048;

/// The hash of a token.
pub(super) type Hash = [u8; 32];

/// A token that was verified.
pub(super) struct Verified {
    pub(super) known: Arc<Known>,
    pub(super) is_for: For,
    pub(super) until: SystemTime,
    /// The version of the key set that it was verified with.
    pub(super) keys: u64,
}

#[derive(Default)]
pub(super) struct Cache(RwLock<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Hash, Arc<Verified>>,
    old: HashMap<Hash, Arc<Verified>>,
}

impl Cache {
    /// A token that counts now, with the key set of this version.
    pub(super) fn get(&self, hash: &Hash, keys: u64, now: SystemTime) -> Option<Arc<Verified>> {
        let counts = |found: &&Arc<Verified>| found.keys == keys && now < found.until;
        let generations = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = generations.young.get(hash) {
            return Some(found).filter(counts).cloned();
        }
        let found = generations.old.get(hash).filter(counts).cloned()?;
        drop(generations);
        self.put(*hash, Arc::clone(&found));
        Some(found)
    }

    pub(super) fn put(&self, hash: Hash, verified: Arc<Verified>) {
        let mut generations = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= HALF && !generations.young.contains_key(&hash) {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(hash, verified);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use super::{Cache, HALF, Hash, Verified};
    use crate::bearer::claims::For;
    use crate::bearer::{By, Known};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn hash(number: usize) -> Hash {
        crate::encode::sha256(&number.to_string())
    }

    fn verified() -> Arc<Verified> {
        let known = Known { name: "a".into(), groups: vec![], until: None, by: By::Token, stamp: 0 };
        let until = NOW + Duration::from_secs(10);
        Arc::new(Verified { known: Arc::new(known), is_for: For::everybody(), until, keys: 7 })
    }

    #[test]
    fn a_token_counts_until_it_expires_or_the_keys_change() {
        let cache = Cache::default();
        cache.put(hash(1), verified());
        assert!(cache.get(&hash(1), 7, NOW).is_some() && cache.get(&hash(2), 7, NOW).is_none());
        assert!(cache.get(&hash(1), 8, NOW).is_none());
        assert!(cache.get(&hash(1), 7, NOW + Duration::from_secs(9)).is_some());
        assert!(cache.get(&hash(1), 7, NOW + Duration::from_secs(10)).is_none());
    }

    #[test]
    fn tokens_in_use_survive_any_number_of_others_and_no_more_are_kept() {
        let cache = Cache::default();
        cache.put(hash(0), verified());
        for number in 1..HALF * 6 {
            cache.put(hash(number), verified());
            assert!(cache.get(&hash(0), 7, NOW).is_some(), "{number}");
        }
        let kept = cache.0.read().unwrap();
        assert!(kept.young.len() + kept.old.len() <= 2 * HALF);
        drop(kept);
        assert!(cache.get(&hash(1), 7, NOW).is_none());
    }
}
