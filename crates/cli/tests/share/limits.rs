//! What a keeper does when it has little: descriptors, memory, time.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::json;

use crate::agent::Agent;
use crate::kit::{House, eventually, is_alive};
use crate::works;

/// One window too many runs its server itself, at once. The keeper lives, and can still start its server again.
#[test]
fn a_keeper_without_descriptors_turns_windows_away_and_serves_the_others() {
    let house = House::new();
    let mut agents = vec![house.agent(&[]).greeted()];
    works(&mut agents[0]);
    let keeper = house.keeper();
    let few = Rlimit { current: Some(96), maximum: Some(96) };
    prlimit(Pid::from_raw(keeper), Resource::Nofile, few).unwrap();
    while house.servers().len() == 1 {
        assert!(agents.len() < 40, "40 agents with 96 descriptors");
        let begun = Instant::now();
        let mut agent = house.agent(&[]).greeted();
        works(&mut agent);
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?} for agent {}", begun.elapsed(), agents.len());
        agents.push(agent);
    }
    assert!(agents.len() > 8, "only {} agents", agents.len());
    let status = house.said(&["status"]);
    assert!(status.contains("no room for another agent"), "{status}");
    // The shared one is the child of the keeper's reaper, and the last agent's own the younger.
    for server in house.servers() {
        house.signal(server, Signal::KILL);
        // A call that reaches a dying process may be unknown on a busy machine.
        eventually(|| (!is_alive(server)).then_some(()));
    }
    agents.iter_mut().for_each(works);
    assert_eq!(house.keeper(), keeper);
    assert!(is_alive(keeper));
}

fn memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The room of the largest message is not kept for as long as its window is open.
#[test]
fn a_keeper_gives_back_what_large_messages_took() {
    let house = House::new();
    let mut agents: Vec<Agent> = (0..10).map(|_| house.agent(&[]).greeted()).collect();
    agents.iter_mut().for_each(works);
    let (keeper, text) = (house.keeper(), "x".repeat(8 << 20));
    let before = memory(keeper);
    for agent in &mut agents {
        let answer = agent.call(&json!("large"), "echo", &json!({ "text": text }));
        assert!(answer["error"].is_null());
        works(agent);
    }
    // Ten requests and their answers are 160 MiB.
    let after = eventually(|| Some(memory(keeper)).filter(|after| *after < before + 60 * 1024));
    assert!(after > 0);
}

/// A window has nothing to wait for if nothing of it is under way.
#[test]
fn a_window_ends_at_once_while_its_keeper_is_stopped() {
    let house = House::new();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    let keeper = house.keeper();
    house.signal(keeper, Signal::STOP);
    let begun = Instant::now();
    agent.to = None;
    agent.shim.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    house.signal(keeper, Signal::CONT);
}
