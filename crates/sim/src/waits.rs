//! S66: every protection has an end. No call waits longer than docs/run.md says, "How long a call can wait at most".
//!
//! Each test drives one protection to its cap, with the settings as they are by default; the last ones drive all of them at
//! once. The agent never gives up by itself: what ends a call is linetender.

mod network;
mod unused;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linetender::session::{self, Agent};
use linetender::{Deadline, Line, Policy, Rig, Server, ServerState, Settings};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::habits::Habits;
use crate::mcp::{LOOK, WRITE};
use crate::net::{Net, Road};
use crate::platform::Simulated;
use crate::process::Blow;
use crate::rng::Rng;
use crate::scene::Scene;
use crate::web::{Manners, Web};

/// Ticks of timers, the time in which a process ends, and what is counted after its end.
const SLACK: Duration = Duration::from_millis(200);

/// Longest wait for earlier calls of the same agent.
const ORDER: Duration = Duration::from_secs(1);

/// Longer than any call here may take.
const NEVER: Duration = Duration::from_secs(24 * 3600);

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The caps, as docs/run.md has them.
struct Caps(Settings);

impl Caps {
    /// The first start of a server.
    fn start(&self) -> Duration {
        self.0.dial.start
    }

    /// A restart.
    fn restart(&self) -> Duration {
        self.0.call.wait_for_line
    }

    fn probes(&self) -> Duration {
        self.0.probe.timeout * u32::from(self.0.probe.failures)
    }

    /// A server that was silent for long while it was idle.
    fn idle(&self) -> Duration {
        self.probes() + self.restart()
    }

    /// A silent server whose oldest call was given up.
    fn abandoned(&self) -> Duration {
        self.0.call.abandoned_after
    }

    /// A network that carries no packet, to a server somewhere else. It is looked at every second.
    fn away() -> Duration {
        secs(120 + 1)
    }

    /// A silent server that works, or that a call waits for. Its silence is looked at once in this time.
    fn hang(&self) -> Duration {
        self.0.call.hang_after + self.0.probe.keepalive + self.probes()
    }
}

struct World {
    scene: Arc<Scene>,
    line: Line,
    caps: Caps,
    /// The way to the server, if that is somewhere else.
    road: Option<Arc<Road>>,
}

/// An agent that writes down when it was answered.
struct Caller {
    agent: Agent,
    last: u64,
    sent: BTreeMap<u64, Instant>,
    answers: BTreeMap<u64, (Duration, Value)>,
}

impl World {
    fn new(state: ServerState, habits: impl FnOnce(&mut Habits)) -> Self {
        Self::with(state, habits, |_| {})
    }

    fn with(
        state: ServerState,
        habits: impl FnOnce(&mut Habits),
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        Self::at(None, state, habits, change)
    }

    fn at(
        remote: Option<Manners>,
        state: ServerState,
        habits: impl FnOnce(&mut Habits),
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let mut theirs = Habits::good();
        habits(&mut theirs);
        let scene = Scene::new(theirs, Rng::new(1), false);
        let mut settings = Settings::default();
        settings.state = state;
        settings.trust_annotations = true;
        change(&mut settings);
        let road = remote.map(|manners| {
            let net = Net::new((1, 3), Rng::new(2));
            Arc::new(Road { web: Web::new(&scene, &net, manners), net })
        });
        let server: Server = match &road {
            None => {
                let starter = Arc::new(Simulated(Arc::clone(&scene)));
                Server::stdio("simulated", ["simulated"]).elsewhere(starter).into()
            }
            Some(road) => {
                Server::http("simulated", "http://simulated/mcp").across(Arc::clone(road) as _).into()
            }
        };
        let server = server.policy(Policy::new(settings).unwrap()).deadline(Deadline::Agent);
        Self { scene, line: Rig::new().seeded(7).open(server), caps: Caps(settings), road }
    }

    async fn agent(&self) -> Caller {
        let agent = session::join(&self.line);
        let mut caller = Caller { agent, last: 0, sent: BTreeMap::new(), answers: BTreeMap::new() };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
        let id = caller.ask("initialize", hello).await;
        caller.end(id).await;
        caller.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        caller
    }

    /// Does this to the process that runs.
    fn strike(&self, blow: Blow) {
        self.scene.process().unwrap().strike(blow);
    }
}

impl Caller {
    async fn say(&self, message: Value) {
        self.agent.to.send(message.to_string().into()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.sent.insert(self.last, Instant::now());
        self.say(json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })).await;
        self.last
    }

    async fn call(&mut self, tool: &str, nonce: &str) -> u64 {
        self.ask("tools/call", json!({ "name": tool, "arguments": { "nonce": nonce } })).await
    }

    /// The agent gives a call up, as agents do after their own timeout.
    async fn gives_up(&self, id: u64) {
        let params = json!({ "requestId": id });
        self.say(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }

    /// How long a call took, and its answer.
    async fn end(&mut self, id: u64) -> (Duration, Value) {
        while !self.answers.contains_key(&id) {
            let heard = timeout(NEVER, self.agent.from.recv()).await.expect("a call hangs").unwrap();
            let heard: Value = serde_json::from_slice(heard.text()).unwrap();
            if let Some(id) = heard["id"].as_u64().filter(|_| heard.get("method").is_none()) {
                self.answers.insert(id, (self.sent[&id].elapsed(), heard));
            }
        }
        self.answers.remove(&id).unwrap()
    }

    /// A call that must be answered by the server.
    async fn works(&mut self, nonce: &str) -> Duration {
        let id = self.call(WRITE, nonce).await;
        let (took, answer) = self.end(id).await;
        assert_eq!(answer["result"]["content"][0]["text"], nonce, "{answer}");
        took
    }
}

fn reason(answer: &Value) -> (&str, &str) {
    let ours = &answer["result"]["_meta"]["linetender"];
    (ours["reason"].as_str().unwrap_or_default(), ours["delivery"].as_str().unwrap_or_default())
}

/// The protection held for all of its time, and no longer.
#[track_caller]
fn lasts(took: Duration, cap: Duration) {
    assert!(took + SLACK >= cap && took <= cap + SLACK, "{took:?}, where {cap:?} is the cap");
}

/// The protection ended in time.
#[track_caller]
fn within(took: Duration, from: Duration, cap: Duration) {
    assert!(took >= from && took <= cap + SLACK, "{took:?}, where {from:?} to {cap:?} is right");
}

#[tokio::test(start_paused = true)]
async fn a_first_start_that_never_ends() {
    let world = World::new(ServerState::None, |habits| habits.hang = 100);
    let agent = session::join(&world.line);
    let mut caller = Caller { agent, last: 0, sent: BTreeMap::new(), answers: BTreeMap::new() };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    let hello = caller.ask("initialize", hello).await;
    let call = caller.call(WRITE, "a").await;
    lasts(caller.end(call).await.0, world.caps.start());
    within(caller.end(hello).await.0, Duration::ZERO, world.caps.start());
}

// S58, when it is built: bytes on stderr extend a start to ten minutes, and a call's wait still ends at `start`.

#[tokio::test(start_paused = true)]
async fn a_restart_that_never_ends() {
    let world = World::new(ServerState::None, |_| {});
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.scene.change(|habits| habits.hang = 100);
    world.strike(Blow::Kill);
    sleep(secs(1)).await;
    let id = agent.call(WRITE, "b").await;
    let (took, answer) = agent.end(id).await;
    lasts(took, world.caps.restart());
    assert_eq!(reason(&answer).1, "not executed", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_that_was_silent_for_long() {
    for hangs in [0, 100] {
        let world = World::new(ServerState::None, |_| {});
        let mut agent = world.agent().await;
        agent.works("a").await;
        world.strike(Blow::Stop);
        world.scene.change(|habits| habits.hang = hangs);
        sleep(world.caps.abandoned() * 2 + secs(60)).await;
        assert_eq!(world.line.status().generation, 1, "nobody waited for it");
        let id = agent.call(WRITE, "b").await;
        let (took, _) = agent.end(id).await;
        match hangs {
            0 => within(took, world.caps.probes(), world.caps.idle()),
            _ => lasts(took, world.caps.idle()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_neither_answers_nor_works_on_a_call_that_was_given_up() {
    let world = World::new(ServerState::None, |_| {});
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.strike(Blow::Stop);
    let took = given_up(&world, &mut agent).await;
    within(took, world.caps.abandoned(), world.caps.abandoned() + world.caps.restart() + ORDER);
}

/// A call is given up after three seconds, and others wait behind it. How long the first of them took after the give-up.
async fn given_up(world: &World, agent: &mut Caller) -> Duration {
    let (first, behind) = (agent.call(WRITE, "b").await, agent.call(WRITE, "c").await);
    sleep(secs(3)).await;
    agent.gives_up(first).await;
    let since = Instant::now();
    // An agent that tries again and gives up again does not make it longer.
    for number in 0..20 {
        sleep(secs(1)).await;
        let id = agent.call(WRITE, &format!("again-{number}")).await;
        sleep(secs(1)).await;
        agent.gives_up(id).await;
    }
    world.scene.change(Habits::heal);
    agent.end(behind).await;
    since.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_busy_server() {
    let world = World::new(ServerState::None, |habits| habits.works = true);
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.strike(Blow::Stop);
    let took = given_up(&world, &mut agent).await;
    let caps = &world.caps;
    within(took, caps.0.call.hang_after, caps.hang() + caps.restart() + ORDER);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_that_a_call_waits_for() {
    let world = World::new(ServerState::None, |_| {});
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.strike(Blow::Stop);
    let id = agent.call(WRITE, "b").await;
    let (took, _) = agent.end(id).await;
    let caps = &world.caps;
    within(took, caps.0.call.hang_after, caps.hang() + caps.restart() + ORDER);
}

#[tokio::test(start_paused = true)]
async fn a_queue_behind_a_call_that_is_never_answered() {
    let world =
        World::with(ServerState::None, |habits| habits.mute = 1000, |settings| settings.limits.in_flight = 1);
    let mut agent = world.agent().await;
    agent.call(WRITE, "a").await;
    let id = agent.call(WRITE, "b").await;
    let (took, answer) = agent.end(id).await;
    lasts(took, world.caps.0.call.hang_after);
    assert_eq!(reason(&answer).1, "not executed", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_a_context_was_replaced() {
    let world = World::new(ServerState::Unknown, |_| {});
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.strike(Blow::Kill);
    sleep(secs(1)).await;
    for ended in [false, true] {
        let ids = [agent.call(WRITE, "b").await, agent.call(WRITE, "c").await];
        for id in ids {
            let (took, answer) = agent.end(id).await;
            within(took, Duration::ZERO, Duration::ZERO);
            let is_notice = reason(&answer).0 == "context-replaced";
            assert_ne!(is_notice, ended, "{answer}");
        }
        sleep(secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_call_that_waits_for_more_than_the_server() {
    let world = World::new(ServerState::None, |habits| habits.work = (60_000, 60_001));
    let mut agent = world.agent().await;
    // It may run again if the new server says so in its list, which it keeps to itself.
    let first = agent.call(LOOK, "a").await;
    sleep(secs(10)).await;
    world.scene.change(|habits| {
        habits.heal();
        habits.hides_lists = true;
    });
    world.strike(Blow::Kill);
    let second = agent.call(WRITE, "b").await;
    let (took, answer) = agent.end(second).await;
    assert_eq!(answer["result"]["content"][0]["text"], "b", "{answer}");
    within(took, ORDER, ORDER + SLACK);
    // What waits already holds up nobody else.
    within(agent.works("c").await, Duration::ZERO, Duration::ZERO);
    let (took, answer) = agent.end(first).await;
    within(took, secs(10) + ORDER, secs(10) + world.caps.restart());
    assert_eq!(reason(&answer).1, "unknown", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn all_of_them_together() {
    for state in [ServerState::None, ServerState::Unknown, ServerState::Process] {
        for works in [false, true] {
            for next_hangs in [0, 100] {
                together(state, works, next_hangs).await;
            }
        }
    }
}

/// One agent has used the server and is owed a notice, the other has not. The server falls silent, works or not, is given up,
/// and ends; its successor starts or does not, keeps its lists to itself, and falls silent too.
async fn together(state: ServerState, works: bool, next_hangs: u64) {
    let world = World::new(state, |habits| habits.works = works);
    let (mut used, mut fresh) = (world.agent().await, world.agent().await);
    used.works("a").await;
    // Idle and silent for long, before anybody calls.
    world.strike(Blow::Stop);
    sleep(secs(300)).await;
    world.scene.change(|habits| {
        habits.hides_lists = true;
        habits.hang = next_hangs;
        habits.start = (3000, 3001);
    });
    let mut waits = Vec::new();
    for number in 0..3 {
        waits.push(used.call([WRITE, LOOK][number % 2], &format!("used-{number}")).await);
    }
    let theirs: Vec<u64> = vec![
        fresh.call(WRITE, "fresh-0").await,
        fresh.call(LOOK, "fresh-1").await,
        fresh.call(WRITE, "fresh-2").await,
    ];
    sleep(secs(3)).await;
    fresh.gives_up(theirs[0]).await;
    // The successor falls silent in its turn as soon as it is up.
    let line = world.line.clone();
    let scene = Arc::clone(&world.scene);
    let saboteur = crate::tasks::spawn(async move {
        line.wait_for(|status| status.generation > 1 && status.state.is_live()).await;
        scene.process().unwrap().strike(Blow::Stop);
    });
    let caps = &world.caps;
    let most = caps.idle() + 2 * (caps.hang() + caps.restart() + ORDER);
    assert_eq!(most, secs(15 + 2 * (30 * 60 + 40 + 5 + 1)), "docs/run.md has another sum");
    for id in waits {
        let (took, answer) = used.end(id).await;
        within(took, Duration::ZERO, most);
        assert!(answer["result"].is_object(), "{answer}");
    }
    for id in theirs.into_iter().skip(1) {
        let (took, answer) = fresh.end(id).await;
        within(took, Duration::ZERO, most);
        assert!(answer["result"].is_object(), "{answer}");
    }
    saboteur.abort();
}
