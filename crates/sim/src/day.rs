//! A working day of one agent with eight servers: how often it is told that a server's memory is gone.
//!
//! The calls are those that `tools/e2e/harmless --mix` recorded of real servers, with their tools' own annotations. When they
//! are made, and what goes wrong, is drawn: each server is used in pieces of work with pauses between, is restarted once, and
//! meets a lunch and a laptop that sleeps. Two servers are on the network, and their sessions expire when they are not used.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Add;
use std::sync::Arc;
use std::time::Duration;

use linetender::{CallError, Line, Options, Policy, Raw, Rig, Server, ServerState, Settings, package};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use crate::crowd::Crowd;
use crate::habits::{Habits, OnDiscover, Speaks};
use crate::mcp::{LOOK, WRITE};
use crate::net::{Net, Road};
use crate::platform::Simulated;
use crate::process::Blow;
use crate::rng::Rng;
use crate::scene::Scene;
use crate::web::{Manners, Unknown, Web};

/// The recorded calls.
const MIX: &str = include_str!("day/mix.json");

/// From nine to half past five.
const WORK: Duration = Duration::from_secs(510 * 60);
/// Nobody calls anything at lunch, and while the laptop sleeps, from the first for the second of these.
const PAUSES: [(Duration, Duration); 2] = [
    (Duration::from_secs(180 * 60), Duration::from_secs(60 * 60)),
    (Duration::from_secs(330 * 60), Duration::from_secs(45 * 60)),
];
/// The servers that are on the network, and how long their sessions live without a call.
const EXPIRE: [(&str, Duration); 2] =
    [("everything", Duration::from_secs(5 * 60)), ("duckdb", Duration::from_secs(30 * 60))];
/// The servers that are stopped when nobody uses them, and after how long.
const IDLE_STOP: [(&str, Duration); 1] = [("git-cyanheads", Duration::from_secs(10 * 60))];
/// A model that reads an error writes its next call after so many milliseconds.
const MODEL: (u64, u64) = (2000, 15_000);
/// Calls of a parallel batch, and in how many per cent of pieces of work the calls are made so.
const BATCH: (usize, u64) = (5, 20);
/// More tries than that nobody makes.
const TRIES: usize = 4;

/// What linetender is told about the servers' memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Declared {
    /// Nothing: `state = "unknown"` for all.
    Nothing,
    /// What the lists of known packages say, which is what `run` and `wrap` do.
    Lists,
    /// `--stateless` for all.
    Stateless,
}

/// What one server's calls came to.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Which.
    pub server: String,
    /// What linetender took it for.
    pub state: ServerState,
    /// Calls that the model wrote, those after a refusal too.
    pub calls: u32,
    /// Calls that were refused since the server's memory was gone.
    pub refused: u32,
    /// Times that the model was told: a batch that is refused as a whole is one.
    pub notices: u32,
    /// Calls that were refused, or failed, for another reason.
    pub failed: u32,
    /// Processes or sessions that had answered calls and were replaced.
    pub replaced: u32,
}

/// A day, server by server.
#[derive(Clone, Debug)]
pub struct Day {
    /// What linetender was told.
    pub declared: Declared,
    /// The servers, in the order of the recording.
    pub servers: Vec<Tally>,
}

impl Day {
    /// The sum over all servers of what `of` counts.
    pub fn sum(&self, of: impl Fn(&Tally) -> u32) -> u32 {
        self.servers.iter().map(of).sum()
    }

    /// Refused calls in 1,000.
    pub fn refused_per_thousand(&self) -> f64 {
        f64::from(self.sum(|server| server.refused)) * 1000.0
            / f64::from(self.sum(|server| server.calls).max(1))
    }
}

impl Add for Day {
    type Output = Self;

    /// Several days with the same servers as one.
    fn add(mut self, other: Self) -> Self {
        for (of, more) in self.servers.iter_mut().zip(&other.servers) {
            of.calls += more.calls;
            of.refused += more.refused;
            of.notices += more.notices;
            of.failed += more.failed;
            of.replaced += more.replaced;
        }
        self
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Tally { server, state, calls, refused, notices, failed, replaced } in &self.servers {
            writeln!(
                f,
                "| {server} | {state:?} | {calls} | {replaced} | {notices} | {refused} | {failed} |"
            )?;
        }
        let sum = |of: fn(&Tally) -> u32| self.sum(of);
        let (calls, replaced, notices, refused, failed) = (
            sum(|s| s.calls),
            sum(|s| s.replaced),
            sum(|s| s.notices),
            sum(|s| s.refused),
            sum(|s| s.failed),
        );
        let rate = self.refused_per_thousand();
        writeln!(
            f,
            "| **all** | {:?} | {calls} | {replaced} | {notices} | {refused} ({rate:.1} per 1,000) | {failed} |",
            self.declared
        )
    }
}

/// Plays the day of this seed. The same seed is the same day whatever is declared, up to the first refusal.
///
/// # Panics
/// If there is no runtime to be had, or the recording cannot be read.
pub fn play_day(seed: u64, declared: Declared) -> Day {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without a thread of its own");
    let mix: Vec<Value> = serde_json::from_str(MIX).expect("a recording");
    let mut rng = Rng::new(seed);
    let servers = runtime.block_on(async {
        let rig = Rig::with_dials_at_once(4).seeded(rng.next());
        let desks: Vec<_> = mix.iter().map(|of| Desk::new(of, declared, &rig, rng.fork())).collect();
        let tallies = Arc::new(std::sync::Mutex::new(Vec::new()));
        let work = desks.into_iter().enumerate().map(|(number, desk)| {
            let tallies = Arc::clone(&tallies);
            Box::pin(async move {
                let tally = desk.work().await;
                tallies.lock().expect("nobody panicked").push((number, tally));
            }) as _
        });
        Crowd::new(work.collect(), rng.fork()).await;
        let mut tallies = std::mem::take(&mut *tallies.lock().expect("nobody panicked"));
        tallies.sort_by_key(|(number, _)| *number);
        tallies.into_iter().map(|(_, tally)| tally).collect()
    });
    Day { declared, servers }
}

/// One server, and the part of the day's work that is done with it.
struct Desk {
    scene: Arc<Scene>,
    road: Option<Arc<Road>>,
    line: Line,
    /// The recorded calls: whether each only reads.
    reads: Vec<bool>,
    expires: Option<Duration>,
    rng: Rng,
    began: Instant,
    called_at: Instant,
    nonce: u32,
    tally: Tally,
}

impl Desk {
    fn new(of: &Value, declared: Declared, rig: &Rig, mut rng: Rng) -> Self {
        let name = of["server"].as_str().unwrap_or_default();
        let mut settings = Settings::default();
        settings.state = match declared {
            Declared::Nothing => ServerState::Unknown,
            Declared::Lists => package::state_of(of["package"].as_str().unwrap_or_default()),
            Declared::Stateless => ServerState::None,
        };
        let expires = EXPIRE.iter().find(|(server, _)| *server == name).map(|(_, after)| *after);
        let scene = Scene::new(quiet_habits(&mut rng), rng.fork(), false);
        let road = expires.map(|_| {
            let net = Net::new((1, 3), rng.fork());
            let mut manners = Manners::new(&mut rng);
            manners.heal();
            (manners.modern, manners.challenges, manners.unknown) = (false, false, Unknown::NotFound);
            let web = Web::new(&scene, &net, manners);
            Arc::new(Road { net, web })
        });
        let server: Server = match &road {
            Some(road) => Server::http(name, "http://simulated/mcp").across(Arc::clone(road) as _).into(),
            None => Server::stdio(name, [name]).elsewhere(Arc::new(Simulated(Arc::clone(&scene)))).into(),
        };
        let mut server = server.policy(Policy::new(settings).expect("the defaults"));
        if let Some((_, after)) = IDLE_STOP.iter().find(|(idle, _)| *idle == name) {
            server = server.idle_stop(*after);
        }
        let calls = of["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tally = Tally {
            server: name.to_owned(),
            state: settings.state,
            calls: 0,
            refused: 0,
            notices: 0,
            failed: 0,
            replaced: 0,
        };
        let now = Instant::now();
        Self {
            line: rig.open(server),
            reads: calls.iter().map(|call| call["reads"] == true).collect(),
            scene,
            road,
            expires,
            rng,
            began: now,
            called_at: now,
            nonce: 0,
            tally,
        }
    }

    async fn work(mut self) -> Tally {
        let mut restart_at = Some(self.began + self.rng.millis(0, 510 * 60_000));
        let mut pauses = PAUSES.iter();
        let mut pause = pauses.next();
        while self.began.elapsed() < WORK {
            if let Some((from, lasts)) = pause
                && self.began.elapsed() >= *from
            {
                sleep_until(self.began + *from + *lasts).await;
                self.wake_up(*from).await;
                pause = pauses.next();
            }
            if restart_at.is_some_and(|at| Instant::now() >= at) {
                restart_at = None;
                self.crash().await;
            }
            self.piece_of_work().await;
            // Mostly minutes, sometimes an hour.
            let longest = self.rng.pick(&[2, 5, 10, 20, 60]);
            sleep(self.rng.millis(10_000, longest * 60_000)).await;
        }
        self.tally.replaced = self.replaced();
        self.line.close().await;
        self.tally
    }

    /// The laptop is opened again. Lunch is no sleep.
    async fn wake_up(&self, from: Duration) {
        if from == PAUSES[1].0 {
            if let Some(road) = &self.road {
                road.net.reset();
            }
            self.line.slept().await;
        }
    }

    async fn crash(&self) {
        match &self.road {
            Some(road) => {
                road.web.fall();
                sleep(Duration::from_secs(2)).await;
                road.web.stand_up();
            }
            None => self.scene.process().iter().for_each(|process| process.strike(Blow::Kill)),
        }
    }

    /// The recorded calls once, one after the other as a model writes them; or five of them at once.
    async fn piece_of_work(&mut self) {
        if self.rng.percent(BATCH.1) {
            let batch: Vec<_> = (0..BATCH.0).map(|_| self.rng.pick(&self.reads)).collect();
            return self.until_done(batch).await;
        }
        for reads in self.reads.clone() {
            self.until_done(vec![reads]).await;
            self.think().await;
        }
    }

    async fn think(&mut self) {
        sleep(self.rng.millis(MODEL.0, MODEL.1)).await;
    }

    /// Makes these calls at once, and again those that were refused.
    async fn until_done(&mut self, mut calls: Vec<bool>) {
        for _ in 0..TRIES {
            if self.expires.is_some_and(|after| self.called_at.elapsed() >= after)
                && let Some(road) = &self.road
            {
                road.web.forget_sessions();
            }
            self.called_at = Instant::now();
            let asked: Vec<_> = calls.iter().map(|reads| (*reads, self.ask(*reads))).collect();
            let mut again = Vec::new();
            for (reads, asked) in asked {
                self.tally.calls += 1;
                match asked.await.expect("no call panics") {
                    Ok(()) => {}
                    Err(error) if error.context.is_some() => {
                        self.tally.refused += 1;
                        again.push(reads);
                    }
                    Err(_) => {
                        self.tally.failed += 1;
                        again.push(reads);
                    }
                }
            }
            if again.is_empty() {
                return;
            }
            self.tally.notices += 1;
            calls = again;
            self.think().await;
        }
    }

    fn ask(&mut self, reads: bool) -> tokio::task::JoinHandle<Result<(), CallError>> {
        self.nonce += 1;
        let tool = if reads { LOOK } else { WRITE };
        let params = format!(r#"{{"name":"{tool}","arguments":{{"nonce":"{}"}}}}"#, self.nonce);
        let line = self.line.clone();
        crate::tasks::spawn(async move {
            line.request("tools/call", Raw(&params), Options::default()).await.map(drop)
        })
    }

    /// Contexts in which a call ran, but for the last one.
    fn replaced(&self) -> u32 {
        let book = self.scene.book();
        let used: BTreeSet<u64> =
            book.deeds.values().flat_map(|deed| deed.contexts.iter().flatten().copied()).collect();
        u32::try_from(used.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

/// A server that starts in half a second and fails at nothing by itself.
fn quiet_habits(rng: &mut Rng) -> Habits {
    let mut habits = Habits::new(rng);
    habits.heal();
    Habits {
        start: (300, 900),
        work: (5, 200),
        speaks: Speaks::Legacy(OnDiscover::Refuses),
        chats: false,
        stubborn: false,
        ..habits
    }
}
