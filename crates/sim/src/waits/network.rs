//! A server somewhere else, and what its network may do to a call (H41).

use std::sync::Arc;

use linetender::ServerState;
use tokio::time::sleep;

use super::{Caps, ORDER, World, reason, secs, within};
use crate::mcp::WRITE;
use crate::net::Net;
use crate::web::{Manners, Web};

impl World {
    pub(super) fn across_the_network(manners: Manners) -> Self {
        Self::at(Some(manners), ServerState::None, |_| {}, |_| {})
    }

    fn net(&self) -> &Arc<Net> {
        &self.road.as_ref().unwrap().net
    }

    pub(super) fn web(&self) -> &Web {
        &self.road.as_ref().unwrap().web
    }
}

/// H41: a train in a tunnel, a VPN that changes its keys.
#[tokio::test(start_paused = true)]
async fn a_network_that_is_away_for_a_while() {
    for away in [5, 25, 100] {
        let world = World::across_the_network(Manners::good(20_000));
        let mut agent = world.agent().await;
        let id = agent.call(WRITE, "a").await;
        sleep(secs(5)).await;
        world.net().cut(true);
        sleep(secs(away)).await;
        world.net().cut(false);
        let (took, answer) = agent.end(id).await;
        assert_eq!(answer["result"]["content"][0]["text"], "a", "{away} s: {answer}");
        within(took, secs(30), secs(30).max(secs(5 + away)) + secs(3));
        assert_eq!(world.scene.book().deeds["a"].runs.len(), 1, "{away} s");
        assert_eq!(world.line.status().generation, 1, "{away} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_that_stays_away() {
    let world = World::across_the_network(Manners::good(20_000));
    let mut agent = world.agent().await;
    let id = agent.call(WRITE, "a").await;
    sleep(secs(5)).await;
    world.net().cut(true);
    let (took, answer) = agent.end(id).await;
    within(took, secs(5 + 119), secs(5) + Caps::away());
    assert_eq!(reason(&answer).1, "unknown", "{answer}");
}

/// Each time that it is back, the wait for it begins anew; the limit for a server that says nothing does not.
#[tokio::test(start_paused = true)]
async fn a_network_that_comes_and_goes_before_a_server_that_never_answers() {
    let world = World::across_the_network(Manners::good(10));
    let mut agent = world.agent().await;
    agent.works("a").await;
    world.web().stop(true);
    let id = agent.call(WRITE, "b").await;
    let net = Arc::clone(world.net());
    let weather = crate::tasks::spawn(async move {
        loop {
            for (away, lasts) in [(false, 20), (true, 100)] {
                net.cut(away);
                sleep(secs(lasts)).await;
            }
        }
    });
    let (took, answer) = agent.end(id).await;
    weather.abort();
    let caps = &world.caps;
    within(took, caps.0.call.hang_after, caps.hang() + caps.restart() + ORDER);
    assert_eq!(reason(&answer).1, "unknown", "{answer}");
}
