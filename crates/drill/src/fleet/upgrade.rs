//! Rolling upgrades: each gateway in turn is told to end, and started again when it has, under calls that must all be answered.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linetender::Era;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Drill;
use super::agent::{Agent, PATIENCE, World};
use super::mix::UPGRADE;
use super::net::{NODES, Place};
use super::probes;
use crate::dice::Dice;

/// Calls of modern agents in a second; and as many legacy agents with a session, each with a call in a second.
const EACH_SECOND: u32 = 25;

/// All of them, as far as they can be counted.
pub(super) const AGENTS: usize = 2 * EACH_SECOND as usize;

const SECOND: Duration = Duration::from_secs(1);

impl Drill {
    /// Replaces all gateways so many times.
    pub(super) async fn upgrades(&mut self, times: u32) -> Result<(), String> {
        if !self.all_answer().await {
            return Err("not every node serves every line in the beginning".to_owned());
        }
        let (tell, stop) = watch::channel(false);
        let mut all = JoinSet::new();
        for number in 0..EACH_SECOND {
            all.spawn(in_sessions(self.world.clone(), number, stop.clone()));
        }
        all.spawn(without(self.world.clone(), stop.clone()));
        all.spawn(probes::steady(self.world.clone(), false, stop));
        tokio::time::sleep(SECOND).await;
        for node in (0..times).flat_map(|_| 0..NODES) {
            self.play_on(UPGRADE, super::Whom::Gateway(node)).await?;
            self.progress(self.world.notes.now());
        }
        tell.send_replace(true);
        let gone = async { while all.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE * 2, gone).await.is_err() {
            self.world.notes.finds("agents do not come to an end".to_owned());
        }
        Ok(())
    }
}

/// A legacy agent that keeps its session.
async fn in_sessions(world: World, number: u32, mut stop: watch::Receiver<bool>) {
    let servers = world.servers.len();
    let mut agent = Agent::new(world, format!("l{number}"), Era::Legacy, None, Dice::new(0));
    // Not all at the same moment.
    let mut waits = SECOND / EACH_SECOND * number;
    for server in (0..servers).cycle().skip(number as usize % servers) {
        if tokio::time::timeout(waits, stop.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
        waits = SECOND;
        agent.call(server, "write", json!({})).await;
    }
}

/// Modern calls at a steady pace, however long they take.
async fn without(world: World, mut stop: watch::Receiver<bool>) {
    let mut calls = JoinSet::new();
    for number in 0.. {
        if tokio::time::timeout(SECOND / EACH_SECOND, stop.wait_for(|stop| *stop)).await.is_ok() {
            break;
        }
        while calls.try_join_next().is_some() {}
        let world = world.clone();
        calls.spawn(async move {
            let server = number % world.servers.len();
            let mut agent = Agent::new(world, format!("m{number}"), Era::Modern, None, Dice::new(0));
            agent.call(server, "write", json!({})).await;
        });
    }
    while calls.join_next().await.is_some() {}
}

/// How many ends of servers were charged to a restart budget, by what the gateways wrote down.
pub(super) fn charged(folder: &Path) -> Vec<String> {
    let of_node = |node: usize| {
        let journal = folder.join(Place::Gateway(node).name()).join("linetender/journal.jsonl");
        let text = std::fs::read_to_string(journal).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries.filter(|entry| !entry["charge"].is_null()).map(|entry| entry.to_string()).collect::<Vec<_>>()
    };
    (0..NODES).flat_map(of_node).collect()
}

/// For the notes of a run: what each call was told, if it was not answered.
pub(super) fn failed(world: &World) -> Vec<String> {
    let notes = Arc::clone(&world.notes);
    let pages = notes.pages();
    let calls = pages.histories.iter().flat_map(|history| &history.calls);
    let failed = calls.filter_map(|(nonce, asked)| match &asked.told {
        Some((_, Ok(()))) => None,
        Some((at, Err(failure))) => Some(format!("{nonce} failed at {:.1} s: {failure}", at.as_secs_f64())),
        None => Some(format!("{nonce} was told nothing")),
    });
    // Calls that only wait for all to be well may fail.
    failed.filter(|words| !words.contains("-g")).collect()
}
