//! Which events of one stream were heard before. A server that is asked to go on behind an event may send that event again,
//! or all of them, or always the same one.
// MCP 2025-11-25, Streamable HTTP, "Resumability and Redelivery".

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

/// Number of events that are remembered, per stream. What is older and comes again is taken for new.
const EVENTS: usize = 256;

/// The events of one stream, over all connections on which it was read. Empty, and without memory of its own, until the server
/// gives the first event an id.
#[derive(Default)]
pub(super) struct Replay {
    /// Number of the connection that is read, from one.
    connection: u64,
    /// The connection on which each id was seen last. Ids are a server's, and long: their hashes will do.
    seen: HashMap<u64, u64>,
    /// The same ids, oldest first.
    order: VecDeque<u64>,
    hasher: RandomState,
    /// Whether any id came that had not been seen.
    is_new: bool,
    /// The server gave one id to two events of one connection: its ids tell nothing.
    ambiguous: bool,
}

impl Replay {
    /// Begins with the next connection.
    pub(super) fn connected(&mut self) {
        self.connection += 1;
        self.is_new = false;
    }

    /// True if an event with a new id came on this connection: the server went on.
    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Takes note of an event. False if the server sent it before, on another connection.
    pub(super) fn take(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return true };
        let id = self.hasher.hash_one(id);
        match self.seen.insert(id, self.connection) {
            None => {
                self.is_new = true;
                self.order.push_back(id);
                if self.order.len() > EVENTS
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.seen.remove(&oldest);
                }
                true
            }
            Some(before) => {
                self.ambiguous |= before == self.connection;
                self.ambiguous
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, Replay};

    fn heard(replay: &mut Replay, ids: &[&str]) -> Vec<bool> {
        replay.connected();
        ids.iter().map(|id| replay.take(Some(id))).collect()
    }

    #[test]
    fn h28_an_event_that_comes_again_is_none() {
        let mut replay = Replay::default();
        assert_eq!(heard(&mut replay, &["1", "2"]), [true, true]);
        assert!(replay.is_new());
        assert_eq!(heard(&mut replay, &["2", "3"]), [false, true], "an inclusive replay");
        assert!(replay.is_new());
        for _ in 0..3 {
            assert_eq!(heard(&mut replay, &["1", "2", "3"]), [false; 3], "a replay of everything");
            assert!(!replay.is_new());
        }
        assert!(replay.take(None) && replay.take(Some("")), "what has no id is never a replay");
        assert!(!replay.is_new(), "and no progress");
    }

    #[test]
    fn h28_ids_that_mean_nothing_hide_nothing_and_are_no_progress() {
        let mut replay = Replay::default();
        assert_eq!(heard(&mut replay, &["0", "0", "0"]), [true; 3]);
        assert_eq!(heard(&mut replay, &["0", "0"]), [true; 2]);
        assert!(!replay.is_new());
    }

    #[test]
    fn h28_what_is_remembered_is_bounded() {
        let mut replay = Replay::default();
        replay.connected();
        for id in 0..10 * EVENTS {
            assert!(replay.take(Some(&id.to_string())));
        }
        assert_eq!((replay.seen.len(), replay.order.len()), (EVENTS, EVENTS));
    }
}
