//! Tasks that agents began where many servers are at one address. Their servers' ids may be anything, the same at two servers too: an
//! agent knows a task by an id of ours, which leads to its server and means nothing to anybody else.
//!
//! A task is its agent's: of one with a session, that session's; of others, which are nobody from one request to the next, their
//! principal's. Whoever asks for another's is told what is told of one that never was: it is not even looked for among those.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::principal::{Stay, Visitor};

/// Tasks that are remembered of one agent, and of all agents of one principal; who begins more loses its oldest. Principals that have some.
const EACH: usize = 256;
const OF_PRINCIPAL: usize = 512;
const PRINCIPALS: usize = 256;

/// No server's id is longer, in bytes.
const ID: usize = 256;

/// For how long a task is remembered after it was last heard of: as long as its server says that it keeps it, within this.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// All tasks of all agents.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By principal, the oldest first.
    of: HashMap<u64, VecDeque<Task>>,
    /// Principals, whoever began one longest ago in front.
    order: VecDeque<u64>,
    last: u64,
}

#[derive(Debug)]
struct Task {
    session: Option<u64>,
    public: Box<str>,
    /// The server's number, and what it calls the task.
    server: u64,
    own: Box<str>,
    keep: Duration,
    heard: Instant,
}

/// Those of one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTasks {
    all: Arc<Tasks>,
    principal: u64,
    session: Option<u64>,
}

impl OwnTasks {
    pub(crate) fn of(all: &Arc<Tasks>, visitor: &Visitor) -> Self {
        let session = (visitor.stay == Stay::Session).then_some(visitor.agent);
        Self { all: Arc::clone(all), principal: visitor.principal.number(), session }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server began one, and keeps it for so many milliseconds, or for ever. What the agent knows it by; `None` if its id is too long to be
    /// remembered.
    pub(crate) fn begin(&self, server: u64, own: &str, ttl: Option<u64>) -> Option<String> {
        if own.len() > ID {
            return None;
        }
        let mut known = self.known();
        let public = known.fresh();
        let task = Task {
            session: self.session,
            public: public.as_str().into(),
            server,
            own: own.into(),
            keep: ttl.map_or(LONGEST, Duration::from_millis).clamp(SHORTEST, LONGEST),
            heard: Instant::now(),
        };
        known.note(self.principal, task);
        Some(public)
    }

    /// The server of a task, and what that calls it.
    pub(crate) fn find(&self, public: &str) -> Option<(u64, String)> {
        self.heard_of(|task| *task.public == *public, |task| (task.server, task.own.to_string()))
    }

    /// What the agent knows a server's task by.
    pub(crate) fn public(&self, server: u64, own: &str) -> Option<String> {
        self.heard_of(|task| task.server == server && *task.own == *own, |task| task.public.to_string())
    }

    fn heard_of<T>(&self, is_it: impl Fn(&Task) -> bool, found: impl Fn(&Task) -> T) -> Option<T> {
        let (mut known, now) = (self.known(), Instant::now());
        let all = known.of.get_mut(&self.principal)?;
        all.retain(|task| task.is_kept(now));
        let task = all.iter_mut().find(|task| task.session == self.session && is_it(task))?;
        task.heard = now;
        Some(found(task))
    }

    /// The servers that have tasks of this agent.
    pub(crate) fn servers(&self) -> HashSet<u64> {
        let (mut known, now) = (self.known(), Instant::now());
        let Some(all) = known.of.get_mut(&self.principal) else { return HashSet::new() };
        all.retain(|task| task.is_kept(now));
        all.iter().filter(|task| task.session == self.session).map(|task| task.server).collect()
    }

    /// The agent is gone. Without a session it may come back.
    pub(crate) fn gone(&self) {
        if self.session.is_none() {
            return;
        }
        let mut known = self.known();
        if let Some(all) = known.of.get_mut(&self.principal) {
            all.retain(|task| task.session != self.session);
        }
        known.forget_empty();
    }
}

impl Known {
    /// An id that nobody has. That it cannot be guessed either is a second lock: whose a task is, is the first.
    fn fresh(&mut self) -> String {
        let mut key = [0; 16];
        let _ = getrandom::fill(&mut key);
        self.last += 1;
        let mut id = format!("task-{:x}-", self.last);
        let _ = write!(id, "{:032x}", u128::from_be_bytes(key));
        id
    }

    fn note(&mut self, principal: u64, task: Task) {
        self.order.retain(|other| *other != principal);
        self.order.push_back(principal);
        let all = self.of.entry(principal).or_default();
        let now = Instant::now();
        // A server that gives an id a second time was restarted: what had it is no more.
        let is_same = |other: &Task| {
            other.session == task.session && other.server == task.server && other.own == task.own
        };
        all.retain(|other| other.is_kept(now) && !is_same(other));
        let of_agent = || all.iter().filter(|other| other.session == task.session).count();
        if of_agent() >= EACH
            && let Some(oldest) = all.iter().position(|other| other.session == task.session)
        {
            all.remove(oldest);
        } else if all.len() >= OF_PRINCIPAL {
            all.pop_front();
        }
        all.push_back(task);
        self.forget_empty();
        if self.order.len() > PRINCIPALS
            && let Some(first) = self.order.pop_front()
        {
            self.of.remove(&first);
        }
    }

    fn forget_empty(&mut self) {
        let Self { of, order, .. } = self;
        of.retain(|_, tasks| !tasks.is_empty());
        order.retain(|principal| of.contains_key(principal));
    }
}

impl Task {
    fn is_kept(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) < self.keep
    }
}

#[cfg(test)]
mod tests {
    use super::{EACH, ID, LONGEST, OF_PRINCIPAL, OwnTasks, PRINCIPALS, SHORTEST, Tasks};
    use std::sync::Arc;
    use std::time::Duration;

    fn of(all: &Arc<Tasks>, principal: u64, session: Option<u64>) -> OwnTasks {
        OwnTasks { all: Arc::clone(all), principal, session }
    }

    #[tokio::test]
    async fn a_task_is_found_by_whoever_began_it_and_by_nobody_else() {
        let all = Arc::default();
        let hers = of(&all, 1, Some(1));
        let id = hers.begin(7, "1", None).unwrap();
        assert_eq!(hers.find(&id), Some((7, "1".to_owned())));
        assert_eq!(hers.public(7, "1").as_ref(), Some(&id));
        for other in [of(&all, 1, Some(2)), of(&all, 1, None), of(&all, 2, Some(1))] {
            assert_eq!((other.find(&id), other.public(7, "1")), (None, None));
            assert!(other.servers().is_empty());
            other.gone();
        }
        assert!(hers.find("1").is_none() && hers.public(8, "1").is_none());
        let again = hers.begin(7, "1", None).unwrap();
        assert_eq!((hers.find(&id), hers.find(&again).is_some()), (None, true), "its server counts anew");
        hers.gone();
        assert_eq!(hers.find(&again), None);
        assert!(all.0.lock().unwrap().of.is_empty());
        assert_eq!(hers.begin(7, &"x".repeat(ID + 1), None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_remembered_for_its_time_after_it_was_heard_of() {
        let own = OwnTasks::default();
        let [short, hour, ever] = [Some(5), Some(3_600_000), None].map(|ttl| {
            let id = own.begin(1, &format!("{ttl:?}"), ttl).unwrap();
            move |own: &OwnTasks| own.find(&id).is_some()
        });
        tokio::time::advance(SHORTEST / 2).await;
        assert!(short(&own) && hour(&own) && ever(&own));
        tokio::time::advance(SHORTEST * 2).await;
        assert!(!short(&own) && hour(&own) && ever(&own));
        tokio::time::advance(Duration::from_secs(3601)).await;
        assert!(!hour(&own) && ever(&own));
        tokio::time::advance(LONGEST).await;
        assert!(!ever(&own) && own.servers().is_empty());
    }

    #[tokio::test]
    async fn x07_whoever_begins_many_loses_its_own() {
        let all = Arc::default();
        let (hers, his) = (of(&all, 1, Some(1)), of(&all, 2, None));
        let kept = hers.begin(1, "hers", None).unwrap();
        let first = his.begin(1, "first", None).unwrap();
        (0..EACH).for_each(|at| drop(his.begin(1, &at.to_string(), None)));
        assert!(his.find(&first).is_none() && hers.find(&kept).is_some());
        for session in 0..64 {
            let one = of(&all, 2, Some(session));
            (0..64).for_each(|at| drop(one.begin(1, &at.to_string(), None)));
        }
        assert_eq!(all.0.lock().unwrap().of[&2].len(), OF_PRINCIPAL);
        assert!(hers.find(&kept).is_some());
        for principal in 10..10 + 2 * PRINCIPALS as u64 {
            of(&all, principal, None).begin(1, "1", None);
        }
        assert!(all.0.lock().unwrap().of.len() <= PRINCIPALS);
    }
}
