//! The drill of a fleet: three gateways in network namespaces, three servers of NATS, agents of both eras behind a plain balancer; and
//! faults of machines, networks and clocks. Judged by the servers' books.

mod agent;
mod engine;
mod gateways;
mod house;
mod mix;
mod needs;
mod net;
mod notes;
mod probes;
mod report;
mod saboteur;
mod upgrade;
mod verdict;
mod watcher;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use linetender::Era;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::dice::Dice;
use agent::{Agent, PATIENCE, World};
use engine::Engine;
use gateways::{Balancer, Gateways, How, balancer_address};
use house::House;
use mix::{Deck, Fault};
use net::{NODES, gateway_address};
use notes::Notes;
use saboteur::{Strike, Whom};
pub use verdict::Verdict;
use watcher::Watcher;

/// How long agents live before the first fault, and between the end of one and the next.
const CALM: Duration = Duration::from_secs(2);

/// How much longer than a takeover everything may take to work everywhere again.
const RECOVERS: Duration = Duration::from_secs(30);

/// Between two tries of a call that waits for everything to work again.
const AGAIN: Duration = Duration::from_millis(100);

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `linetender` binary.
    pub linetender: PathBuf,
    /// The `nats-server` binary.
    pub nats: PathBuf,
    /// How long there are faults; the last one is played to its end.
    pub time: Duration,
    /// What chance begins with.
    pub seed: u64,
    /// How many agents.
    pub agents: usize,
    /// How long a lease lasts.
    pub lease: Duration,
    /// Whether the gateways are a fleet. If not, every one has its own process of each server, which the judge has to find.
    pub fleet: bool,
    /// Only faults whose name has this in it.
    pub only: Option<String>,
    /// Instead of faults: so many rolling upgrades, in which no call may fail.
    pub upgrades: Option<u32>,
    /// What serves every other time that a gateway is replaced.
    pub to: Option<PathBuf>,
    /// Whether the verdict is for a program.
    pub json: bool,
}

/// Runs the drill in namespaces of its own: this program once more, with these arguments.
///
/// # Errors
/// If the machine does not have what it needs.
pub fn enclosed(options: &Options, arguments: &[String]) -> Result<ExitCode, String> {
    needs::check(&options.nats)?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    needs::enclosed(&this, arguments)
}

/// Runs the drill in the namespaces that this process is the first in.
///
/// # Errors
/// If it could not even begin.
pub fn inside(options: &Options) -> Result<ExitCode, String> {
    let folder = std::env::temp_dir().join(format!("linetender-fleet-{}", options.seed));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    needs::ends_with_its_parent(folder.clone());
    eprintln!("seed {}", options.seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let verdict = runtime.block_on(Drill::run(options, &folder));
    if verdict.as_ref().is_ok_and(|verdict| verdict.findings.is_empty()) {
        let _ = std::fs::remove_dir_all(&folder);
    } else {
        eprintln!("what was written is kept in {}", folder.display());
    }
    let verdict = verdict?;
    if !verdict.findings.is_empty() {
        let _ = std::fs::write(folder.join("findings"), verdict.findings.join("\n"));
    }
    if options.json {
        println!("{}", serde_json::to_string(&verdict.results()).map_err(|error| error.to_string())?);
    } else {
        println!("{verdict}");
    }
    Ok(if verdict.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A run.
struct Drill {
    lease: Duration,
    engine: Engine,
    gateways: Gateways,
    _balancer: Balancer,
    watcher: Watcher,
    world: World,
    dice: Dice,
    strikes: Vec<Strike>,
    /// Calls that only waited for everything to work: each has a name of its own in the books.
    greetings: u32,
}

impl Drill {
    async fn run(options: &Options, folder: &Path) -> Result<Verdict, String> {
        net::build()?;
        let house = House::build(&options.linetender, folder).map_err(|error| error.to_string())?;
        let (faketime, missing) = match needs::faketime(&options.linetender) {
            Ok(library) => (Some(library), Vec::new()),
            Err(why) => (None, vec![why]),
        };
        let clocks = faketime.is_some();
        let servers: Arc<[_]> = house.servers.clone().into();
        let notes = Arc::new(Notes::new(servers.len()));
        let engine = Engine::start(&options.nats, folder).await?;
        let how = How {
            linetender: options.linetender.clone(),
            to: options.to.clone(),
            folder: folder.to_owned(),
            lease: options.fleet.then_some(options.lease),
            faketime,
            servers: house.config(),
        };
        let watcher = Watcher::start(Arc::clone(&notes));
        let gateways = Gateways::start(how).await?;
        let balancer = Balancer::start(folder, options.upgrades.is_some()).await?;
        let world = World { address: balancer_address(), servers, notes };
        let mut drill = Self {
            lease: options.lease,
            engine,
            gateways,
            _balancer: balancer,
            watcher,
            world,
            dice: Dice::new(options.seed),
            strikes: Vec::new(),
            greetings: 0,
        };
        match options.upgrades {
            None => drill.lives(options, Deck::new(clocks, options.only.as_deref())?).await?,
            Some(times) => drill.upgrades(times).await?,
        }
        let mut verdict = Verdict {
            seed: options.seed,
            seconds: options.time.as_secs(),
            agents: if options.upgrades.is_some() { upgrade::AGENTS } else { options.agents },
            servers: drill.world.servers.len(),
            lease: options.lease,
            fleet: options.fleet,
            missing,
            ..Verdict::default()
        };
        let Self { watcher, world, strikes, .. } = &drill;
        verdict.judge(&world.servers, &world.notes.pages(), strikes, &watcher.seen());
        if options.upgrades.is_some() {
            verdict.findings.extend(upgrade::failed(world));
            let charged = upgrade::charged(folder);
            verdict.findings.extend(charged.iter().map(|entry| format!("charged: {entry}")));
        }
        drop(house);
        Ok(verdict)
    }

    /// Everybody lives, and faults are done, for so long.
    async fn lives(&mut self, options: &Options, mut deck: Deck) -> Result<(), String> {
        if !self.all_answer().await {
            return Err("not every node serves every line in the beginning".to_owned());
        }
        let (tell, stop) = watch::channel(false);
        let mut all = JoinSet::new();
        for number in 0..options.agents {
            all.spawn(self.agent(number, options.seed).live(stop.clone()));
        }
        for stateful in [false, true] {
            all.spawn(probes::steady(self.world.clone(), stateful, stop.clone()));
        }
        let notes = Arc::clone(&self.world.notes);
        all.spawn(probes::starts(options.linetender.clone(), Arc::clone(&notes), stop));
        tokio::time::sleep(CALM).await;
        let until = notes.now() + options.time;
        while notes.now() < until {
            let fault = deck.draw(&mut self.dice);
            self.play(fault).await?;
            self.progress(until);
            tokio::time::sleep(CALM).await;
        }
        tell.send_replace(true);
        let gone = async { while all.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE * 2, gone).await.is_err() {
            notes.finds("agents do not come to an end".to_owned());
        }
        Ok(())
    }

    /// Half are of either era, and half at the address of one server.
    fn agent(&self, number: usize, seed: u64) -> Agent {
        let era = if number.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
        let door = (number % 4 >= 2).then_some(number / 4 % self.world.servers.len());
        Agent::new(self.world.clone(), format!("a{number}"), era, door, Dice::for_one(seed, number as u64))
    }

    /// A fault, its end, and the time until nothing is felt of it.
    async fn play(&mut self, fault: Fault) -> Result<(), String> {
        let whom = saboteur::choose(&fault, &mut self.dice, &self.engine, &self.watcher).await;
        self.play_on(fault, whom).await
    }

    async fn play_on(&mut self, fault: Fault, whom: Whom) -> Result<(), String> {
        let lines = match whom {
            Whom::Gateway(node) => self.watcher.of(node),
            Whom::Engine(_) | Whom::Servers => Vec::new(),
        };
        let notes = Arc::clone(&self.world.notes);
        let at = notes.now();
        saboteur::strike(fault.act, whom, &mut self.gateways, &mut self.engine, &self.watcher).await?;
        tokio::time::sleep(saboteur::lasts(&fault, self.lease)).await;
        if let Err(found) = saboteur::mend(fault.act, whom, &mut self.gateways, &mut self.engine).await {
            notes.finds(format!("{} at {:.1} s: {found}", fault.name, at.as_secs_f64()));
        }
        let mended = notes.now();
        self.engine.whole().await?;
        let recovered = self.all_answer().await.then(|| notes.now());
        if let Some(ended) = self.gateways.ended_by_itself() {
            return Err(ended);
        }
        self.strikes.push(Strike { fault, whom: whom.words(), at, mended, recovered, lines });
        Ok(())
    }

    /// Whether every node answers a call of every server, sooner or later.
    async fn all_answer(&mut self) -> bool {
        let until = self.world.notes.now() + self.lease + verdict::TAKEOVER + RECOVERS;
        let mut all = JoinSet::new();
        for (node, server) in
            (0..NODES).flat_map(|node| (0..self.world.servers.len()).map(move |at| (node, at)))
        {
            self.greetings += 1;
            let world = World { address: gateway_address(node), ..self.world.clone() };
            let name = format!("g{}", self.greetings);
            let notes = Arc::clone(&world.notes);
            let mut agent = Agent::new(world, name, Era::Modern, None, Dice::new(0));
            all.spawn(async move {
                while notes.now() < until {
                    if agent.call(server, "write", json!({})).await {
                        return true;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                false
            });
        }
        let mut answered = true;
        while let Some(one) = all.join_next().await {
            answered &= one.is_ok_and(|one| one);
        }
        answered
    }

    fn progress(&self, until: Duration) {
        let Some(strike) = self.strikes.last() else { return };
        let pages = self.world.notes.pages();
        let calls: usize = pages.histories.iter().map(|history| history.calls.len()).sum();
        eprintln!(
            "{:>6.1} s ({} left): {} {}, {} lines; undone after {:.1} s, all well {}; {calls} calls, {} broken, {} findings",
            strike.at.as_secs_f64(),
            until.saturating_sub(self.world.notes.now()).as_secs(),
            strike.fault.name,
            strike.whom,
            strike.lines.len(),
            strike.mended.saturating_sub(strike.at).as_secs_f64(),
            strike.recovered.map_or("never".to_owned(), |at| format!(
                "{:.1} s later",
                at.saturating_sub(strike.mended).as_secs_f64()
            )),
            pages.broken.len(),
            pages.findings.len(),
        );
    }
}
