//! One world: made, played and judged, all from its seed.

use std::hash::Hasher as _;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use linetender::{Line, Policy, RetryOn, RetryReason, Rig, Server, ServerState, Settings};
use siphasher::sip::SipHasher13;
use tokio::time::{sleep, timeout};

use crate::caller::{Call, Calls, Told, call_on};
use crate::coverage::{Cells, Coverage};
use crate::crowd::Crowd;
use crate::habits::Habits;
use crate::keys::Endless;
use crate::laws::{self, Course, Finding};
use crate::log::Log;
use crate::mcp::LISTED;
use crate::net::{Net, Road};
use crate::platform::Simulated;
use crate::rng::Rng;
use crate::saboteur::Saboteur;
use crate::scene::Scene;
use crate::web::{Manners, Web};
use crate::witness::Reports;

/// How many calls a world has, about.
const CALLS: usize = 400;

/// How often a call is made after the repair, and how far apart: long enough for the slowest probe of a parked line.
const LAST_TRIES: usize = 40;
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// The longest that a close may take: the ladder, a tree that cannot be killed for a while, and killing it again.
const CLOSE: Duration = Duration::from_secs(60);

/// What came of a world.
#[derive(Debug)]
pub struct Played {
    /// Which.
    pub seed: u64,
    /// How many calls were made.
    pub calls: usize,
    /// How many of them ran again since their servers ran them and then said that they had not.
    pub ran_again: u64,
    /// What must not be, and was.
    pub findings: Vec<Finding>,
    /// What it reached.
    pub coverage: Coverage,
    /// A number that is another one if anything happened otherwise.
    pub hash: u64,
}

/// Plays the world of this seed.
///
/// # Panics
/// If there is no runtime to be had.
pub fn play(seed: u64, trace: bool) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without a thread of its own");
    let cells = Cells::default();
    tracing::subscriber::with_default(cells.clone(), || {
        let (course, hash) = runtime.block_on(async { World::new(seed, trace).play().await });
        // What is left of the world ends here, inside of it.
        drop(runtime);
        let mut coverage = cells.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        cover(&course, &mut coverage);
        let findings = laws::judge(&course);
        Played {
            seed,
            calls: course.calls.len(),
            ran_again: laws::ran_again(&course),
            findings,
            coverage,
            hash,
        }
    })
}

fn cover(course: &Course, coverage: &mut Coverage) {
    for asked in course.calls.values() {
        match &asked.told {
            Some((_, Told::Answer)) => coverage.count("error", "none"),
            Some((_, Told::Error(error))) => coverage.verdict(error),
            Some((_, Told::Left)) => coverage.count("error", "left"),
            None => {}
        }
    }
    for (_, state) in &course.log.states {
        coverage.count("state", *state);
    }
    for cause in &course.log.causes {
        coverage.count("cause", *cause);
    }
    coverage.count("world", if course.remote { "http" } else { "stdio" });
}

struct World {
    rng: Rng,
    scene: Arc<Scene>,
    settings: Settings,
    rig: Rig,
    /// The way to the server, if it is not a process of ours.
    road: Option<Arc<Road>>,
}

impl World {
    fn new(seed: u64, trace: bool) -> Self {
        let mut rng = Rng::new(seed);
        let habits = Habits::new(&mut rng);
        let mut settings = Settings::default();
        settings.trust_annotations = rng.percent(50);
        settings.state = rng.pick(&[
            ServerState::None,
            ServerState::None,
            ServerState::None,
            ServerState::Unknown,
            ServerState::Unknown,
            ServerState::Process,
        ]);
        settings.retry_on = rng.pick(&[
            RetryOn::default(),
            RetryOn::default(),
            RetryOn::NOT_EXECUTED,
            RetryOn::NOTHING,
            RetryReason::SETTABLE.into_iter().collect(),
        ]);
        let rig = Rig::with_dials_at_once(4).seeded(rng.next());
        let scene = Scene::new(habits, rng.fork(), trace);
        let road = rng.percent(40).then(|| {
            let delay = rng.pick(&[(0, 1), (1, 3), (10, 60)]);
            let net = Net::new(delay, rng.fork());
            let web = Web::new(&scene, &net, Manners::new(&mut rng));
            Arc::new(Road { net, web })
        });
        Self { rng, scene, settings, rig, road }
    }

    async fn play(mut self) -> (Course, u64) {
        let server = self.server();
        let line = if self.rng.percent(80) { self.rig.open(server) } else { self.rig.lazy(server) };
        let (calls, log, reports) = (Calls::default(), Log::default(), Reports::default());
        line.seen_by(Arc::new(reports.clone()));
        let watching = crate::tasks::spawn(log.clone().watch(Arc::clone(&self.scene), line.events()));

        self.faults(&line, &calls, &log).await;
        self.heal();
        let back = self.comes_back(&line, &calls).await;
        let closed = timeout(CLOSE, line.close()).await.is_ok();
        watching.abort();
        let course = Course {
            calls: calls.lock().clone(),
            sent: reports.sent(),
            log: log.entries(),
            book: self.scene.book().clone(),
            settings: self.settings,
            habits: self.scene.habits(),
            back,
            closed,
            left: self.scene.census().1,
            opened: self.road.as_ref().map(|road| road.web.opened()).unwrap_or_default(),
            remote: self.road.is_some(),
        };
        let hash = hash(&course);
        (course, hash)
    }

    fn server(&self) -> Server {
        let policy = Policy::new(self.settings).expect("settings that nobody would refuse");
        let server: Server = if let Some(road) = &self.road {
            self.scene.say(|| format!("{:?} {:?}", road.web.manners(), road.net.sky()));
            let server = Server::http("simulated", "http://simulated/mcp").across(Arc::clone(road) as _);
            if road.web.manners().challenges { server.keys(Endless::new()).into() } else { server.into() }
        } else {
            self.scene.say(|| format!("{:?}", self.scene.habits()));
            let starter = Arc::new(Simulated(Arc::clone(&self.scene)));
            Server::stdio("simulated", ["simulated"]).elsewhere(starter).into()
        };
        server.policy(policy).safe_tool(LISTED)
    }

    /// Everything is repaired.
    fn heal(&self) {
        self.scene.heal();
        if let Some(process) = self.scene.process() {
            process.strike(crate::process::Blow::Go);
        }
        if let Some(Road { net, web }) = self.road.as_deref() {
            web.heal();
            net.cut(false);
            net.slow((0, 1));
        }
        self.scene.say(|| "everything is repaired".to_owned());
    }

    /// Calls and faults, until every caller is done.
    async fn faults(&mut self, line: &Line, calls: &Calls, log: &Log) {
        let callers = self.rng.size(1, 24);
        let pause = self.rng.pick(&[3, 30, 300, 5000]);
        let mut members: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
        for number in 0..callers {
            let plan = (number, CALLS / callers, pause);
            let caller = call_on(Arc::clone(&self.scene), line.clone(), calls.clone(), plan, self.rng.fork());
            members.push(Box::pin(caller));
        }
        let crowd = Crowd::new(members, self.rng.fork());
        let pause = self.rng.pick(&[200, 2000, 20_000, 300_000]);
        let (scene, line) = (Arc::clone(&self.scene), line.clone());
        let saboteur = Saboteur { scene, line, pause, rng: self.rng.fork(), log: log.clone() };
        let sabotage = async {
            match self.road.as_deref() {
                Some(road) => saboteur.meddle(road).await,
                None => saboteur.strike().await,
            }
        };
        tokio::select! {
            biased;
            () = crowd => {}
            () = sabotage => {}
        }
    }

    /// Whether a call is answered, sooner or later.
    async fn comes_back(&self, line: &Line, calls: &Calls) -> bool {
        for n in 0..LAST_TRIES {
            if calls.make(&self.scene, line, format!("last-{n}"), Call::last()).await {
                return true;
            }
            sleep(LAST_PAUSE).await;
        }
        false
    }
}

/// Everything that was seen, as one number.
fn hash(course: &Course) -> u64 {
    let mut hash = SipHasher13::new();
    hash.write(format!("{:?} {:?} {:?}", course.calls, course.log, course.book).as_bytes());
    hash.finish()
}
