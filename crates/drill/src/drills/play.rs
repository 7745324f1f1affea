//! One run of a scenario: what is under way, the fault, who was told what, and whether it works again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use linetender::ServerState;
use linetender_badserver::process::unread;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::act::{self, Done};
use super::agent::{Agent, Call, HUNG, Made, Notes, Outcome};
use super::stage::Stage;
use super::system;
use crate::dice::Dice;
use crate::results::{Event, Provable};
use crate::scenario::{Enough, Expect, Fault, Load, Scenario, Told, Tries, Until};

/// How long calls may take to get where they shall be before it happens.
const THERE: Duration = Duration::from_secs(10);

/// How long a server may take to answer its first call, on a machine that is busy.
const STARTS: Duration = Duration::from_secs(30);

/// When a pipe counts as full: it is made of pages, and a message that does not fit into the rest of one begins another.
const PIPE: u64 = 30_000;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(1);

/// How long an agent waits before it asks again whether all is well.
const AGAIN: Duration = Duration::from_millis(5);

/// A daemon is started in one of so many runs of an instance.
const DAEMON_EVERY: u32 = 10;

/// How long a server works on after it has started a daemon. The daemon's parent has ended, and linetender looks twice a second.
const DAEMON_LEAVES: Duration = Duration::from_millis(1500);

/// Between two calls in that time.
const DAEMON_PAUSE: Duration = Duration::from_millis(100);

/// How much longer it takes until a call works, if the agent has to set something up, in milliseconds.
const SETS_UP: u64 = 1500;

/// The longest that a fault is put off by chance, in microseconds.
const JITTER: u64 = 3000;

/// What a run came to.
#[derive(Default)]
pub(crate) struct Run {
    /// Every call, by its nonce.
    pub(crate) calls: BTreeMap<String, Made>,
    /// Those that ask whether it works yet, or again: how many fit into the wait is nobody's merit or fault. They are
    /// judged, and not counted.
    pub(crate) knocks: BTreeSet<String>,
    /// Which load the calls under way are of.
    pub(crate) loads: BTreeMap<String, usize>,
    pub(crate) provable: Provable,
    /// How often each call was sent, where the target reports that to the drill.
    pub(crate) sent: BTreeMap<String, u32>,
    pub(crate) told_ms: Option<f64>,
    pub(crate) back_ms: Option<f64>,
    pub(crate) findings: Vec<String>,
    pub(crate) events: Vec<Event>,
}

/// A run under way.
struct Play<'a> {
    scenario: &'a Scenario,
    stage: &'a mut Stage,
    notes: Arc<Notes>,
    run: u32,
    slack: f64,
    /// The refusals after which the target may send a call again.
    believed: &'static [&'static str],
    /// The calls under way, with their load.
    nonces: Vec<(usize, String)>,
    tasks: JoinSet<()>,
    last: u32,
    /// Words that are the server's own, also in an error.
    own: Arc<[String]>,
    result: Run,
}

/// Plays a scenario once.
pub(crate) async fn play(
    scenario: &Scenario,
    stage: &mut Stage,
    run: u32,
    slack: f64,
    believed: &'static [&'static str],
    dice: &mut Dice,
) -> Run {
    let (notes, nonces, tasks) = (Arc::new(Notes::start()), Vec::new(), JoinSet::new());
    let (own, result) = (scenario.server.own_words.clone().into(), Run::default());
    let mut play = Play { scenario, stage, notes, run, slack, believed, nonces, tasks, last: 0, own, result };
    play.through(dice).await;
    play.tasks.shutdown().await;
    play.result.calls = play.notes.take();
    play.result.sent = play.stage.sent();
    play.result.loads = play.nonces.into_iter().map(|(load, nonce)| (nonce, load)).collect();
    play.result
}

impl Play<'_> {
    async fn through(&mut self, dice: &mut Dice) {
        let Expect {
            told_within_ms, back_within_ms, cause, same_list, starts, gone_within_ms, answered, ..
        } = &self.scenario.expect;
        let before = self.prepare(*same_list).await;
        // What was started to get ready is not counted; where nothing was to get ready, all of it is.
        let started = if self.is_prepared() { self.stage.server.starts() } else { self.stage.started };
        let loads = self.scenario.load.iter().enumerate();
        for (number, load) in loads.clone().filter(|(_, load)| load.until != Until::After) {
            self.begin(number, load).await;
        }
        if self.scenario.fault != Fault::None {
            tokio::time::sleep(Duration::from_micros(dice.below(JITTER))).await;
        }
        let aim = act::aim(self.scenario, self.stage).await;
        let fault = self.notes.now();
        let done = match aim {
            Ok(aim) => act::act(self.scenario, self.stage, self.run, aim).await,
            Err(found) => Err(found),
        };
        match done {
            Ok(Done::Done) => {}
            Ok(Done::Ended(took)) => self.within("nothing was left", took, *gone_within_ms),
            Err(found) => self.finds(found),
        }
        for (number, load) in loads.filter(|(_, load)| load.until == Until::After) {
            self.begin(number, load).await;
        }
        if self.scenario.fault == Fault::TakeBack {
            self.take_back().await;
        }
        if let Some(tries) = &self.scenario.tries {
            self.keeps_trying(tries, Duration::from_millis(*back_within_ms)).await;
        }
        self.all_told(fault, *told_within_ms).await;
        if let Err(found) = act::undo(self.scenario, self.stage).await {
            self.finds(found);
        }
        // What was mended, or told to speak again, is waited for from there on.
        let from = if matches!(self.scenario.fault, Fault::Refuse | Fault::Silence) {
            self.notes.now()
        } else {
            fault
        };
        self.back(from, *back_within_ms).await;
        self.hold_against(cause);
        self.enough_answered(*answered);
        self.lists(before).await;
        self.stage.started = self.stage.server.starts();
        // The one that was there counts as well.
        let all = self.stage.started.saturating_sub(started) + started.min(1);
        if let Some(most) = starts.filter(|most| all > *most as usize) {
            self.finds(format!("the server was started {all} times, and at most {most} were expected"));
        }
        self.tell_events(fault);
    }

    /// Whether calls are answered before anything happens.
    const fn is_prepared(&self) -> bool {
        self.scenario.server.broken.is_none() && self.scenario.server.warm > 0
    }

    /// Whether the agent needs something in the server's memory.
    fn has_context(&self) -> bool {
        self.stage.tells_of_losses(self.stage.server.keeps_contexts())
    }

    /// Calls that are answered, and the list as it is.
    async fn prepare(&mut self, list: bool) -> Option<String> {
        if self.scenario.server.broken.is_some() {
            return None;
        }
        let begun = self.notes.now();
        let mut answered = 0;
        while answered < self.scenario.server.warm {
            match self.ask().await {
                Some(Outcome::Answered(_)) => answered += 1,
                // How long a server takes to start is the machine's business.
                Some(Outcome::Failed(_) | Outcome::Error(_))
                    if answered == 0 && self.notes.now() < begun + STARTS =>
                {
                    self.result.knocks.insert(self.last_asked());
                    tokio::time::sleep(AGAIN).await;
                }
                // What was given up in an earlier run may have ended the server since.
                Some(Outcome::Failed(_))
                    if self.stage.memory.was_refused_by_rule(&self.last_asked())
                        && self.notes.now() < begun + STARTS =>
                {
                    self.result.knocks.insert(self.last_asked());
                }
                outcome => {
                    let said = outcome.map_or_else(|| "nothing".to_owned(), |outcome| outcome.words());
                    self.finds(format!("before anything happened, a call was told: {said}"));
                    break;
                }
            }
        }
        self.leave_daemons().await;
        if !list && self.scenario.fault != Fault::ChangeAndKill {
            return None;
        }
        let before = self.list().await;
        if before.is_none() {
            self.finds("the list of tools could not be read".to_owned());
        }
        before
    }

    fn call(&self, tool: &str, nonce: String, args: Map<String, Value>) -> Call {
        Call { tool: tool.to_owned(), nonce, args, own: self.own.clone() }
    }

    async fn list(&self) -> Option<String> {
        tokio::time::timeout(HUNG, self.stage.agent.list()).await.ok().flatten()
    }

    /// Has the server start a daemon, and works on until it is plain that the daemon has left.
    async fn leave_daemons(&mut self) {
        if !self.stage.habits.has_daemon || !self.run.is_multiple_of(DAEMON_EVERY) {
            return;
        }
        self.ask_for("daemon").await;
        let begun = self.notes.now();
        while self.notes.now() < begun + DAEMON_LEAVES {
            tokio::time::sleep(DAEMON_PAUSE).await;
            self.ask().await;
            self.result.knocks.insert(self.last_asked());
        }
    }

    /// One call that shows whether all is well; `None` if it hung. The agent sets up first what it needs and does not have.
    async fn ask(&mut self) -> Option<Outcome> {
        if self.has_context()
            && let Some(pause) = self.stage.memory.sets_up_after()
        {
            tokio::time::sleep(pause).await;
            let outcome = self.ask_for("use").await;
            self.result.knocks.insert(self.last_asked());
            if !matches!(outcome, Some(Outcome::Answered(_))) {
                return outcome;
            }
        }
        self.ask_for(self.stage.server.probe()).await
    }

    /// One call of this tool.
    async fn ask_for(&mut self, tool: &str) -> Option<Outcome> {
        self.last += 1;
        let nonce = self.last_asked();
        let mut args = Map::new();
        let argument = if tool == "use" { "what" } else { "message" };
        args.insert(argument.to_owned(), nonce.as_str().into());
        let call = self.call(tool, nonce.clone(), args);
        // Where a server may take minutes to be replaced, an agent that gave up each call sooner would ask for its own trouble.
        let patience = HUNG.max(Duration::from_millis(self.scenario.expect.back_within_ms / 4));
        one(Arc::clone(&self.stage.agent), Arc::clone(&self.notes), call, patience).await;
        self.notes.of(&nonce)?.told.map(|(_, outcome)| outcome)
    }

    /// The nonce of the call that last showed whether all is well.
    fn last_asked(&self) -> String {
        format!("{}-{}-w{}e", self.scenario.name, self.run, self.last)
    }

    /// Makes the calls of a load, and waits until they are where they shall be.
    async fn begin(&mut self, number: usize, load: &Load) {
        let first = self.nonces.len();
        for call in 0..load.calls {
            let nonce = format!("{}-{}-l{number}c{call}e", self.scenario.name, self.run);
            let mut args = load.args.clone();
            if load.pad > 0 {
                args.insert("x".to_owned(), Value::from("x".repeat(load.pad)));
            }
            let (agent, notes) = (Arc::clone(&self.stage.agent), Arc::clone(&self.notes));
            // Written down before it is made, so that nobody looks for it in vain.
            self.notes.asks(&nonce, &load.tool);
            let made = self.call(&load.tool, nonce.clone(), args);
            self.tasks.spawn(one(agent, notes, made, self.hung()));
            self.nonces.push((number, nonce));
            if let Some(ms) = load.every_ms {
                let told = self.until(first + call as usize, |made, _| made.told.is_some());
                let _ = tokio::time::timeout(self.hung(), told).await;
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
        let there = async {
            match load.until {
                Until::Sent | Until::After => tokio::task::yield_now().await,
                Until::Told => self.until(first, |made, _| made.told.is_some()).await,
                // One that was told something will not run any more.
                Until::Running => self.until(first, |made, runs| runs || made.told.is_some()).await,
                Until::Piped => {
                    let all = (load.pad as u64 * u64::from(load.calls)).min(PIPE);
                    while self.stage.processes().first().is_none_or(|pid| unread(*pid) < all) {
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
        };
        let limit = if load.until == Until::Told { self.hung() } else { THERE };
        if tokio::time::timeout(limit, there).await.is_err() && load.until != Until::Told {
            self.finds(format!("{} calls of {} never got as far as {:?}", load.calls, load.tool, load.until));
        }
        // An end that crosses with the next call would be a fault of another row.
        if let (Until::Told, Some(web)) = (load.until, &self.stage.server.web) {
            web.delivered().await;
        }
    }

    /// Until this is so of every call from there on.
    async fn until(&self, first: usize, so: impl Fn(&Made, bool) -> bool) {
        loop {
            let runs =
                self.stage.server.book.as_ref().map(linetender_badserver::Book::runs).unwrap_or_default();
            let all = self.nonces[first..].iter().all(|(_, nonce)| {
                self.notes.of(nonce).is_none_or(|made| so(&made, runs.contains_key(nonce)))
            });
            if all {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn hung(&self) -> Duration {
        Duration::from_millis(self.scenario.expect.hung_ms)
    }

    /// An agent that gives up on each of its calls and tries again, for twice as long as it may take at most.
    async fn keeps_trying(&mut self, tries: &Tries, most: Duration) {
        let (begun, gives_up) = (self.notes.now(), Duration::from_millis(tries.gives_up_ms));
        for number in 0.. {
            let nonce = format!("{}-{}-t{number}e", self.scenario.name, self.run);
            let call = self.call(&tries.tool, nonce.clone(), Map::new());
            let outcome = tokio::time::timeout(gives_up, self.stage.agent.call(&call)).await;
            if outcome.is_err() {
                self.stage.agent.takes_back(&nonce).await;
            }
            let answered = matches!(outcome, Ok(Outcome::Answered(_)));
            if let Some(runs) =
                self.stage.server.book.as_ref().and_then(|book| book.runs().get(&nonce).copied())
                && runs > 1
            {
                self.finds(format!("{nonce} was given up, and ran {runs} times"));
            }
            let told = self
                .nonces
                .iter()
                .all(|(_, nonce)| self.notes.of(nonce).is_none_or(|made| made.told.is_some()));
            let enough = match tries.until {
                Enough::Back => answered || self.notes.now() > begun + most.mul_f64(2.0 * self.slack),
                Enough::Told => told,
                Enough::Times(times) => number + 1 >= times,
            };
            if enough {
                return;
            }
            tokio::time::sleep(Duration::from_millis(tries.pause_ms)).await;
        }
    }

    fn enough_answered(&mut self, least: Option<u32>) {
        let Some(least) = least else { return };
        let answered = |nonce: &String| {
            matches!(self.notes.of(nonce).and_then(|made| made.told), Some((_, Outcome::Answered(_))))
        };
        let count = self.nonces.iter().filter(|(_, nonce)| answered(nonce)).count();
        if count < least as usize {
            self.finds(format!(
                "{count} of {} calls were answered, and at least {least} should be",
                self.nonces.len()
            ));
        }
    }

    async fn take_back(&mut self) {
        self.tasks.abort_all();
        for (_, nonce) in std::mem::take(&mut self.nonces) {
            self.stage.agent.takes_back(&nonce).await;
            self.notes.abandons(&nonce);
        }
    }

    /// Every call under way is told something, in time.
    async fn all_told(&mut self, fault: Duration, within: Option<u64>) {
        while self.tasks.join_next().await.is_some() {}
        let told = self.nonces.iter().filter_map(|(_, nonce)| Some(self.notes.of(nonce)?.told?.0));
        let Some(last) = told.max().filter(|_| self.scenario.is_in_flight()) else { return };
        let took = last.saturating_sub(fault);
        self.result.told_ms = Some(ms(took));
        self.within("the last call under way was told", took, within);
    }

    /// Asks until a call works, and gives up by how long it asked: what was under way has taken its own time before.
    async fn back(&mut self, from: Duration, within: u64) {
        // An agent that has lost what it set up thinks before it goes on.
        let within = within + if self.has_context() { SETS_UP } else { 0 };
        let limit = Duration::from_millis(within).mul_f64(self.slack).max(HUNG);
        let (next, begun) = (self.last + 1, self.notes.now());
        for knocks in 1.. {
            if let Err(found) = self.stage.mend_front().await {
                return self.finds(found);
            }
            let works = matches!(self.ask().await, Some(Outcome::Answered(_)));
            if self.last > next {
                self.result.knocks.insert(self.last_asked());
            }
            let now = self.notes.now();
            if works {
                let took = now.saturating_sub(from);
                self.result.back_ms = Some(ms(took));
                return self.within("a call worked again", took, Some(within));
            }
            let asked = now.saturating_sub(begun);
            // One that hangs may be what wakes it up.
            if asked > limit && knocks > 1 {
                return self.finds(format!("no call worked again in {:.1} s of asking", asked.as_secs_f64()));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// What each caller was told is one of what it may be told.
    fn hold_against(&mut self, cause: &[String]) {
        for (number, nonce) in self.nonces.clone() {
            let load = &self.scenario.load[number];
            let Some((_, outcome)) = self.notes.of(&nonce).and_then(|made| made.told) else { continue };
            if self.is_by_rule_of_contexts(&nonce, &outcome) {
                continue;
            }
            let recovered = matches!(outcome, Outcome::Answered(_));
            if load.provable {
                self.result.provable.add(Provable { calls: 1, recovered: u64::from(recovered) });
            }
            let is_refused =
                load.refused.as_ref().is_some_and(|word| !self.believed.contains(&word.as_str()));
            let may = |told: &Told| {
                load.told.contains(told) || *told == Told::Closed || is_refused && *told == Told::Refused
            };
            // What says too little is the checker's to find.
            if let Some(told) = outcome.told().filter(|told| !may(told)) {
                self.finds(format!("{nonce} ({}) was told {}: {}", load.tool, told.word(), outcome.words()));
            }
            if let Outcome::Failed(failure) = &outcome
                && !load.told.contains(&Told::Answered)
                && !cause.is_empty()
                && !cause.iter().any(|word| system::is_said(word, &failure.cause))
            {
                self.finds(format!("{nonce} was told a cause without any of {cause:?}: {failure}"));
            }
            if let Outcome::Answered(text) = &outcome
                && matches!(load.tool.as_str(), "echo" | "write" | "sleep")
                && !text.contains(&nonce)
            {
                self.finds(format!("{nonce} got an answer that is not its own"));
            }
        }
    }

    /// Whether a call was not executed for its context, which comes before everything that the scenario permits.
    fn is_by_rule_of_contexts(&self, nonce: &str, outcome: &Outcome) -> bool {
        let is_refused = self.has_context() && self.stage.memory.was_refused_by_rule(nonce);
        // Where everything is state, no call is sent again, also if its agent cannot be told of the loss.
        let keeps = self.stage.habits.state == ServerState::Process && self.stage.server.keeps_contexts();
        is_refused || (keeps && matches!(outcome.told(), Some(Told::NotExecuted | Told::Refused)))
    }

    async fn lists(&mut self, before: Option<String>) {
        let Some(before) = before else { return };
        let changed = self.scenario.fault == Fault::ChangeAndKill;
        // A list that changed is read anew once the server is back; that may be after its first answer.
        let begun = self.notes.now();
        loop {
            let after = self.list().await;
            let good = match &after {
                Some(after) if changed => after.contains(&format!("surprise_{}", self.run)),
                Some(after) => *after == before,
                None => false,
            };
            if good {
                return;
            }
            if !changed || self.notes.now() > begun + HUNG {
                return self.finds("the list of tools is not what it should be".to_owned());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn within(&mut self, what: &str, took: Duration, most: Option<u64>) {
        let Some(most) = most else { return };
        if took > Duration::from_millis(most).mul_f64(self.slack) {
            let slack = if self.slack > 1.0 { format!(" × {}", self.slack) } else { String::new() };
            self.finds(format!("{what} after {:.0} ms, and at most {most}{slack} were allowed", ms(took)));
        }
    }

    fn finds(&mut self, what: String) {
        self.result.findings.push(what);
    }

    fn tell_events(&mut self, fault: Duration) {
        let since = |at: Duration| ms(at) - ms(fault);
        let event = |ms: f64, what: &str, text: String| Event { ms, what: what.to_owned(), text };
        let mut events = vec![event(0.0, "fault", self.scenario.title.clone())];
        for (_, nonce) in &self.nonces {
            let Some(made) = self.notes.of(nonce) else { continue };
            events.push(event(since(made.at), "call", made.tool.clone()));
            if let Some((at, outcome)) = made.told {
                let what = if outcome.told() == Some(Told::Answered) { "answer" } else { "error" };
                events.push(event(since(at), what, outcome.words()));
            }
        }
        if let Some(back) = self.result.back_ms {
            events.push(event(back, "answer", "the next call works".to_owned()));
        }
        events.sort_by(|one, other| one.ms.total_cmp(&other.ms));
        self.result.events = events;
    }
}

/// One call, and what it was told; one that is told nothing in time is left to the checker.
async fn one(agent: Arc<Agent>, notes: Arc<Notes>, call: Call, hung: Duration) {
    notes.asks(&call.nonce, &call.tool);
    if let Ok(outcome) = tokio::time::timeout(hung, agent.call(&call)).await {
        notes.told(&call.nonce, outcome);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
