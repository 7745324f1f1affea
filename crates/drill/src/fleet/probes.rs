//! Measures beside the agents: calls at a steady pace, and how long a server takes to start by itself.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use linetender::Era;
use linetender_badserver::AS_SERVER;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::agent::{Agent, World};
use super::house::server_flags;
use super::notes::Notes;
use crate::dice::Dice;

/// A call of either kind of server in this time, however long the last one takes. Agents wait for their answers, and when all of them
/// wait for a gateway that is stopped, nobody would see what the others do.
const PROBE: Duration = Duration::from_millis(100);

/// Between two starts of a server.
const START: Duration = Duration::from_secs(2);

/// How long a start may take to be one.
const STARTED: Duration = Duration::from_secs(30);

/// Calls servers of one kind in turn until it is told to stop, and waits for the last of them. When stateless ones answer is noted.
pub(super) async fn steady(world: World, stateful: bool, mut stop: watch::Receiver<bool>) {
    let all: Vec<_> = (0..world.servers.len()).filter(|at| world.servers[*at].stateful == stateful).collect();
    let mut calls = JoinSet::new();
    for number in 0.. {
        if tokio::time::timeout(PROBE, stop.wait_for(|stop| *stop)).await.is_ok() {
            break;
        }
        while calls.try_join_next().is_some() {}
        let (world, server) = (world.clone(), all[number % all.len()]);
        calls.spawn(async move {
            let notes = Arc::clone(&world.notes);
            let (name, at) = (format!("{}{number}", if stateful { 'q' } else { 'p' }), notes.now());
            let mut agent = Agent::new(world, name, Era::Modern, None, Dice::new(0));
            let answered = agent.call(server, "write", json!({})).await;
            let (now, mut pages) = (notes.now(), notes.pages());
            match (stateful, answered) {
                (true, _) => {}
                (false, true) => pages.probes.push((now, now.saturating_sub(at))),
                (false, false) => pages.probes_failed += 1,
            }
        });
    }
    while calls.join_next().await.is_some() {}
}

/// Starts a server as gateways do, by itself, again and again; how long it takes to answer is noted.
pub(super) async fn starts(program: std::path::PathBuf, notes: Arc<Notes>, mut stop: watch::Receiver<bool>) {
    loop {
        let at = notes.now();
        if tokio::time::timeout(STARTED, start(&program)).await.is_ok_and(|started| started.is_some()) {
            let took = notes.now().saturating_sub(at);
            notes.pages().starts.push(took);
        }
        if tokio::time::timeout(START, stop.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

async fn start(program: &std::path::Path) -> Option<()> {
    let mut server = Command::new(program)
        .arg(AS_SERVER)
        .args(["--era", "legacy"])
        .args(server_flags())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "drill", "version": "1" },
    } });
    server.stdin.as_mut()?.write_all(format!("{hello}\n").as_bytes()).await.ok()?;
    let mut answer = String::new();
    BufReader::new(server.stdout.take()?).read_line(&mut answer).await.ok()?;
    let _ = server.kill().await;
    (!answer.is_empty()).then_some(())
}
