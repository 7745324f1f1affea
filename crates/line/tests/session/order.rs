//! S59: calls of one agent reach its server in the order in which the agent sent them, whatever becomes of the server.

use linetender::{Era, Line, Policy, Server, ServerState, Settings, session};
use serde_json::{Value, json};

use crate::agent::Raw;
use crate::look::{eventually, in_time, kill};
use crate::peer::{Peer, Way};

/// Deaths of the server in each test.
const ROUNDS: usize = 25;

/// A server that may die as often as these tests kill it.
fn mortal(peer: &Peer) -> Server {
    let mut settings = Settings::default();
    settings.state = ServerState::None;
    (settings.budget.tokens, settings.budget.useful_tokens) = (1000, 1000);
    (settings.backoff.cap, settings.backoff.useful_cap) = (settings.backoff.base, settings.backoff.base);
    peer.server().policy(Policy::new(settings).unwrap())
}

/// What one agent sent, in order, and whether it was answered.
#[derive(Default)]
struct Sent {
    waiting: Vec<(String, u64)>,
    ended: Vec<(String, bool)>,
}

impl Sent {
    async fn call(&mut self, agent: &mut Raw, nonce: String) {
        let id = agent.ask("tools/call", json!({ "name": "echo", "arguments": { "nonce": nonce } })).await;
        self.waiting.push((nonce, id));
    }

    /// Waits until all calls have ended.
    async fn end(&mut self, agent: &mut Raw) {
        // On several threads one answer may overtake another.
        let mut answers = std::collections::HashMap::new();
        while self.waiting.iter().any(|(_, id)| !answers.contains_key(id)) {
            let heard: Value = serde_json::from_str(&agent.hear_text().await).unwrap();
            if let (Some(id), None) = (heard["id"].as_u64(), heard.get("method")) {
                answers.insert(id, heard["result"]["isError"] != true);
            }
        }
        self.ended.extend(self.waiting.drain(..).map(|(nonce, id)| (nonce, answers[&id])));
    }

    /// The server read each answered call once, and all calls in the order in which they were sent. On a starved machine a call
    /// may also end as unknown, or be refused.
    fn arrived_in_order(&self, peer: &Peer) {
        let arrivals = peer.book.arrivals();
        let places = self.ended.iter().filter_map(|(nonce, is_answered)| {
            let mut places = (0..arrivals.len()).filter(|at| arrivals[*at] == *nonce);
            let place = places.next();
            assert!(place.is_some() || !is_answered, "{nonce} was answered and not read");
            assert_eq!(places.next(), None, "{nonce} was read twice");
            place
        });
        let read: Vec<_> = places.map(|at| (at, &arrivals[at])).collect();
        for pair in read.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} overtook {}: {read:?}", pair[1].1, pair[0].1);
        }
        assert!(read.len() * 2 > self.ended.len(), "most calls are read: {:?}", self.ended);
    }
}

#[tokio::test]
async fn s59_calls_that_come_while_the_server_is_down_arrive_in_order() {
    held().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s59_calls_that_come_while_the_server_is_down_arrive_in_order_on_several_threads() {
    held().await;
}

async fn held() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(mortal(&peer));
    let mut agents = ["2025-11-25", "2026-07-28"].map(|version| Raw::new(session::join(&line), version));
    for agent in &mut agents {
        agent.greet().await;
    }
    let [one, other] = &mut agents;
    let (mut ones, mut others) = (Sent::default(), Sent::default());
    for round in 0..ROUNDS {
        let generation = line.status().generation;
        kill("-9", eventually(|| line.pid()).await);
        in_time(line.wait_for(|status| !status.state.is_live() || status.generation > generation)).await;
        for n in 0..10 {
            ones.call(one, format!("one-{round}-{n}")).await;
            others.call(other, format!("other-{round}-{n}")).await;
        }
        ones.end(one).await;
        others.end(other).await;
    }
    ones.arrived_in_order(&peer);
    others.arrived_in_order(&peer);
    line.close().await;
}

#[tokio::test]
async fn s59_calls_that_a_dead_server_left_unread_arrive_in_order_and_before_later_ones() {
    lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s59_calls_that_a_dead_server_left_unread_arrive_in_order_and_before_later_ones_on_several_threads() {
    lost().await;
}

async fn lost() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(mortal(&peer));
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    let mut sent = Sent::default();
    for round in 0..ROUNDS {
        let generation = line.status().generation;
        let pid = eventually(|| line.pid()).await;
        kill("-STOP", pid);
        for n in 0..6 {
            sent.call(&mut agent, format!("agent-{round}-{n}")).await;
        }
        // When this is answered, the session has passed on what came before.
        agent.request("ping", json!({})).await;
        kill("-9", pid);
        // Some more come while the first are lost, held, or sent again.
        for n in 6..10 {
            sent.call(&mut agent, format!("agent-{round}-{n}")).await;
        }
        in_time(line.wait_for(|status| status.generation > generation)).await;
        sent.end(&mut agent).await;
    }
    sent.arrived_in_order(&peer);
    line.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s59_calls_to_a_server_that_takes_them_one_at_a_time_arrive_in_order_on_several_threads() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let mut settings = Settings::default();
    settings.limits.in_flight = 1;
    let line = Line::open(peer.server().policy(Policy::new(settings).unwrap()));
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    let mut sent = Sent::default();
    for round in 0..ROUNDS {
        for n in 0..10 {
            sent.call(&mut agent, format!("agent-{round}-{n}")).await;
        }
        sent.end(&mut agent).await;
    }
    sent.arrived_in_order(&peer);
    line.close().await;
}

#[tokio::test]
async fn s59_a_call_that_is_cancelled_holds_up_no_later_one() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(mortal(&peer));
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    let mut sent = Sent::default();
    for round in 0..ROUNDS {
        let generation = line.status().generation;
        let pid = eventually(|| line.pid()).await;
        kill("-STOP", pid);
        let mut cancelled = Sent::default();
        cancelled.call(&mut agent, format!("cancelled-{round}")).await;
        for n in 0..3 {
            sent.call(&mut agent, format!("agent-{round}-{n}")).await;
        }
        agent.cancel(cancelled.waiting[0].1).await;
        kill("-9", pid);
        in_time(line.wait_for(|status| status.generation > generation)).await;
        sent.end(&mut agent).await;
    }
    sent.arrived_in_order(&peer);
    line.close().await;
}
