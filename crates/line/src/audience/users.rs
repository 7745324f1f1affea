//! Whose calls a generation was sent: what its server then writes by itself may quote any of them.

use std::collections::VecDeque;
use std::sync::Mutex;

use linetender_core::Generation;
use linetender_wire::renewed;

/// So many generations are remembered: the last one that ended, and what came after it.
const KEPT: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Users(Mutex<VecDeque<(Generation, Of)>>);

/// Whose they were.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Of {
    One(u64),
    Several,
}

impl Users {
    /// A generation is sent a call of this principal's.
    pub(super) fn note(&self, generation: Generation, principal: u64) {
        let mut known = renewed(&self.0, VecDeque::clear);
        match known.iter_mut().find(|(of, _)| *of == generation) {
            Some((_, of)) if *of != Of::One(principal) => *of = Of::Several,
            Some(_) => {}
            None => {
                known.push_back((generation, Of::One(principal)));
                if known.len() > KEPT {
                    known.pop_front();
                }
            }
        }
    }

    /// Whether a generation was sent calls of others than this principal.
    pub(super) fn has_others(&self, generation: Generation, principal: u64) -> bool {
        let known = renewed(&self.0, VecDeque::clear);
        known.iter().any(|(of, whose)| *of == generation && *whose != Of::One(principal))
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Users};
    use linetender_core::Generation;

    #[test]
    fn x08_a_generation_is_nobodys_until_it_is_sent_a_call() {
        let users = Users::default();
        let [first, second] = [1, 2].map(Generation::new);
        assert!(!users.has_others(first, 1));
        users.note(first, 1);
        users.note(first, 1);
        assert!(!users.has_others(first, 1) && users.has_others(first, 2));
        users.note(first, 2);
        assert!(users.has_others(first, 1) && users.has_others(first, 2));
        assert!(!users.has_others(second, 1), "it was sent nothing");
        (2..20).for_each(|number| users.note(Generation::new(number), 1));
        assert_eq!(users.0.lock().unwrap().len(), KEPT);
    }
}
