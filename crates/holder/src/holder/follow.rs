//! One line, followed: from what it says of itself to entries of the journal, and to where it stands.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tokio::time::Instant;

use super::Inner;
use super::report::{LineReport, Moment, Standing, Verdicts};
use crate::journal::{Charge, Entry, LeftProcess, Reason, What};
use crate::tally::{Life, LineTally};
use linetender::{Account, Cost, Event, Events, LeftBehind, Line, NextTry, State, Status, WeakLine, Why};
use linetender_wire::wall::{rfc3339, wall_clock};

/// How many states of a line are kept.
const HISTORY: usize = 64;

/// How many of its journal entries are.
const ENTRIES: usize = 32;

/// A line that is followed.
pub(super) struct Followed {
    server: String,
    line: WeakLine,
    /// The most that its budget can be.
    budget_most: u32,
    useful_most: u32,
    /// The client program of a server that runs somewhere else, and may outlive it.
    far_side: Option<&'static str>,
    tally: Arc<LineTally>,
    last: Mutex<Last>,
}

/// What was last heard of it.
struct Last {
    status: Status,
    since: (SystemTime, Instant),
    /// Why a generation of it last ended, also when it is up again, and when it did.
    cause: Option<(Arc<Why>, (SystemTime, Instant))>,
    /// The states that it was in, and since when.
    history: VecDeque<(State, Instant)>,
    /// Its last entries in the journal.
    entries: VecDeque<Entry>,
    /// What left its server's tree on purpose. The dead are taken out when it is asked for.
    left: Vec<LeftBehind>,
    /// The newest generations that are counted as begun and as ended.
    counted: (u64, u64),
}

impl Followed {
    pub(super) fn new(line: &Line, tally: Arc<LineTally>) -> Self {
        let (status, since) = (line.status(), (wall_clock(), Instant::now()));
        let history = VecDeque::from([(status.state, since.1)]);
        let last = Last {
            status,
            since,
            cause: None,
            history,
            entries: VecDeque::new(),
            left: Vec::new(),
            counted: (0, 0),
        };
        Self {
            server: line.name().to_owned(),
            line: line.downgrade(),
            budget_most: u32::from(line.policy().budget.tokens) * 1000,
            useful_most: u32::from(line.policy().budget.useful_tokens) * 1000,
            far_side: line.far_side(),
            tally,
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
                        self.keep(holder.write(what));
                    }
                }
                Some(Event::Ended { pid, name }) => {
                    self.keep(holder.write(What::Ended { server: self.server.clone(), pid, name }));
                }
                Some(Event::Left(left)) => {
                    let process = LeftProcess::from(&left);
                    self.keep(holder.write(What::Left { server: self.server.clone(), process }));
                    self.last().left.push(left);
                }
                Some(Event::ContainerLeft { id, reason }) => {
                    let (server, container) = (self.server.clone(), id);
                    self.keep(holder.write(What::Container { server, container, reason }));
                }
                Some(Event::Missed(entries)) => {
                    let why = format!("too many events of {} at once", self.server);
                    let _ = holder.write(What::Gap { entries, why });
                }
                Some(_) => {}
                None => {
                    self.over();
                    return holder.let_go(&self);
                }
            }
        }
    }

    fn reason(&self, why: &Why) -> Reason {
        Reason { far_side: self.far_side.map(str::to_owned), ..Reason::from(why) }
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
        if last.history.len() >= HISTORY {
            last.history.pop_front();
        }
        let began = last.since.1;
        last.history.push_back((status.state, began));
        self.count(&mut last.counted, status);
        let calls = Verdicts::from(self.tally.take_since());
        Some(What::State {
            server: self.server.clone(),
            generation: status.generation,
            state: status.state.to_string(),
            cause: status.cause.as_deref().map(|why| self.reason(why)),
            budget_millis: status.budget,
            useful_millis: Some(status.useful).filter(|left| *left < self.useful_most),
            charge: status.cost.and_then(|cost| self.charge(cost, status)),
            next_try: status.next_try().map(|next| next.to_string()),
            calls: Some(calls).filter(|calls| calls.total() > 0),
        })
    }

    /// Connections that came up and that ended, each once.
    fn count(&self, (begun, ended): &mut (u64, u64), status: &Status) {
        let lives = |life| {
            if let Some(tracer) = self.tally.tracer() {
                tracer.generation(status.generation, life);
            }
        };
        match status.state {
            State::Dialing => lives(Life::Dialing),
            State::Up if *begun < status.generation => {
                *begun = status.generation;
                self.tally.server().started();
                lives(Life::Up);
            }
            State::Ending if *ended < status.generation => {
                *ended = status.generation;
                let why = status.cause.as_deref();
                let leaf = why.and_then(|why| why.leaves.first().copied());
                self.tally.server().ended(leaf, why.is_some_and(|why| why.planned));
                lives(Life::Ended(why));
            }
            _ => {}
        }
    }

    /// Its tender is gone. A generation whose end was not told is over too.
    fn over(&self) {
        let last = self.last();
        if let Some(tracer) = self.tally.tracer().filter(|_| last.counted.1 < last.status.generation) {
            tracer.generation(last.status.generation, Life::Ended(None));
        }
    }

    /// Keeps an entry in mind, for whoever asks why.
    fn keep(&self, mut entry: Entry) {
        let mut last = self.last();
        // A cause is told again until the next connection serves: what it wrote to stderr is kept once, with the end or, if it was not
        // known then, with what came after.
        if !is_end(&entry)
            && let What::State { cause: Some(cause), .. } = &mut entry.what
        {
            let end = last.entries.iter().rposition(is_end).unwrap_or(0);
            if last.entries.range(end..).any(|kept| stderr(kept) == cause.stderr.as_ref()) {
                cause.stderr = None;
            }
        }
        if last.entries.len() >= ENTRIES {
            last.entries.pop_front();
        }
        last.entries.push_back(entry);
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.last().entries.iter().cloned().collect()
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// The line, if it is held still.
    pub(super) fn line(&self) -> Option<Line> {
        self.line.upgrade()
    }

    /// Its server's process, if it is one of this machine: server, generation, number.
    pub(super) fn process(&self) -> Option<(String, u64, i32)> {
        let line = self.line()?;
        Some((self.server.clone(), line.status().generation, line.pid()?))
    }

    pub(super) fn standing(&self) -> Standing {
        let (last, line) = (self.last(), self.line.upgrade());
        let next_try = line.map_or_else(|| last.status.next_try(), |line| line.status().next_try());
        // A budget of nothing is not what a line runs out of.
        let left = |now: u32, most: u32| if most == 0 { 1.0 } else { f64::from(now) / f64::from(most) };
        Standing {
            server: self.server.clone(),
            state: last.status.state,
            budget: left(last.status.budget, self.budget_most)
                .min(left(last.status.useful, self.useful_most)),
            next_try: next_try.filter(|next| *next != NextTry::Now).and_then(NextTry::wait),
        }
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
        let (mut last, line) = (self.last(), self.line.upgrade());
        last.left = last.left.iter().filter_map(LeftBehind::again).collect();
        let pid = line.as_ref().and_then(Line::pid);
        let keeper = line.as_ref().and_then(Line::keeper);
        let not_shared = line.as_ref().and_then(Line::not_shared);
        // What it waits for is no event: the line is asked.
        let next_try = line.map_or_else(|| last.status.next_try(), |line| line.status().next_try());
        LineReport {
            server: self.server.clone(),
            state: last.status.state.to_string(),
            generation: last.status.generation,
            since: rfc3339(last.since.0),
            since_millis: millis(last.since.1),
            cause: last.cause.as_ref().map(|(why, _)| self.reason(why)),
            ended: last.cause.as_ref().map(|(_, (at, _))| rfc3339(*at)),
            ended_millis: last.cause.as_ref().map(|(_, (_, at))| millis(*at)),
            budget_millis: last.status.budget,
            budget_most_millis: self.budget_most,
            useful_millis: last.status.useful,
            useful_most_millis: self.useful_most,
            next_try: next_try.map(|next| next.to_string()),
            next_try_millis: next_try
                .filter(|next| *next != NextTry::Now)
                .and_then(|next| u64::try_from(next.wait()?.as_millis()).ok()),
            health: last.status.health().map(|health| health.dated(pid)),
            heard_millis: last
                .status
                .last_heard()
                .map(|heard| u64::try_from(heard.as_millis()).unwrap_or(u64::MAX)),
            pid,
            keeper,
            not_shared,
            left: last.left.iter().map(LeftProcess::from).collect(),
            history: last
                .history
                .iter()
                .map(|(state, at)| Moment { state: state.to_string(), ago_millis: millis(*at) })
                .collect(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_end(entry: &Entry) -> bool {
    matches!(&entry.what, What::State { state, .. } if state == State::Ending.name())
}

fn stderr(entry: &Entry) -> Option<&String> {
    match &entry.what {
        What::State { cause: Some(cause), .. } => cause.stderr.as_ref(),
        _ => None,
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
    use std::sync::Weak;

    use super::Followed;
    use crate::journal::{Entry, What};
    use crate::story::{Story, wall_clock};
    use crate::tally::Tally;
    use linetender::{Rig, Server, State};

    #[tokio::test]
    async fn only_a_change_is_written_down() {
        let line = Rig::new().lazy(Server::stdio("s", ["true"]));
        let followed = Followed::new(&line, Tally::new().line("s", line.transport(), Weak::new()));
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

    #[tokio::test]
    async fn what_a_server_wrote_to_stderr_is_kept_once_and_told() {
        let line = Rig::new().lazy(Server::stdio("s", ["true"]));
        let entry = |generation: u64, state: &str, stderr: Option<&str>| -> Entry {
            let cause = serde_json::json!({ "text": "exited with status 3", "leaves": ["exit"], "seen": "exited", "status": 3,
                "stderr": stderr });
            let entry = serde_json::json!({ "v": 1, "at": format!("2026-11-17T03:00:0{generation}.000Z"), "holder": 7,
                "door": "run", "what": "state", "server": "s", "generation": generation, "state": state,
                "budget_millis": 4000, "cause": cause });
            serde_json::from_value(entry).unwrap()
        };
        // It is known when the connection ends, or a moment later.
        for at_end in [Some("no token"), None] {
            let followed = Followed::new(&line, Tally::new().line("s", line.transport(), Weak::new()));
            for generation in 1..=3 {
                followed.keep(entry(generation, "dialing", Some("no token")));
                followed.keep(entry(generation, "ending", at_end));
                followed.keep(entry(generation, "waiting", Some("no token")));
            }
            followed.keep(entry(3, "parked", Some("no token")));
            let entries = followed.entries();
            let kept = entries.iter().filter(|entry| super::stderr(entry).is_some()).count();
            assert_eq!(kept, 4, "one for each end, and one from before: {entries:?}");
            let story = Story::of("s", &entries, None, wall_clock(), 5);
            assert_eq!(story.deaths[0].stderr, ["no token"], "{story:?}");
            assert_eq!(story.deaths[0].times, 3, "{story:?}");
        }
    }
}
