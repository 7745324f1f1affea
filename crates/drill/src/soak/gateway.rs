//! Many agents of both eras on many servers through the real `linetender serve`, while a fault a second is drawn from a
//! written-down mix; and then the judge: every call against the servers' own books, every process and descriptor counted.
//!
//! The gateway is a process, and everything here is outside of it. The time is cut into windows with faults and shorter ones
//! without, in which servers that nobody touches are measured.
//!
//! With principals the gateway knows its agents by tokens, and what is looked for is anything of one that reaches another.

mod agent;
mod agree;
mod house;

mod mix;
mod notes;
mod principals;
mod saboteur;
mod serve;
mod verdict;
mod ways;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender::Era;
use linetender_holder::holder::Report;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::runtime;
use crate::dice::Dice;
use agent::{Agent, HUNG, World};
use agree::Agreement;
use house::{House, Kind, Scope};
use notes::Notes;
use principals::{Intruder, Looks, Principals, Resident};
use saboteur::Saboteur;
use serve::{Has, Serve};
pub use verdict::Verdict;
use ways::Way;

/// One fault in this time.
const FAULT_EVERY: Duration = Duration::from_secs(1);

/// How often the gateway's processes are counted, and what is due is mended.
const TICK: Duration = Duration::from_millis(100);

/// A window with faults; one without is half as long.
const WINDOW: Duration = Duration::from_secs(10);

/// What a window without faults begins with, unmeasured: the last faults are still being recovered from.
const SETTLES: Duration = Duration::from_secs(2);

/// How long agents live before the gateway's rest is looked at the first time.
const WARM: Duration = Duration::from_secs(3);

/// The longest that an agent thinks between two calls; those of the servers that are measured think less.
const THINKS: Duration = Duration::from_millis(500);
const MEASURED_THINKS: Duration = Duration::from_millis(40);

/// With principals: the longest that their agents think, and that an intruder does; one intruder for so many of them.
const PRINCIPALS_THINK: Duration = Duration::from_secs(3);
const INTRUDER_THINKS: Duration = Duration::from_millis(600);
const INTRUDERS: usize = 4;

/// With principals: every so many faults the config is changed and read again, and every so many looks at processes are looks at
/// what servers were given.
const RELOAD: u32 = 4;
const LOOKS: u64 = 5;

/// With principals: in a run as long as that everything that can be heard is; what is not was not tested.
const FULL: Duration = Duration::from_secs(60);

/// How long servers may take to be there, at the start and at the end.
const ALL_UP: Duration = Duration::from_secs(60);

/// How long the gateway may take to come to rest: pooled connections and unused sessions have to run out.
const REST: Duration = Duration::from_secs(30);

/// What the gateway's memory may have grown by at rest, in KiB: allocators keep some of what there once was.
const GROWN: usize = 48 * 1024;

/// And with principals for each of them: its own lines are gone at rest, and were not yet there when it was looked first.
const GROWN_EACH: usize = 512;

/// How long p99 may be under faults, against without.
const RATIO: f64 = 1.5;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `linetender` binary.
    pub linetender: PathBuf,
    /// How long there are faults.
    pub time: Duration,
    /// What chance begins with.
    pub seed: u64,
    /// How many agents.
    pub agents: usize,
    /// How many principals, each with a token and agents of both eras; with none, agents need no tokens.
    pub principals: usize,
    /// Whether the ratio of p99 is a finding: it takes a long run, and a machine that others leave alone.
    pub strict: bool,
}

impl Options {
    /// For so long, with as many agents as the figures in docs/measurements.md were taken with.
    pub fn new(linetender: PathBuf, seconds: u64, seed: u64) -> Self {
        Self { linetender, time: Duration::from_secs(seconds), seed, agents: 64, principals: 0, strict: true }
    }
}

/// Runs it, prints the verdict, and says it by the exit code.
pub fn gateway(options: &Options, as_json: bool) -> ExitCode {
    eprintln!("seed {}", options.seed);
    match gateway_verdict(options) {
        Ok(verdict) => {
            println!("{}", if as_json { verdict.json() } else { verdict.to_string() });
            if verdict.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(broken) => {
            println!("BROKEN: {broken}");
            ExitCode::FAILURE
        }
    }
}

/// Runs it.
///
/// # Errors
/// If it could not even begin.
pub fn gateway_verdict(options: &Options) -> Result<Verdict, String> {
    runtime().block_on(Soak::run(options))
}

/// A run.
struct Soak {
    house: House,
    serve: Serve,
    world: World,
    saboteur: Saboteur,
    principals: Option<Arc<Principals>>,
    looks: Looks,
    strikes: u32,
    seed: u64,
    agents: usize,
    /// Calls that only waited for a server: each has a name of its own in the books.
    greetings: u32,
    /// What the gateway said of itself at the end: its status, its page, its metrics.
    status: Option<(Report, (Report, String))>,
    verdict: Verdict,
}

impl Soak {
    async fn run(options: &Options) -> Result<Verdict, String> {
        let house = House::build(&options.linetender, options.principals > 0);
        let house = house.map_err(|error| error.to_string())?;
        let principals = match options.principals {
            0 => None,
            count => Some(Principals::make(count, &house.folder).await?),
        };
        let serve = Serve::start(&options.linetender, &house).await?;
        let servers: Arc<[_]> = house.servers.clone().into();
        let notes = Arc::new(Notes::new(servers.len()));
        let pass = principals.as_ref().map(Principals::operator);
        let world = World { gateway: serve.address, servers, notes, pass };
        let saboteur = Saboteur::new(world.clone(), Dice::new(options.seed));
        // Each principal has one of either era.
        let agents = if principals.is_some() { options.principals * 2 } else { options.agents };
        let verdict = Verdict {
            seed: options.seed,
            agents,
            servers: world.servers.len(),
            missing: house.missing.clone(),
            ..Verdict::default()
        };
        let (seed, looks, strikes, greetings) = (options.seed, Looks::default(), 0, 0);
        let mut soak = Self {
            house,
            serve,
            world,
            saboteur,
            principals,
            looks,
            strikes,
            seed,
            agents,
            greetings,
            status: None,
            verdict,
        };
        soak.all_answer().await?;
        soak.lives(if soak.principals.is_some() { WARM * 2 } else { WARM }, false).await;
        soak.verdict.before = soak.rest(None).await;
        soak.lives(options.time, true).await;
        if let Err(found) = soak.all_answer().await {
            soak.finds(found);
        }
        soak.verdict.after = soak.rest(Some(soak.verdict.before)).await;
        soak.count_at_rest();
        match agree::status(&soak.house.folder, soak.serve.id()).await {
            Ok(status) => match agree::elsewhere(soak.serve.admin()).await {
                Ok(elsewhere) => soak.status = Some((status, elsewhere)),
                Err(found) => soak.finds(found),
            },
            Err(found) => soak.finds(found),
        }
        soak.end(options.strict, options.time).await
    }

    fn finds(&self, what: String) {
        self.world.notes.finds(what);
    }

    /// Every server answers a call, sooner or later.
    async fn all_answer(&mut self) -> Result<(), String> {
        for (number, server) in Arc::clone(&self.world.servers).iter().enumerate() {
            let (mut world, tool) =
                (self.world.clone(), if server.kind == Kind::Real { "echo" } else { "write" });
            // These are not judged one by one: a line that is waited for may refuse.
            let answers = async {
                loop {
                    world.notes = Arc::new(Notes::new(world.servers.len()));
                    self.greetings += 1;
                    let name = format!("g{}", self.greetings);
                    let mut agent = Agent::new(world.clone(), &name, Era::Modern, Some(number), Dice::new(0));
                    agent.call(number, Way::Plain, tool, serde_json::json!({})).await;
                    let answered = world.notes.pages().histories[number]
                        .calls
                        .values()
                        .any(|call| matches!(call.told, Some((_, Ok(())))));
                    if answered {
                        return;
                    }
                    tokio::time::sleep(TICK).await;
                }
            };
            if tokio::time::timeout(ALL_UP, answers).await.is_err() {
                return Err(format!("{} does not come up: see {}", server.name, self.serve.log.display()));
            }
        }
        Ok(())
    }

    /// All agents, for so long; with faults, in windows.
    async fn lives(&mut self, time: Duration, faults: bool) {
        let (tell, stop) = watch::channel(false);
        let mut agents = JoinSet::new();
        for number in 0..self.agents {
            let (agent, pace) = self.agent(number, faults);
            agents.spawn(agent.live(pace, stop.clone()));
        }
        self.principals_live(faults, &mut agents, &stop);
        if faults {
            self.windows(time).await;
        } else {
            tokio::time::sleep(time).await;
        }
        tell.send_replace(true);
        let gone = async { while agents.join_next().await.is_some() {} };
        if tokio::time::timeout(HUNG * 3, gone).await.is_err() {
            self.finds("agents do not come to an end".to_owned());
        }
        if tokio::time::timeout(HUNG * 3, self.saboteur.rest()).await.is_err() {
            self.finds("calls that were faults do not come to an end".to_owned());
        }
    }

    /// Those that are there with principals alone.
    fn principals_live(&self, faults: bool, agents: &mut JoinSet<()>, stop: &watch::Receiver<bool>) {
        let Some(all) = &self.principals else { return };
        for number in 0..all.count() {
            let dice = |of: usize| Dice::for_one(self.seed, (number + of * 10_000) as u64);
            let life = if faults { 'a' } else { 'w' };
            let resident = Resident::new(&self.world, all.pass(number), life, dice(1));
            agents.spawn(resident.live(PRINCIPALS_THINK, stop.clone()));
            if number.is_multiple_of(INTRUDERS) {
                let intruder = Intruder::new(&self.world, all.pass(number), dice(2));
                agents.spawn(intruder.live(INTRUDER_THINKS, stop.clone()));
            }
        }
        if faults {
            agents.spawn(principals::leaver(Arc::clone(all), self.world.clone(), stop.clone()));
        }
    }

    /// One of a principal's two agents: one of them is at `/mcp`, the other at a server's address.
    fn agent_of(&self, all: &Arc<Principals>, number: usize, faults: bool) -> (Agent, Duration) {
        let world = self.world.of(all.pass(number / 2));
        let (era, letter) = if number.is_multiple_of(2) { (Era::Legacy, 'l') } else { (Era::Modern, 'm') };
        let doors = world.visible();
        let door = (number / 2 + number).is_multiple_of(2).then(|| doors[number / 2 % doors.len()]);
        let name = format!("{letter}{}{number}", if faults { 'a' } else { 'w' });
        let dice = Dice::for_one(self.seed, number as u64);
        (Agent::new(world, &name, era, door, dice), PRINCIPALS_THINK)
    }

    /// The first two are at the servers that are measured; of the others half are of either era, and half at `/mcp`.
    fn agent(&self, number: usize, faults: bool) -> (Agent, Duration) {
        if let Some(all) = &self.principals {
            return self.agent_of(all, number, faults);
        }
        let era = if number.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
        let calm: Vec<_> = (0..self.world.servers.len()).filter(|at| self.world.servers[*at].calm).collect();
        let (door, pace) = match calm.get(number) {
            Some(server) => (Some(*server), MEASURED_THINKS),
            None if number % 4 < 2 => (None, THINKS),
            None => (Some(number / 4 % self.world.servers.len()), THINKS),
        };
        let name = format!("{}{number}", if faults { 'a' } else { 'w' });
        (Agent::new(self.world.clone(), &name, era, door, Dice::for_one(self.seed, number as u64)), pace)
    }

    /// Windows with faults and without, alternately, until there were faults for so long.
    async fn windows(&mut self, time: Duration) {
        let mut left = time;
        let mut window = 1;
        while !left.is_zero() {
            let this = WINDOW.min(left).min((time / 2).max(FAULT_EVERY));
            left = left.saturating_sub(this);
            self.world.notes.turns_to(window);
            self.watch(this, true).await;
            self.world.notes.turns_to(0);
            self.watch(SETTLES, false).await;
            self.world.notes.turns_to(window + 1);
            self.watch(this / 2, false).await;
            self.world.notes.turns_to(0);
            window += 2;
            self.progress(time.saturating_sub(left), time);
        }
        self.saboteur.mend(&self.house, &self.serve, true);
    }

    fn progress(&self, done: Duration, of: Duration) {
        let pages = self.world.notes.pages();
        let calls: usize = pages.histories.iter().map(|history| history.calls.len()).sum();
        let faults: u32 = self.saboteur.done.values().sum();
        eprintln!(
            "{} of {} s, {faults} faults, {calls} calls, {} findings, {} KiB",
            done.as_secs(),
            of.as_secs(),
            pages.findings.len(),
            self.serve.has().kib
        );
    }

    /// Counts and mends for so long, and strikes.
    #[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
    async fn watch(&mut self, time: Duration, faults: bool) {
        let (begun, mut due) = (Instant::now(), Duration::ZERO);
        while begun.elapsed() < time {
            if faults && begun.elapsed() >= due {
                due += FAULT_EVERY;
                self.saboteur.strike(&mut self.house, &self.serve).await;
                self.strikes += 1;
                if self.principals.is_some() && self.strikes.is_multiple_of(RELOAD) {
                    self.saboteur.reload(&self.house, &self.serve, self.strikes);
                }
            }
            self.saboteur.mend(&self.house, &self.serve, false);
            self.count();
            tokio::time::sleep(TICK).await;
        }
    }

    /// A server never has two trees.
    fn count(&mut self) {
        self.verdict.looks += 1;
        if let Some(all) = self.principals.as_ref().filter(|_| self.verdict.looks.is_multiple_of(LOOKS)) {
            self.looks.look(all, &self.world, &self.house, &self.serve);
        }
        let shared = |name: &str| {
            self.world.servers.iter().any(|server| server.name == name && server.scope == Scope::Shared)
        };
        for (server, trees) in self.serve.trees().into_iter().filter(|(name, _)| shared(name)) {
            // The list is not made in one moment: two count only if both are still there.
            if trees.len() > 1 && trees.iter().filter(|pid| self.serve.is_of(**pid, &server)).count() > 1 {
                self.finds(format!("{server} has {} trees of processes at once", trees.len()));
            }
        }
    }

    fn count_at_rest(&mut self) {
        let trees = self.serve.trees();
        self.verdict.trees = trees.values().map(Vec::len).sum();
        let processes = self.world.servers.iter().filter(|server| server.is_process()).count();
        if self.verdict.trees != processes || trees.len() != processes {
            self.finds(format!("{processes} servers are processes, and these are their trees: {trees:?}"));
        }
    }

    /// Waits until the gateway has what it had, or for as long as it may take; without an example, until nothing changes.
    async fn rest(&self, like: Option<Has>) -> Has {
        let mut has = self.serve.has();
        let at_rest = async {
            let mut same = 0;
            loop {
                tokio::time::sleep(TICK).await;
                let now = self.serve.has();
                same = if (now.processes, now.descriptors) == (has.processes, has.descriptors) {
                    same + 1
                } else {
                    0
                };
                has = now;
                let enough = like.is_none_or(|like| {
                    now.processes <= like.processes && now.descriptors <= like.descriptors
                });
                // Idle connections are kept for three seconds, and sessions that were left for five.
                if enough && same >= 80 {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(REST, at_rest).await;
        has
    }

    async fn end(self, strict: bool, time: Duration) -> Result<Verdict, String> {
        let (before, after) = (self.verdict.before, self.verdict.after);
        let each = self.principals.as_ref().map_or(0, |all| all.count() * GROWN_EACH);
        for (what, before, after) in [
            ("processes", before.processes, after.processes),
            ("descriptors", before.descriptors, after.descriptors),
            ("sockets", before.sockets, after.sockets),
            ("KiB (and some are allowed)", before.kib + GROWN + each, after.kib),
        ] {
            if after > before {
                self.finds(linetender_badserver::Finding::Leak { what, before, after }.to_string());
            }
        }
        let Self { house, serve, world, saboteur, principals, status, mut verdict, .. } = self;
        if let Err(found) = serve.stop().await {
            world.notes.finds(found);
        }
        if let Some(all) = &principals {
            principals::at_the_end(all, &world, &house.folder);
            verdict.isolation = Some((all.count(), all.tally().clone()));
            if time >= FULL {
                let missing = all.tally().missing();
                verdict.findings.extend(missing.iter().map(|what| format!("nobody heard any {what}")));
            }
        }
        // Nobody is measured there.
        let strict = strict && principals.is_none();
        verdict.faults = saboteur.done.into_iter().collect();
        verdict.judge(&world.servers, &world.notes.pages());
        if let Some((status, (page, metrics))) = status {
            let histories = &world.notes.pages().histories;
            let mut agreement = Agreement::judge(&status, &house.folder, &world.servers, histories);
            agreement.with_elsewhere(&status, &page, &metrics);
            verdict.findings.extend(agreement.findings.iter().cloned());
            verdict.agreed = (agreement.calls, agreement.at_the_door);
        }
        let (ratio, ..) = verdict.ratio();
        if strict && ratio > RATIO {
            verdict
                .findings
                .push(format!("p99 under faults is {ratio:.2} of that without (at most {RATIO})"));
        }
        if strict {
            verdict.findings.extend(verdict.missing.iter().map(|what| format!("{what} was to be there too")));
        }
        if !verdict.findings.is_empty() {
            eprintln!("what was written is kept in {}", house.keep().display());
        }
        Ok(verdict)
    }
}
