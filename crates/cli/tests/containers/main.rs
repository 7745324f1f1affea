//! Servers in containers, which live in a daemon and not below their client. See docker.py for what stands in for docker.

#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test waits for real processes")]

#[path = "../agent/mod.rs"]
mod agent;
mod kit;

use kit::{Docker, ask, client, close, hello, kill};

#[test]
fn a_container_whose_client_dies_is_ended_before_the_next_one_starts_and_none_is_left_after_close() {
    for flags in [&[][..], &["--rm"], &["--rm", "--name", "mcp"]] {
        let docker = Docker::start();
        let mut agent = docker.agent(&docker.server(flags)).begun();
        let first = ask(&mut agent, "first");
        kill(client(&docker));
        let second = ask(&mut agent, "second");
        assert_ne!(first, second, "{flags:?}");
        // The server in it dies: nothing is left to be killed.
        kill(second);
        let third = ask(&mut agent, "third");
        let now = docker.ps();
        assert_eq!((now.pids, now.most), (vec![third], 1), "{flags:?}: {:?}", docker.words());
        assert!(!docker.log().contains("is in use"), "{flags:?}: {}", docker.log());
        close(agent);
        // Where it is not to be removed, what has ended is the user's.
        let left = if flags.is_empty() { 3 } else { 0 };
        let now = docker.wait("all have ended", |now| now.ids.is_empty() && now.all == left);
        assert_eq!(now.most, 1, "{flags:?}");
        assert_eq!(docker.records(), [""; 0], "{flags:?}");
    }
}

#[test]
fn what_a_killed_linetender_left_behind_is_named_and_ended_by_the_next_start() {
    let docker = Docker::start();
    let server = docker.server(&["--rm", "--name", "mcp"]);
    let mut agent = docker.agent(&server).begun();
    ask(&mut agent, "first");
    let left = docker.ps().ids.remove(0);
    // Dropping it kills it.
    drop(agent);
    let mut agent = docker.agent(&server).begun();
    let second = ask(&mut agent, "second");
    let now = docker.ps();
    assert_eq!((now.pids, now.most), (vec![second], 1), "{:?}", docker.words());
    let journal = docker.linetender(&["journal", "--server", "bad"]);
    let named = format!("container {} of an earlier start may still run: ended it", &left[..12]);
    assert!(journal.contains(&named), "{journal}");
    assert!(docker.log().contains("may still run") && docker.log().contains(&left[..12]), "{}", docker.log());
    close(agent);
    docker.wait("none is left", |now| now.ids.is_empty());
    assert_eq!(docker.records(), [""; 0]);
}

#[test]
fn two_processes_with_one_server_leave_each_others_container_alone() {
    let docker = Docker::start();
    let server = docker.server(&["--rm"]);
    let mut one = docker.agent(&server).begun();
    let first = ask(&mut one, "1");
    let mut other = docker.agent(&server).begun();
    let second = ask(&mut other, "2");
    assert_ne!(first, second);
    // A restart of one of them, and its end.
    kill(second);
    let third = ask(&mut other, "3");
    assert_eq!(ask(&mut one, "4"), first);
    assert_eq!(docker.ps().pids.len(), 2);
    close(other);
    docker.wait("the other one is gone", |now| now.pids == [first]);
    assert_eq!(ask(&mut one, "5"), first, "{third} was killed by its own linetender alone");
    close(one);
    docker.wait("none is left", |now| now.ids.is_empty());
}

#[test]
fn a_container_that_cannot_be_ended_keeps_a_second_one_from_starting() {
    let docker = Docker::start();
    let mut agent = docker.agent(&docker.server(&["--rm"])).begun();
    let first = ask(&mut agent, "first");
    let id = docker.ps().ids.remove(0);
    let refuses = docker.path().join("refuse-kill");
    std::fs::write(&refuses, "").unwrap();
    kill(client(&docker));
    let why = loop {
        let why = docker.linetender(&["why", "bad"]);
        if why.contains("cannot be ended") {
            break why;
        }
    };
    let words = format!("Container {} of an earlier start may still run and cannot be ended", &id[..12]);
    assert!(why.contains(&words) && why.contains("permission denied"), "{why}");
    let now = docker.ps();
    assert_eq!((now.pids, now.most), (vec![first], 1));
    std::fs::remove_file(&refuses).unwrap();
    // It is ended by the next try.
    let now = docker.wait("the next one runs", |now| now.pids.len() == 1 && now.pids != [first]);
    assert_eq!(now.most, 1);
    ask(&mut agent, "second");
}

#[test]
fn a_name_that_another_container_has_is_explained() {
    let docker = Docker::start();
    let server = docker.server(&["--name", "mcp"]);
    let mut others = docker.run(&server);
    docker.wait("it has the name", |now| now.ids.len() == 1);
    let mut agent = docker.agent(&server);
    hello(&mut agent);
    let answer = loop {
        let answer = agent.hear();
        if answer["id"] == "hello" {
            break answer.to_string();
        }
    };
    assert!(answer.contains("the container name mcp is in use by another container"), "{answer}");
    let why = docker.linetender(&["why", "bad"]);
    assert!(why.contains("Another window of the agent has the same server"), "{why}");
    assert!(why.contains("docker ps --all"), "{why}");
    assert_eq!(docker.ps().ids.len(), 1, "somebody else's container lives");
    others.kill().unwrap();
    others.wait().unwrap();
}

#[test]
fn a_command_that_is_no_plain_run_is_left_as_it_is() {
    let own = std::env::temp_dir().join(format!("lt-own-{}.cid", std::process::id()));
    let _ = std::fs::remove_file(&own);
    for flags in [&["--cidfile", own.to_str().unwrap()][..], &["-d"]] {
        let docker = Docker::start();
        let server = docker.server(flags);
        let mut agent = docker.agent(&server);
        hello(&mut agent);
        docker.wait("it runs", |now| !now.ids.is_empty());
        assert_eq!(docker.words()[0], server[1..].join(" "));
        assert_eq!(docker.records(), [""; 0]);
        drop(agent);
    }
    std::fs::remove_file(&own).unwrap();
}

#[test]
fn a_client_that_cannot_write_our_file_runs_without_it() {
    let docker = Docker::start();
    std::fs::write(docker.path().join("no-cidfile"), "").unwrap();
    let server = docker.server(&["--rm"]);
    let mut agent = docker.agent(&server).begun();
    ask(&mut agent, "1");
    assert_eq!(docker.words().last().unwrap(), &server[1..].join(" "), "{:?}", docker.words());
    assert!(docker.log().contains("cannot be followed"), "{}", docker.log());
}

#[test]
fn why_says_of_a_server_elsewhere_that_it_may_live_on() {
    let docker = Docker::start();
    let mut agent = docker.agent(&["ssh".to_owned(), "host".to_owned()]).begun();
    kill(ask(&mut agent, "1"));
    ask(&mut agent, "2");
    let why = docker.linetender(&["why", "bad"]);
    assert!(why.contains("what it started on the other side may live on"), "{why}");
    close(agent);
    let docker = Docker::start();
    let mut agent = docker.agent(&docker.server(&["--rm"])).begun();
    kill(ask(&mut agent, "1"));
    ask(&mut agent, "2");
    let why = docker.linetender(&["why", "bad"]);
    assert!(!why.contains("on the other side"), "linetender ends that itself: {why}");
}
