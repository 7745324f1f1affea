//! Who does the harm, and mends it.

use std::time::Duration;

use linetender_badserver::process;
use rustix::process::Signal;

use super::engine::Engine;
use super::gateways::Gateways;
use super::mix::{Act, Fault, Lasts};
use super::net::{self, NODES, Place, Way};
use super::watcher::Watcher;
use crate::dice::Dice;

/// A day, in seconds.
const DAY: i64 = 24 * 3600;

/// So much longer than a lease lasts what is to last longer than one.
const LONGER: Duration = Duration::from_secs(5);

/// How many servers are killed at once.
const KILLED: usize = 3;

/// A fault as it happened.
#[derive(Clone, Debug)]
pub(super) struct Strike {
    pub(super) fault: Fault,
    /// Whom it was done to, in words.
    pub(super) whom: String,
    /// When it was done, and undone, and when everything worked again everywhere.
    pub(super) at: Duration,
    pub(super) mended: Duration,
    pub(super) recovered: Option<Duration>,
    /// The lines that have to come up elsewhere, and the processes that they had.
    pub(super) lines: Vec<(String, i32)>,
}

/// What a fault was done to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whom {
    Gateway(usize),
    Engine(usize),
    Servers,
}

impl Whom {
    pub(super) fn words(self) -> String {
        match self {
            Self::Gateway(node) => Place::Gateway(node).name(),
            Self::Engine(node) => Place::Nats(node).name(),
            Self::Servers => String::new(),
        }
    }
}

/// Whom it is done to. Gateways that have lines come first: others have nothing to lose.
pub(super) async fn choose(fault: &Fault, dice: &mut Dice, engine: &Engine, watcher: &Watcher) -> Whom {
    let mut any = || usize::try_from(dice.below(NODES as u64)).unwrap_or(0);
    match fault.act {
        Act::CutLeader | Act::KillLeader | Act::StopLeader | Act::KillQuorum => {
            Whom::Engine(engine.leader().await)
        }
        Act::IsolateEngine => Whom::Engine(any()),
        Act::KillServers => Whom::Servers,
        _ => {
            let first = any();
            let all = (0..NODES).map(|step| (first + step) % NODES);
            Whom::Gateway(all.into_iter().find(|node| !watcher.of(*node).is_empty()).unwrap_or(first))
        }
    }
}

/// How long it lasts.
pub(super) fn lasts(fault: &Fault, lease: Duration) -> Duration {
    match fault.lasts {
        Lasts::Moment => Duration::ZERO,
        Lasts::Short => lease / 4,
        Lasts::Lease => lease + LONGER,
    }
}

/// Does it.
///
/// # Errors
/// If it cannot be done.
pub(super) async fn strike(
    act: Act,
    whom: Whom,
    gateways: &mut Gateways,
    engine: &mut Engine,
    watcher: &Watcher,
) -> Result<(), String> {
    let all_nats: Vec<_> = (0..NODES).map(Place::Nats).collect();
    let everything = |but: Place| -> Vec<Place> {
        let nodes = (0..NODES).flat_map(|node| [Place::Gateway(node), Place::Nats(node)]);
        nodes.chain([Place::Hub]).filter(|place| *place != but).collect()
    };
    match (act, whom) {
        (Act::KillGateway, Whom::Gateway(node)) => gateways.kill(node),
        (Act::StopGateway, Whom::Gateway(node)) => gateways.signal(node, Signal::STOP),
        (Act::EndGateway, Whom::Gateway(node)) => gateways.signal(node, Signal::TERM),
        (Act::CutGateway, Whom::Gateway(node)) => net::cut(Place::Gateway(node), &all_nats, Way::Both)?,
        (Act::CutGatewayOut, Whom::Gateway(node)) => net::cut(Place::Gateway(node), &all_nats, Way::Out)?,
        (Act::CutGatewayIn, Whom::Gateway(node)) => net::cut(Place::Gateway(node), &all_nats, Way::In)?,
        (Act::IsolateGateway, Whom::Gateway(node)) => {
            net::cut(Place::Gateway(node), &everything(Place::Gateway(node)), Way::Both)?;
        }
        (Act::ClockAhead, Whom::Gateway(node)) => gateways.step_clock(node, DAY).await?,
        (Act::ClockBack, Whom::Gateway(node)) => gateways.step_clock(node, -DAY).await?,
        (Act::CutLeader, Whom::Engine(node)) => {
            let others: Vec<_> = all_nats.into_iter().filter(|place| *place != Place::Nats(node)).collect();
            net::cut(Place::Nats(node), &others, Way::Both)?;
        }
        (Act::IsolateEngine, Whom::Engine(node)) => {
            net::cut(Place::Nats(node), &everything(Place::Nats(node)), Way::Both)?;
        }
        (Act::KillLeader, Whom::Engine(node)) => engine.kill(node),
        (Act::StopLeader, Whom::Engine(node)) => engine.stop(node, true),
        (Act::KillQuorum, Whom::Engine(node)) => {
            engine.kill(node);
            engine.kill((node + 1) % NODES);
        }
        (Act::KillServers, _) => {
            let alive: Vec<_> = (0..NODES).flat_map(|node| watcher.of(node)).collect();
            // Every so many-th: of several nodes.
            let every = (alive.len() / KILLED).max(1);
            for (_, pid) in alive.iter().step_by(every).take(KILLED) {
                process::kill(*pid);
            }
        }
        _ => return Err(format!("{act:?} cannot be done to {whom:?}")),
    }
    Ok(())
}

/// Undoes it.
///
/// # Errors
/// If something does not come back.
pub(super) async fn mend(
    act: Act,
    whom: Whom,
    gateways: &mut Gateways,
    engine: &mut Engine,
) -> Result<(), String> {
    match (act, whom) {
        (Act::KillGateway, Whom::Gateway(node)) => gateways.start_again(node).await?,
        (Act::EndGateway, Whom::Gateway(node)) => {
            gateways.ended(node).await?;
            gateways.start_again(node).await?;
        }
        (Act::StopGateway, Whom::Gateway(node)) => gateways.signal(node, Signal::CONT),
        (
            Act::CutGateway | Act::CutGatewayOut | Act::CutGatewayIn | Act::IsolateGateway,
            Whom::Gateway(node),
        ) => net::mend(Place::Gateway(node)),
        (Act::ClockAhead | Act::ClockBack, Whom::Gateway(node)) => gateways.step_clock(node, 0).await?,
        (Act::CutLeader | Act::IsolateEngine, Whom::Engine(node)) => net::mend(Place::Nats(node)),
        (Act::KillLeader, Whom::Engine(node)) => engine.start_again(node)?,
        (Act::StopLeader, Whom::Engine(node)) => engine.stop(node, false),
        (Act::KillQuorum, Whom::Engine(node)) => {
            engine.start_again(node)?;
            engine.start_again((node + 1) % NODES)?;
        }
        _ => {}
    }
    Ok(())
}
