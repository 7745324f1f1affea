//! `run --share`: several agents, one server, and a process between them that can fail like any other.

#![allow(clippy::disallowed_methods, reason = "a test owns its threads, and measures with a real clock")]

#[path = "../agent/mod.rs"]
mod agent;
mod foreign;
mod kit;
mod limits;
mod strangers;

use std::fs;
use std::time::{Duration, Instant};

use agent::Agent;
use kit::{House, eventually, is_alive};
use rustix::process::Signal;
use serde_json::{Value, json};

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

fn works(agent: &mut Agent) {
    let answer = agent.call(&json!("works"), "echo", &json!({ "n": 1 }));
    assert_eq!(text(&answer), r#"{"n":1}"#, "{answer}");
}

/// What is said of a call that failed: whether it was executed.
fn verdict(answer: &Value) -> &str {
    answer["result"]["_meta"]["linetender"]["delivery"].as_str().unwrap_or("answered")
}

#[test]
fn agents_that_want_the_same_server_share_one_process() {
    let house = House::new();
    let mut agents: Vec<Agent> = (0..3).map(|_| house.agent(&[]).greeted()).collect();
    agents.iter_mut().for_each(works);
    assert_eq!(house.servers().len(), 1, "{:?}", house.servers());
    // Another folder, another setting, another variable that it is given: another server.
    let other = house.path().join("other");
    fs::create_dir(&other).unwrap();
    let mut apart = house.agent(&["--in-flight", "7"]).greeted();
    works(&mut apart);
    assert_eq!(house.servers().len(), 2);
    let mut keyed = house
        .agent_with(&["--env", "KEY"], |shim| {
            shim.env("KEY", "hunter2");
        })
        .greeted();
    works(&mut keyed);
    assert_eq!(house.servers().len(), 3);
    // A variable that nobody named is no difference.
    let mut same = house
        .agent_with(&[], |shim| {
            shim.env("AGENT_WINDOW", "17");
        })
        .greeted();
    works(&mut same);
    assert_eq!(house.servers().len(), 3);
    let status = house.said(&["status"]);
    assert!(status.contains("bad is shared by 4 of `linetender run --share`"), "{status}");
    assert!(status.contains("Another server of the same command has other values of: KEY"), "{status}");
    assert!(!status.contains("hunter2"), "{status}");
}

#[test]
fn what_one_agent_asks_no_other_hears_of() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    // The same id, the same progress token, at the same time.
    for (agent, nonce) in [(&mut one, "one"), (&mut two, "two")] {
        let params = json!({ "name": "progress", "arguments": { "nonce": nonce, "times": 3, "ms": 30 },
                             "_meta": { "progressToken": "t" } });
        agent.send(&json!(7), "tools/call", &params);
    }
    for (agent, nonce, other) in [(&mut one, "one", "two"), (&mut two, "two", "one")] {
        loop {
            let heard = agent.hear();
            assert!(!heard.to_string().contains(other), "{heard}");
            if heard.get("id") == Some(&json!(7)) {
                assert!(text(&heard).contains(nonce), "{heard}");
                break;
            }
        }
    }
    // A cancellation is of one's own call: ids are each agent's own.
    one.send(&json!(8), "tools/call", &json!({ "name": "sleep", "arguments": { "nonce": "a", "ms": 300 } }));
    two.send(&json!(8), "tools/call", &json!({ "name": "sleep", "arguments": { "nonce": "b", "ms": 300 } }));
    eventually(|| house.book().runs().contains_key("a").then_some(()));
    one.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 8 } }));
    let heard = two.hear();
    assert_eq!(heard["id"], json!(8));
    assert!(text(&heard).contains('b'), "{heard}");
}

#[test]
fn a_keeper_that_is_killed_is_replaced_and_no_call_runs_twice() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    works(&mut one);
    works(&mut two);
    let (keeper, servers) = (house.keeper(), house.servers());
    one.send(
        &json!("slow"),
        "tools/call",
        &json!({ "name": "sleep", "arguments": { "nonce": "slow", "ms": 60000 } }),
    );
    eventually(|| house.book().runs().contains_key("slow").then_some(()));
    house.signal(keeper, Signal::KILL);
    let answer = one.hear();
    assert_eq!(verdict(&answer), "unknown", "{answer}");
    assert!(text(&answer).contains("the linetender process that shares this server ended"), "{answer}");
    works(&mut one);
    works(&mut two);
    assert_ne!(house.keeper(), keeper);
    assert!(servers.iter().all(|pid| !is_alive(*pid)), "the old server outlived its keeper");
    assert_eq!(house.servers().len(), 1);
    assert_eq!(house.book().runs()["slow"], 1);
}

#[test]
fn a_keeper_that_hangs_is_killed_and_what_it_had_not_taken_is_sent_to_the_next_one() {
    let house = House::new();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    let keeper = house.keeper();
    house.signal(keeper, Signal::STOP);
    // It was never handed over, so nobody has to be told anything: it takes as long as finding out.
    let answer = agent.call(&json!(1), "echo", &json!({ "nonce": "after" }));
    assert!(text(&answer).contains("after"), "{answer}");
    assert_eq!(house.book().runs().get("after"), Some(&1));
    assert!(!is_alive(keeper));
}

#[test]
fn a_keeper_that_is_asked_to_go_hands_its_servers_over() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    works(&mut two);
    let keeper = house.keeper();
    one.send(
        &json!("slow"),
        "tools/call",
        &json!({ "name": "sleep", "arguments": { "nonce": "slow", "ms": 700 } }),
    );
    eventually(|| house.book().runs().contains_key("slow").then_some(()));
    house.signal(keeper, Signal::TERM);
    // What was handed over is answered; what comes meanwhile waits for the next keeper, and is not lost.
    works(&mut two);
    assert_eq!(text(&one.hear()), r#"{"ms":700,"nonce":"slow"}"#);
    works(&mut one);
    assert_ne!(house.keeper(), keeper);
    let journal = house.said(&["journal"]);
    assert!(journal.contains("was replaced"), "{journal}");
    assert!(!journal.contains("restarts left 4"), "it costs no restart: {journal}");
}

#[test]
fn a_server_that_asks_its_agent_something_is_not_shared_any_more() {
    let house = House::new();
    let mut one = house.agent(&[]).greeted();
    let mut two = house.agent(&[]).greeted();
    works(&mut two);
    let answer = one.call(&json!(1), "question", &json!({}));
    assert!(text(&answer).contains("-32601"), "nobody knows whom it means: {answer}");
    // From now on each has its own, and is asked itself.
    eventually(|| {
        works(&mut one);
        works(&mut two);
        (house.servers().len() == 2).then_some(())
    });
    let status = eventually(|| {
        let status = house.said(&["status"]);
        status.contains("is not shared: the server asked its agent for roots/list").then_some(status)
    });
    assert!(!status.contains("is shared by"), "{status}");
    // And so it stays, for the next keeper too.
    drop((one, two));
    house.signal(house.keeper(), Signal::KILL);
    let mut three = house.agent(&[]).greeted();
    works(&mut three);
    assert!(house.said(&["status"]).contains("is not shared"), "{}", house.said(&["status"]));
}

#[test]
fn thirty_windows_at_once_start_one_keeper_and_one_server() {
    let house = House::new();
    let mut agents: Vec<Agent> = (0..30).map(|_| house.agent(&[])).collect();
    agents = agents.into_iter().map(Agent::greeted).collect();
    agents.iter_mut().for_each(works);
    assert_eq!((house.keepers().len(), house.servers().len()), (1, 1));
}

#[test]
fn a_keeper_that_nobody_uses_ends_and_leaves_nothing_behind() {
    let house = House::new();
    house.begin_keeper("300ms");
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    let (keeper, server) = (house.keeper(), house.servers());
    drop(agent);
    eventually(|| (!is_alive(keeper) && !is_alive(server[0])).then_some(()));
    assert!(!house.runtime().join("keeper.sock").exists());
    // The next one who wants a server starts it again.
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
}

#[test]
fn a_server_that_dies_is_restarted_by_its_keeper_for_everybody() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    works(&mut one);
    let answer = one.call(&json!(1), "kill", &json!({ "nonce": "crash" }));
    assert_eq!(verdict(&answer), "unknown", "{answer}");
    works(&mut one);
    works(&mut two);
    assert_eq!(house.servers().len(), 1);
    assert_eq!(house.keepers().len(), 1);
}

#[test]
fn flags_that_do_not_go_with_sharing_are_refused_with_what_to_do() {
    let house = House::new();
    for (flags, wanted) in [
        (&["--share", "--stateful", "--", "x"][..], "--share would mix the state that several agents keep"),
        (&["--share", "https://example.com/mcp"], "--share applies to a command, not to a URL"),
        (
            &["--share", "--env", "NOT_SET_ANYWHERE", "--", "sh"],
            "--env NOT_SET_ANYWHERE: the variable is not set",
        ),
        (&["--env", "HOME", "--", "sh"], "--share"),
    ] {
        let said = house.said(&[&["run"], flags].concat());
        assert!(said.contains(wanted), "{flags:?}: {said}");
    }
}

#[test]
fn a_hung_keeper_is_found_within_seconds_also_while_a_call_is_with_it() {
    let house = House::new();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    agent.send(
        &json!("slow"),
        "tools/call",
        &json!({ "name": "sleep", "arguments": { "nonce": "slow", "ms": 60000 } }),
    );
    eventually(|| house.book().runs().contains_key("slow").then_some(()));
    let start = Instant::now();
    house.signal(house.keeper(), Signal::STOP);
    // Longer than an agent waits elsewhere: the bound is below.
    let line = agent.from.recv_timeout(Duration::from_secs(60)).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(verdict(&answer), "unknown", "{answer}");
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    works(&mut agent);
}

/// Longer than it takes to find a keeper that hangs: one that hands over is none.
#[test]
fn a_keeper_that_hands_over_answers_long_calls_first() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    works(&mut two);
    let slow = json!({ "name": "sleep", "arguments": { "nonce": "slow", "ms": 12000 } });
    one.send(&json!("slow"), "tools/call", &slow);
    eventually(|| house.book().runs().contains_key("slow").then_some(()));
    house.signal(house.keeper(), Signal::TERM);
    two.send(&json!("waits"), "tools/call", &json!({ "name": "echo", "arguments": { "nonce": "waits" } }));
    assert_eq!(text(&one.hear()), r#"{"ms":12000,"nonce":"slow"}"#);
    works(&mut one);
    assert_eq!(text(&two.hear()), r#"{"nonce":"waits"}"#);
    assert_eq!(house.book().runs()["slow"], 1);
}

#[test]
fn a_keeper_whose_socket_is_removed_makes_room_for_the_next_one() {
    let house = House::new();
    let mut one = house.agent(&[]).greeted();
    works(&mut one);
    let keeper = house.keeper();
    fs::remove_file(house.runtime().join("keeper.sock")).unwrap();
    let mut two = house.agent(&[]).greeted();
    works(&mut two);
    works(&mut one);
    assert!(!is_alive(keeper));
    assert_eq!((house.keepers().len(), house.servers().len()), (1, 1));
}

/// With `flock FILE agent`, the lock would outlive the agent.
#[test]
fn the_keeper_holds_nothing_that_the_agent_left_open() {
    let house = House::new();
    let (reads, held) = rustix::pipe::pipe().unwrap();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    drop(agent);
    // A descriptor that the next shim inherits, and everything that it starts.
    house.signal(house.keeper(), Signal::KILL);
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty()).unwrap();
    let mut agent = house.agent(&[]).greeted();
    works(&mut agent);
    drop((agent, held));
    let mut fds = [rustix::event::PollFd::new(&reads, rustix::event::PollFlags::IN)];
    let patience = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
    let ended = rustix::event::poll(&mut fds, Some(&patience)).unwrap();
    assert!(
        ended == 1 && fds[0].revents().contains(rustix::event::PollFlags::HUP),
        "somebody holds the pipe"
    );
    assert_eq!(house.keepers().len(), 1);
}

#[test]
fn a_shared_server_is_restarted_by_its_name() {
    let house = House::new();
    let (mut one, mut two) = (house.agent(&[]).greeted(), house.agent(&[]).greeted());
    works(&mut one);
    works(&mut two);
    let before = house.servers();
    let said = house.said(&["redial", "bad"]);
    assert!(said.starts_with(&house.keeper().to_string()), "{said}");
    works(&mut one);
    assert_ne!(house.servers(), before);
}

/// It takes two seconds to stop a server that does not go by itself.
#[test]
fn a_window_that_comes_while_its_server_is_being_stopped_waits_until_it_is_gone() {
    let house = House::new();
    house.begin_keeper("100ms");
    let stubborn = |shim: &mut std::process::Command| {
        shim.arg("--ignore-eof");
    };
    let mut one = house.agent_with(&[], stubborn).greeted();
    works(&mut one);
    let old = house.servers()[0];
    drop(one);
    // The line of the window, which was killed, is not written down as closed; the keeper's is.
    eventually(|| house.said(&["journal"]).contains("stopped by linetender (close)").then_some(()));
    assert!(is_alive(old), "it was gone before anybody could come");
    let mut two = house.agent_with(&[], stubborn).greeted();
    assert!(!is_alive(old), "two processes of one server at once");
    works(&mut two);
}
