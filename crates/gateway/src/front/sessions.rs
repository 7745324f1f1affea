//! All legacy sessions: found by an id that cannot be guessed, no more than so many, forgotten when unused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender::session::Agent;
use linetender_wire::caught;
use tokio::task::JoinSet;

use super::Front;
use super::rarely::Rarely;
use super::session::{self, Filters, Session};
use super::shown::Credentials;
use crate::budget::Budget;
use crate::ends::Ends;
use crate::failed::Failed;
use crate::listing::Endpoint;
use crate::own_lines::share;
use crate::principal::Principal;

/// How often unused sessions and streams are looked for, at the least.
const SWEEP: Duration = Duration::from_secs(10);

/// How long a stream that was read to its end is kept all the same: its last bytes may have been lost on their way.
const RESUMED: Duration = Duration::from_secs(60);

/// The sessions.
pub(super) struct Sessions {
    table: Mutex<Table>,
    most: usize,
    idle: Duration,
    budget: Budget,
    ends: Ends,
    credentials: Arc<Credentials>,
    last: AtomicU64,
    evicted: Rarely,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, Arc<Session>>,
    /// Those that hear what servers say.
    pumps: JoinSet<()>,
}

impl Table {
    /// The session that makes room: the oldest that was never used since its greeting; else, of whoever has most sessions, the
    /// one that was idle longest. Never one that has calls or streams. Whoever has so many gives way to itself alone.
    fn gives_way(&self, principal: u64, share: usize) -> Option<Arc<Session>> {
        let mut idle = Vec::new();
        let mut held: HashMap<u64, usize> = HashMap::new();
        for session in self.open.values() {
            *held.entry(session.owner.principal).or_default() += 1;
            idle.extend(session.idle_since().map(|since| (since, session)));
        }
        if held.get(&principal).is_some_and(|held| *held >= share) {
            idle.retain(|(_, session)| session.owner.principal == principal);
        }
        let unused = idle.iter().filter(|(idle, _)| !idle.used).min_by_key(|(idle, _)| idle.since);
        let used = || {
            let most = |session: &Session| held.get(&session.owner.principal).copied();
            idle.iter().max_by_key(|(idle, session)| (most(session), std::cmp::Reverse(idle.since)))
        };
        unused.or_else(used).map(|(_, session)| Arc::clone(session))
    }
}

impl Sessions {
    pub(super) fn new(
        most: usize,
        idle: Duration,
        (budget, ends): (Budget, Ends),
        credentials: Arc<Credentials>,
    ) -> Self {
        let (last, evicted) = (AtomicU64::new(0), Rarely::default());
        Self { table: Mutex::default(), most, idle, budget, ends, credentials, last, evicted }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other session has.
    pub(super) fn next_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    /// A session for an agent, found by this id. If there are as many as there may be, one that nobody uses gives way; none, if all are used.
    pub(super) fn open(
        &self,
        id: String,
        endpoint: Endpoint,
        berth: Option<u64>,
        agent: Agent,
        filters: Option<Filters>,
        principal: &Principal,
    ) -> Option<Arc<Session>> {
        let mut table = self.table();
        while table.pumps.try_join_next().is_some() {}
        let share = share(self.most);
        let own = || table.open.values().filter(|open| open.owner.principal == principal.number()).count();
        if table.open.len() >= self.most || (table.open.len() >= share && own() >= share) {
            let gives_way = table.gives_way(principal.number(), share)?;
            table.open.remove(&gives_way.id);
            gives_way.end();
            if let Some(sessions) = self.evicted.count() {
                tracing::warn!(
                    sessions,
                    "session limit reached (gateway.sessions, gateway.memory): idle sessions evicted"
                );
            }
        }
        let (session, from) = session::start(
            id.clone(),
            endpoint,
            berth,
            agent,
            filters,
            (&self.budget, &self.ends, principal),
        );
        session.is_used_with(principal, &self.credentials);
        let pumped = Arc::clone(&session);
        table.pumps.spawn(async move {
            if caught(session::pump(Arc::clone(&pumped), from)).await.is_err() {
                pumped.end();
            }
        });
        table.open.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The session with this id, if it is this principal's. Whoever else asks learns no more than if there were none.
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let mut table = self.table();
        let session = table.open.get(id).filter(|session| session.principal == *principal).cloned()?;
        if session.is_over() {
            // What stood behind it is gone: its agent begins a new one.
            table.open.remove(id);
            return None;
        }
        drop(table);
        session.is_used_with(principal, &self.credentials);
        Some(session)
    }

    pub(super) fn end(&self, id: &str) {
        let session = self.table().open.remove(id);
        if let Some(session) = session {
            session.end();
        }
    }

    pub(super) fn end_all(&self) {
        let all = std::mem::take(&mut self.table().open);
        for session in all.values() {
            session.end();
        }
    }

    /// Ends the sessions of those who may not have them any more, with all that is under way in them; and those that lost their server,
    /// once nothing is.
    pub(super) async fn shut_out(&self, front: &Front) {
        let open: Vec<_> = self.table().open.values().cloned().collect();
        for session in open {
            if session.is_shut_out(front) {
                self.table().open.remove(&session.id);
                session.end_for(&Failed::shut_out());
            } else if session.is_quiet() && !session.is_current(front) {
                self.end(&session.id);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Ends what nobody uses, and what lost its server. Agents decide how much there is to look at: the table is not held
    /// meanwhile, and others have their turn after each session.
    async fn sweep(&self, front: &Front) {
        let open: Vec<_> = self.table().open.values().cloned().collect();
        for session in open {
            session.forget_read(RESUMED);
            session.give_up_unread(RESUMED);
            if session.is_idle(self.idle) || (session.is_quiet() && !session.is_current(front)) {
                self.end(&session.id);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Looks for unused sessions, for as long as it is served.
pub(super) async fn sweep(front: Arc<Front>) {
    let often = (front.sessions.idle / 4).clamp(Duration::from_millis(10), SWEEP);
    loop {
        tokio::time::sleep(often).await;
        front.sessions.sweep(&front).await;
    }
}

/// 128 bits from the system, in hexadecimal.
pub(super) fn unguessable() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::{Agent, Budget, Credentials, Duration, Endpoint, Ends, Principal, Sessions};
    use linetender_wire::queue;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn x07_one_user_never_has_all_sessions() {
        let drawing = (Budget::new(usize::MAX), Ends::default());
        let sessions = Sessions::new(8, Duration::from_secs(60), drawing, Credentials::new(None));
        let mut servers = Vec::new();
        let mut open = |uid, used: bool| {
            let ((to, hears), (says, from)) = (mpsc::channel(1), queue::queue(1, 1));
            servers.push((hears, says));
            let (agent, principal) = (Agent { to, from }, Principal::user(uid));
            let id = super::unguessable().unwrap();
            let session = sessions.open(id, Endpoint::All, None, agent, None, &principal);
            if let Some(session) = session.as_ref().filter(|_| used) {
                session.begins_reading(&session.own_stream().0);
            }
            session
        };
        let first: Vec<_> = (0..8).filter_map(|_| open(1, true)).collect();
        assert_eq!(first.len(), 7, "an eighth is for others");
        let other = open(2, false).expect("somebody else's");
        assert!(open(1, true).is_none() && !other.is_over(), "nobody else gives way to it");
        first[3].ends_reading();
        assert!(open(1, true).is_some() && first[3].is_over(), "but one of its own that it does not use");
        assert!(!other.is_over());
    }
}
