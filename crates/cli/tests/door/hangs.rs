//! S26: a server that hangs while its agent gives up on each call and tries again.

use std::process::Command;
use std::time::{Duration, Instant};

use linetender::Era;
use serde_json::json;

use crate::agent::LINETENDER;
use crate::kit::{Door, in_both_eras};
use crate::look::{Dir, kill};

/// The policy's own times, but for the hang: short enough for a test.
const POLICY: &str = "probe = { keepalive = 400, timeout = 200 }\ncall = { abandoned_after = 1500 }\nbudget = { tokens = 5 }\n";

/// How long the agent waits for each call.
const PATIENCE: Duration = Duration::from_millis(150);

/// Longer than a replacement may take, on any machine.
const MOST: Duration = Duration::from_secs(20);

struct Hung {
    door: Door,
    policy: Dir,
}

impl Hung {
    fn door(era: Era, server: &[&str]) -> Self {
        let policy = Dir::new();
        let path = policy.file("policy.toml");
        std::fs::write(&path, POLICY).unwrap();
        let mut door = Door::set(era, &["--policy", path.to_str().unwrap()], "exec \"$@\"", server);
        door.greets();
        door.works();
        Self { door, policy }
    }

    /// A call that its agent takes back. Should its answer come all the same, that is no harm.
    fn gives_up(&mut self, nonce: &str, tool: &str) {
        self.door.begin(nonce, tool, json!({ "ms": 60_000 }));
        std::thread::sleep(PATIENCE);
        self.door.notify("notifications/cancelled", &json!({ "requestId": nonce }));
        self.door.abandons(nonce);
    }

    fn status(&self) -> String {
        let dir = self.door.dir.path();
        let status = Command::new(LINETENDER)
            .arg("status")
            .env("XDG_RUNTIME_DIR", dir)
            .env("XDG_STATE_HOME", dir)
            .output()
            .unwrap();
        String::from_utf8_lossy(&status.stdout).into_owned()
    }

    fn ends(self) {
        self.door.closes();
        drop(self.policy);
    }
}

#[test]
fn s26_a_stopped_server_is_replaced_while_its_agent_gives_up_and_tries_again() {
    in_both_eras(|era| {
        let mut hung = Hung::door(era, &[]);
        kill("-STOP", hung.door.server());
        let (start, mut number, mut said) = (Instant::now(), 0, String::new());
        while hung.door.generations() < 2 {
            assert!(start.elapsed() < MOST, "it lives on");
            hung.gives_up(&format!("t{number}"), "write");
            if number == 5 {
                said = hung.status();
            }
            number += 1;
        }
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(1500), "{took:?}");
        assert!(said.contains("silent since 2"), "{said}");
        hung.door.works();
        assert!(hung.door.book.runs().values().all(|runs| *runs == 1), "{:?}", hung.door.book.runs());
        hung.ends();
    });
}

#[test]
fn s26_a_full_pipe_protects_no_stopped_server() {
    let mut hung = Hung::door(Era::Legacy, &[]);
    kill("-STOP", hung.door.server());
    // More than a pipe holds, and no call.
    hung.door.notify("notifications/roots/list_changed", &json!({ "pad": "x".repeat(300_000) }));
    let (start, mut number) = (Instant::now(), 0);
    while hung.door.generations() < 2 {
        assert!(start.elapsed() < MOST, "it lives on");
        hung.gives_up(&format!("t{number}"), "write");
        number += 1;
    }
    hung.door.works();
    hung.ends();
}

#[test]
fn s26_a_busy_server_is_not_touched_while_calls_behind_the_one_it_works_on_are_given_up() {
    let mut hung = Hung::door(Era::Legacy, &["--single-threaded"]);
    hung.door.begin("long", "sleep", json!({ "ms": 4000 }));
    hung.door.running("long");
    for number in 0..20 {
        hung.gives_up(&format!("t{number}"), "write");
    }
    let answer = hung.door.answer("long");
    assert!(crate::told::told(&answer).is_ok(), "{answer}");
    hung.door.works();
    assert_eq!(hung.door.generations(), 1);
    hung.ends();
}

#[test]
fn s26b_a_server_that_answers_pings_and_no_call_is_left_alone_and_told_of() {
    let mut hung = Hung::door(Era::Legacy, &[]);
    for number in 0..20 {
        hung.gives_up(&format!("t{number}"), "hang");
    }
    let said = hung.status();
    assert!(said.contains("answers pings; no call answered since 2"), "{said}");
    assert!(said.contains(&format!("to restart it: kill -9 {}", hung.door.server())), "{said}");
    assert_eq!(hung.door.generations(), 1);
    hung.door.works();
    assert!(!hung.status().contains("no call answered"), "a call was answered");
    hung.ends();
}
