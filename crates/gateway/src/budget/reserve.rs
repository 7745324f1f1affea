//! What small requests can have when everything else is used up, so that an ordinary call gets through whatever others make us
//! keep.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The reserve.
pub(super) struct Reserve {
    whole: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// By whom, as far as they have any of it.
    by: HashMap<u64, usize>,
}

impl Reserve {
    pub(super) fn new(whole: usize) -> Self {
        Self { whole, taken: Mutex::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many bytes, if a principal then has no more than is left: so whoever comes next gets some too.
    pub(super) fn take(&self, principal: u64, bytes: usize) -> bool {
        let mut taken = self.taken();
        let (own, all) = (taken.by.get(&principal).copied().unwrap_or_default() + bytes, taken.all + bytes);
        let fits = self.whole.checked_sub(all).is_some_and(|left| own <= left);
        if fits {
            taken.all = all;
            taken.by.insert(principal, own);
        }
        fits
    }

    pub(super) fn give_back(&self, principal: u64, bytes: usize) {
        let mut taken = self.taken();
        taken.all -= bytes;
        if let Some(own) = taken.by.get_mut(&principal) {
            *own -= bytes;
            if *own == 0 {
                taken.by.remove(&principal);
            }
        }
    }

    /// How many are taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.taken().all
    }
}

#[cfg(test)]
mod tests {
    use super::Reserve;

    #[test]
    fn x05_whoever_comes_next_gets_some_of_the_reserve() {
        let reserve = Reserve::new(80);
        assert!(reserve.take(1, 30) && reserve.take(1, 10) && !reserve.take(1, 1));
        assert!(reserve.take(2, 20) && !reserve.take(2, 1) && !reserve.take(1, 1));
        assert!(reserve.take(3, 10) && !reserve.take(4, 11));
        reserve.give_back(1, 40);
        assert!(!reserve.taken().by.contains_key(&1) && reserve.take(1, 25));
        for (principal, bytes) in [(1, 25), (2, 20), (3, 10)] {
            reserve.give_back(principal, bytes);
        }
        assert!(reserve.used() == 0 && reserve.taken().by.is_empty());
    }
}
