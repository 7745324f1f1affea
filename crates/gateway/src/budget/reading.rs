//! What servers have not finished sending. When there is no room, that has half of the budget at most: no server takes all of it from
//! agents.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};

use linetender::Rooms;
use linetender_wire::{NoRoom, Room};
use tokio::sync::Notify;

use super::{Budget, Class, GiveWay, Held, Owner, next_group};

/// Servers are no users: their numbers are others.
const SERVERS: u64 = 1 << 63;

/// One unfinished message of a server's.
struct Reading {
    held: Held,
    /// The book knows it for as long as this is kept.
    _wanted: Arc<Wanted>,
}

/// Who is told that a message has to give way.
struct Wanted(Arc<Notify>);

impl GiveWay for Wanted {
    fn give_way(&self) {
        self.0.notify_one();
    }
}

impl Room for Reading {
    fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let grown = if bytes == 0 { self.held.touch() } else { self.held.grow(bytes) };
        grown.map_err(|_| NoRoom)
    }
}

impl Rooms for Budget {
    fn room(&self, server: &str, wanted: &Arc<Notify>) -> Box<dyn Room> {
        let mut hasher = DefaultHasher::new();
        server.hash(&mut hasher);
        let owner = Owner { principal: hasher.finish() | SERVERS, group: next_group() };
        let wanted = Arc::new(Wanted(Arc::clone(wanted)));
        let holder: Weak<Wanted> = Arc::downgrade(&wanted);
        Box::new(Reading { held: self.hold(Class::Reading, owner, holder), _wanted: wanted })
    }
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Class, NoRoom, Owner};
    use linetender::Rooms as _;
    use std::sync::{Arc, Weak};
    use tokio::sync::Notify;

    const MIB: usize = 1024 * 1024;

    #[tokio::test(start_paused = true)]
    async fn x05_a_response_that_is_being_read_is_not_cut_for_one_that_a_server_has_begun() {
        let budget = Budget::new(10 * MIB);
        let wanted: Arc<Notify> = Arc::default();
        let mut answer = budget.hold(Class::Answer, Owner::default(), Weak::<super::Wanted>::new());
        answer.grow(9 * MIB).unwrap();
        let mut begun = budget.room("hostile", &wanted);
        begun.grow(3 * MIB).unwrap();
        assert!(!answer.is_gone(), "half of the budget is for these in any case");
        assert_eq!(begun.grow(4 * MIB), Err(NoRoom));
        assert!(!answer.is_gone(), "it moves");
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        begun.grow(4 * MIB).unwrap();
        assert!(answer.is_gone(), "nobody reads it");
    }

    #[tokio::test]
    async fn x05_the_server_with_most_unfinished_answers_gives_way_and_never_all_of_the_budget_is_theirs() {
        let budget = Budget::new(20 * MIB);
        let wanted: [Arc<Notify>; 4] = std::array::from_fn(|_| Arc::default());
        let mut hostile = [&wanted[0], &wanted[1]].map(|wanted| budget.room("hostile", wanted));
        for room in &mut hostile {
            room.grow(8 * MIB).unwrap();
        }
        assert_eq!(hostile[0].grow(5 * MIB), Err(NoRoom), "nobody has more, and its other one goes on");
        hostile[1].grow(0).unwrap();
        let mut good = budget.room("good", &wanted[2]);
        good.grow(6 * MIB).unwrap();
        tokio::select! {
            () = wanted[0].notified() => assert_eq!(hostile[0].grow(1), Err(NoRoom), "it gave way"),
            () = wanted[1].notified() => assert_eq!(hostile[1].grow(1), Err(NoRoom), "it gave way"),
        }
        let mut body = budget.hold(Class::Body, Owner::default(), Weak::<super::Wanted>::new());
        body.grow(6 * MIB).unwrap();
        body.grow(2 * MIB).unwrap();
        assert_eq!(budget.reading(), 6 * MIB, "they had more than half, and an agent wants some");
        assert!(body.grow(7 * MIB).is_err(), "but no more than that");
        drop((hostile, good, body));
        let mut next = budget.room("hostile", &wanted[3]);
        next.grow(20 * MIB).unwrap();
        drop(next);
        assert_eq!((budget.used(), budget.reading()), (0, 0), "what nobody wants is theirs");
    }
}
