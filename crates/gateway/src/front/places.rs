//! Places for connections. When all are taken, a newcomer gets that of a connection whose end costs nobody an answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::activity::{Activity, Rank};
use super::caller::Caller;

/// Those who give way next are looked for among all connections at once, so that a newcomer costs no such look.
const AT_ONCE: usize = 64;

/// If nobody can give way, how soon one looks again.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(100);

/// Connections of strangers at once: enough for whoever checks our health, and nobody else's places.
const STRANGERS: usize = 16;

/// All places.
#[derive(Clone, Debug)]
pub(super) struct Places {
    served: Room,
    strangers: Room,
}

#[derive(Clone, Debug)]
struct Room {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    by: HashMap<u64, Arc<Activity>>,
    last: u64,
    /// Who gives way next, the last one first, and what it was doing when that was decided.
    next: Vec<(u64, Rank, Instant)>,
}

/// A place that is taken.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    taken: Arc<Mutex<Taken>>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.taken).by.remove(&self.number);
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { served: Room::new(most), strangers: Room::new(STRANGERS) }
    }

    /// A place for a connection, as soon as there is one.
    pub(super) async fn take(&self, activity: &Arc<Activity>) -> Place {
        let room = if activity.caller().is_stranger() { &self.strangers } else { &self.served };
        room.take(activity).await
    }
}

impl Room {
    fn new(most: usize) -> Self {
        let free = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Self { free, taken: Arc::default() }
    }

    async fn take(&self, activity: &Arc<Activity>) -> Place {
        loop {
            let waiting = Arc::clone(&self.free).acquire_owned();
            let acquired = if self.free.available_permits() == 0 && self.make_room() {
                // Whoever was told to go does so at its next turn.
                Some(waiting.await)
            } else {
                tokio::time::timeout(AGAIN, waiting).await.ok()
            };
            match acquired {
                Some(Ok(permit)) => {
                    let mut taken = lock(&self.taken);
                    taken.last += 1;
                    let number = taken.last;
                    taken.by.insert(number, Arc::clone(activity));
                    return Place { number, taken: Arc::clone(&self.taken), _permit: permit };
                }
                // The semaphore is never closed.
                Some(Err(_)) => return std::future::pending().await,
                None => {}
            }
        }
    }

    /// Tells one connection to go. Whether there is one that can.
    fn make_room(&self) -> bool {
        let now = Instant::now();
        let mut taken = lock(&self.taken);
        for looked in [false, true] {
            while let Some((number, rank, since)) = taken.next.pop() {
                let still = |activity: &&Arc<Activity>| activity.rank(now) == Some((rank, since));
                if let Some(activity) = taken.by.get(&number).filter(still) {
                    activity.give_way();
                    taken.by.remove(&number);
                    return true;
                }
            }
            if !looked {
                taken.next = who_gives_way(&taken.by, now);
            }
        }
        false
    }
}

/// Those who give way, the last one first. By rank; within a rank, who holds most gives first, and the longest of its own.
fn who_gives_way(by: &HashMap<u64, Arc<Activity>>, now: Instant) -> Vec<(u64, Rank, Instant)> {
    let mut ranks: BTreeMap<Rank, HashMap<Caller, Vec<(Instant, u64)>>> = BTreeMap::new();
    for (number, activity) in by {
        if let Some((rank, since)) = activity.rank(now) {
            ranks.entry(rank).or_default().entry(activity.caller()).or_default().push((since, *number));
        }
    }
    let mut chosen = Vec::with_capacity(AT_ONCE);
    for (rank, callers) in ranks {
        let mut callers: Vec<_> = callers.into_values().collect();
        for held in &mut callers {
            // The longest is last, and taken first.
            held.sort_unstable_by(|one, other| other.cmp(one));
        }
        while chosen.len() < AT_ONCE {
            let most = callers.iter_mut().max_by_key(|held| held.len());
            let Some((since, number)) = most.and_then(Vec::pop) else { break };
            chosen.push((number, rank, since));
        }
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{Place, Places, STRANGERS};
    use crate::front::activity::Activity;
    use crate::front::caller::Caller;

    /// A connection that goes when it is told to.
    async fn connection(places: &Places, caller: Caller) -> (Arc<Activity>, Place) {
        let activity = Activity::new(caller);
        let place = places.take(&activity).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        (activity, place)
    }

    /// Which of these is told to go for a newcomer.
    async fn gone(places: &Places, newcomer: Caller, held: &mut Vec<(Arc<Activity>, Place)>) -> usize {
        let activity = Activity::new(newcomer);
        let mut take = std::pin::pin!(places.take(&activity));
        let told = async {
            loop {
                for (at, (activity, _)) in held.iter().enumerate() {
                    if tokio::time::timeout(Duration::from_millis(1), activity.gives_way()).await.is_ok() {
                        return at;
                    }
                }
            }
        };
        let at = tokio::select! {
            at = told => at,
            _ = &mut take => panic!("there was no room"),
            () = tokio::time::sleep(Duration::from_secs(600)) => panic!("nobody was told to go"),
        };
        drop(held.remove(at));
        drop(take.await);
        at
    }

    #[tokio::test(start_paused = true)]
    async fn o08_the_longest_idle_connection_of_who_holds_most_gives_way() {
        let places = Places::new(5);
        let mut held = vec![connection(&places, Caller::User(1)).await];
        drop(held[0].0.request(false));
        for _ in 0..4 {
            held.push(connection(&places, Caller::User(2)).await);
            drop(held.last().unwrap().0.request(false));
        }
        // User 1 has been idle for longest, but user 2 holds most.
        assert_eq!(gone(&places, Caller::User(3), &mut held).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn o08_unused_connections_go_first_and_busy_ones_never() {
        let places = Places::new(3);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(connection(&places, Caller::User(1)).await);
        }
        let busy = held[0].0.request(false);
        drop(held[1].0.request(false));
        assert_eq!(gone(&places, Caller::User(1), &mut held).await, 2);
        assert_eq!(held.len(), 2);
        held.push(connection(&places, Caller::User(1)).await);
        let (one, other) = (held[1].0.request(false), held[2].0.request(false));
        let activity = Activity::new(Caller::User(1));
        let waits = tokio::time::timeout(Duration::from_secs(60), places.take(&activity)).await;
        assert!(waits.is_err(), "all of them are busy");
        drop((busy, one));
        drop(other);
        assert_eq!(gone(&places, Caller::User(1), &mut held).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn x04_strangers_have_places_of_their_own_and_give_way_to_each_other() {
        let places = Places::new(1);
        let _ours = connection(&places, Caller::User(1)).await;
        let mut held = Vec::new();
        for _ in 0..STRANGERS {
            held.push(connection(&places, Caller::Stranger(Some(2))).await);
        }
        let _request = held[0].0.request(false);
        assert_eq!(gone(&places, Caller::Stranger(Some(3)), &mut held).await, 0);
    }
}
