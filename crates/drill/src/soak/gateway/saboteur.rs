//! Who does the harm: draws from the mix, strikes, and mends what would not mend by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linetender::Era;
use linetender_badserver::webserver::{self, Ending, Sockets};
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;

use super::agent::{Agent, World};
use super::house::{House, Kind};
use super::mix::{Act, Fault, On, draw};
use super::serve::Serve;
use super::ways::Way;
use crate::dice::Dice;

/// The saboteur.
pub(super) struct Saboteur {
    world: World,
    dice: Dice,
    /// Faults that are calls of tools.
    calls: JoinSet<()>,
    /// What has to be undone, and when.
    undo: Vec<(Instant, Undo)>,
    /// How often each fault was done.
    pub(super) done: BTreeMap<&'static str, u32>,
    struck: u64,
}

/// What has to be undone.
enum Undo {
    /// A stopped process, and whose it is.
    Stopped(i32, usize),
    /// A web server that says nothing.
    Silent(usize),
}

impl Saboteur {
    pub(super) fn new(world: World, dice: Dice) -> Self {
        Self { world, dice, calls: JoinSet::new(), undo: Vec::new(), done: BTreeMap::new(), struck: 0 }
    }

    /// One fault, at a server of its kind.
    pub(super) async fn strike(&mut self, house: &mut House, serve: &Serve) {
        let fault = draw(&mut self.dice);
        let servers = Arc::clone(&self.world.servers);
        let of_kind = |number: &usize| {
            let server = &servers[*number];
            !server.calm
                && match fault.on {
                    On::Pipes => server.is_process(),
                    On::Bad => server.kind == Kind::Bad,
                    On::Webs => matches!(server.kind, Kind::Web(_)),
                }
        };
        let victims: Vec<_> = (0..servers.len()).filter(of_kind).collect();
        let Some(&victim) = self.dice.pick(&victims) else { return };
        if self.does(fault, victim, house, serve).await {
            *self.done.entry(fault.name).or_default() += 1;
        }
    }

    /// The config is another, and says the same.
    pub(super) fn reload(&mut self, house: &House, serve: &Serve, turn: u32) {
        if house.config(turn).is_ok() {
            serve.reload();
            *self.done.entry("the gateway reads its config again").or_default() += 1;
        }
    }

    /// Whether there was anything to do it to: a server that is just being started has no process.
    async fn does(&mut self, fault: &Fault, victim: usize, house: &mut House, serve: &Serve) -> bool {
        let server = &self.world.servers[victim];
        match (fault.act, server.kind) {
            (Act::Tool(tool, arguments), _) => {
                self.struck += 1;
                let (world, name) = (self.world.clone(), format!("x{}", self.struck));
                let mut agent = Agent::new(world, &name, Era::Modern, Some(victim), self.dice.clone());
                let arguments = serde_json::from_str(arguments).unwrap_or_default();
                self.calls.spawn(async move { agent.call(victim, Way::Slow, tool, arguments).await });
                true
            }
            (act, Kind::Web(web)) => at_web(act, web, house).await.is_some_and(|undo| {
                self.undo.extend(undo);
                true
            }),
            (act, Kind::Bad | Kind::Real) => {
                let processes = serve.processes_of(server.name);
                let victims = (processes.first().copied(), processes.last().copied());
                match (act, victims) {
                    (Act::Kill, (Some(pid), _)) | (Act::KillLast, (_, Some(pid))) => {
                        signal(pid, Signal::KILL);
                    }
                    (Act::Stop(ms), (Some(pid), _)) => {
                        signal(pid, Signal::STOP);
                        self.undo.push((later(ms), Undo::Stopped(pid, victim)));
                    }
                    _ => return false,
                }
                true
            }
        }
    }

    /// Mends what is due; at the end, everything.
    #[expect(clippy::disallowed_methods, reason = "a fault lasts so long, by the clock")]
    pub(super) fn mend(&mut self, house: &House, serve: &Serve, all: bool) {
        while self.calls.try_join_next().is_some() {}
        let now = Instant::now();
        let (due, rest): (Vec<_>, _) = self.undo.drain(..).partition(|(at, _)| all || *at <= now);
        self.undo = rest;
        for (_, undo) in due {
            match undo {
                Undo::Stopped(pid, victim) if serve.is_of(pid, self.world.servers[victim].name) => {
                    signal(pid, Signal::CONT);
                }
                Undo::Stopped(..) => {}
                Undo::Silent(web) => house.webs[web].set(|manners| manners.sockets = Sockets::Open),
            }
        }
    }

    /// Waits for the calls that were faults.
    pub(super) async fn rest(&mut self) {
        while self.calls.join_next().await.is_some() {}
    }
}

/// What is to be undone; `None` if nothing was done.
async fn at_web(act: Act, number: usize, house: &mut House) -> Option<Option<(Instant, Undo)>> {
    let web = &mut house.webs[number];
    match act {
        Act::Meet(times, tool, arguments) => {
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            web.set(|manners| {
                manners.fault_on("tools/call", webserver::Fault::new(tool, arguments).times(times));
            });
        }
        Act::Forget => web.forget_sessions(),
        Act::Reset => web.end_connections(Ending::Reset),
        Act::Restart => web.restart(Ending::Reset).await.ok()?,
        Act::Silence(ms) => {
            web.set(|manners| manners.sockets = Sockets::Silent);
            return Some(Some((later(ms), Undo::Silent(number))));
        }
        Act::Kill | Act::KillLast | Act::Stop(_) | Act::Tool(..) => return None,
    }
    Some(None)
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

#[expect(clippy::disallowed_methods, reason = "a fault lasts so long, by the clock")]
fn later(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}
