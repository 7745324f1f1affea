//! One line, followed: from what it says of itself to entries of the journal, and to where it stands.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tokio::time::Instant;

use super::Inner;
use super::report::LineReport;
use crate::journal::{Charge, Reason, What};
use linetender::{Account, Cost, Event, Events, Line, State, Status, WeakLine, Why};
use linetender_wire::wall::{rfc3339, wall_clock};

/// A line that is followed.
pub(super) struct Followed {
    server: String,
    line: WeakLine,
    /// The most that its budget can be.
    budget_most: u32,
    useful_most: u32,
    last: Mutex<Last>,
}

/// What was last heard of it.
struct Last {
    status: Status,
    since: (SystemTime, Instant),
    /// Why a generation of it last ended, also when it is up again, and when it did.
    cause: Option<(Arc<Why>, (SystemTime, Instant))>,
}

impl Followed {
    pub(super) fn new(line: &Line) -> Self {
        let last = Last { status: line.status(), since: (wall_clock(), Instant::now()), cause: None };
        Self {
            server: line.name().to_owned(),
            line: line.downgrade(),
            budget_most: u32::from(line.policy().budget.tokens) * 1000,
            useful_most: u32::from(line.policy().budget.useful_tokens) * 1000,
            last: Mutex::new(last),
        }
    }

    /// Follows it until its tender is gone.
    pub(super) async fn follow(self: Arc<Self>, mut events: Events, holder: Weak<Inner>) {
        loop {
            let heard = events.next().await;
            let Some(holder) = holder.upgrade() else { return };
            match heard {
                Some(Event::State(status)) => {
                    if let Some(what) = self.heard(&status) {
                        holder.write(what);
                    }
                }
                Some(Event::Missed(entries)) => {
                    let why = format!("too many events of {} at once", self.server);
                    holder.write(What::Gap { entries, why });
                }
                Some(_) => {}
                None => return holder.let_go(&self),
            }
        }
    }

    /// What is to be written of this, if it is news: a line also says when it only waits for something else.
    fn heard(&self, status: &Status) -> Option<What> {
        let mut last = self.last();
        let same = (last.status.state, last.status.generation) == (status.state, status.generation);
        last.status = status.clone();
        if let Some(why) = &status.cause {
            let ended = match &last.cause {
                // It is told again until the next generation serves; an end begins with its own state.
                Some((_, ended)) if same || status.state != State::Ending => *ended,
                Some(_) | None => (wall_clock(), Instant::now()),
            };
            last.cause = Some((Arc::clone(why), ended));
        }
        if same {
            return None;
        }
        last.since = (wall_clock(), Instant::now());
        Some(What::State {
            server: self.server.clone(),
            generation: status.generation,
            state: status.state.to_string(),
            cause: status.cause.as_deref().map(Reason::from),
            budget_millis: status.budget,
            useful_millis: Some(status.useful).filter(|left| *left < self.useful_most),
            charge: status.cost.and_then(|cost| self.charge(cost, status)),
            next_try: status.next_try().map(|next| next.to_string()),
        })
    }

    fn charge(&self, cost: Cost, status: &Status) -> Option<Charge> {
        let (paid, account) = match cost {
            Cost::Free => return None,
            Cost::Token(account) => (true, account),
            Cost::Unpaid(account) => (false, account),
        };
        let (useful, left_millis, most_millis) = match account {
            Account::Ends => (false, status.budget, self.budget_most),
            Account::Useful => (true, status.useful, self.useful_most),
        };
        Some(Charge { paid, useful, left_millis, most_millis })
    }

    pub(super) fn report(&self) -> LineReport {
        let (last, line) = (self.last(), self.line.upgrade());
        let pid = line.as_ref().and_then(Line::pid);
        LineReport {
            server: self.server.clone(),
            state: last.status.state.to_string(),
            generation: last.status.generation,
            since: rfc3339(last.since.0),
            since_millis: millis(last.since.1),
            cause: last.cause.as_ref().map(|(why, _)| Reason::from(&**why)),
            ended: last.cause.as_ref().map(|(_, (at, _))| rfc3339(*at)),
            ended_millis: last.cause.as_ref().map(|(_, (_, at))| millis(*at)),
            budget_millis: last.status.budget,
            budget_most_millis: self.budget_most,
            useful_millis: last.status.useful,
            useful_most_millis: self.useful_most,
            // What it waits for is no event: the line is asked.
            next_try: line
                .map_or_else(|| last.status.next_try(), |line| line.status().next_try())
                .map(|next| next.to_string()),
            health: last.status.health().map(|health| health.dated(pid)),
            pid,
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("server", &self.server).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Followed;
    use crate::journal::What;
    use linetender::{Rig, Server, State};

    #[tokio::test]
    async fn only_a_change_is_written_down() {
        let line = Rig::new().lazy(Server::stdio("s", ["true"]));
        let followed = Followed::new(&line);
        let mut status = line.status();
        assert_eq!(followed.heard(&status), None, "it stood there before");
        (status.state, status.generation) = (State::Dialing, 1);
        assert!(matches!(followed.heard(&status), Some(What::State { generation: 1, .. })));
        status.budget -= 1;
        assert_eq!(followed.heard(&status), None);
        assert_eq!(followed.report().budget_millis, 4999, "but whoever asks is told");
        status.generation = 2;
        assert!(followed.heard(&status).is_some());
    }
}
