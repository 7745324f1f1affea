//! S04–S08, S11, S22, S23, S25: servers that die, and what is left.

use std::time::Duration;

use linetender::Era;
use serde_json::json;

use crate::kit::{Door, in_both_eras};
use crate::look::{eventually, kill, lives, unread};

/// On a busy machine; the close ladder, which nobody may have to wait for, takes longer.
const AT_ONCE: Duration = Duration::from_millis(1500);

#[test]
fn s04_a_server_killed_while_idle_is_back_with_the_same_list_byte_for_byte() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        let tools = |door: &mut Door| {
            let text = door.ask("tools/list", json!({}));
            text[text.find(r#""result""#).unwrap()..].to_owned()
        };
        door.works();
        let before = tools(&mut door);
        let first = door.kills();
        door.works();
        assert_ne!(door.server(), first);
        assert_eq!(tools(&mut door), before);
        door.closes();
    });
}

#[test]
fn s05_twenty_calls_in_flight_each_end_once_when_the_server_is_killed() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        let nonces = door.begin_all(20, "hang", json!({}));
        door.running_all(&nonces);
        let start = std::time::Instant::now();
        kill("-9", door.server());
        for nonce in &nonces {
            let failure = door.failed(nonce);
            assert_eq!(failure.delivery, "unknown", "{failure}");
            assert!(failure.cause.contains("SIGKILL"), "{failure}");
        }
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        door.works();
        door.closes();
    });
}

#[test]
fn s05_what_the_dead_server_never_read_is_run_by_the_next_one_unseen() {
    in_both_eras(|era| {
        // Reads byte by byte, does one thing at a time, and is killed while it sleeps: the rest lies in the pipe.
        let mut door = Door::bad(era, &["--careful", "--single-threaded"]);
        door.begin("first", "sleep", json!({ "ms": 60_000 }));
        door.running("first");
        let rest = door.begin_all(10, "write", json!({ "x": "x".repeat(1000) }));
        let server = door.server();
        eventually("ten calls in the pipe", || (unread(server) > 10_000).then_some(()));
        kill("-9", server);
        assert_eq!(door.failed("first").delivery, "unknown");
        for nonce in &rest {
            let answer = door.answer(nonce);
            assert!(crate::told::told(&answer).is_ok(), "it was provably not executed: {answer}");
        }
        assert!(rest.iter().all(|nonce| door.book.runs()[nonce] == 1));
        door.closes();
    });
}

#[test]
fn s05_calls_that_come_while_the_server_dies_each_end_once() {
    in_both_eras(|era| {
        let mut door = Door::timed(era, &["--stateless"]);
        for round in 0..5 {
            let nonces: Vec<_> = (0..60).map(|number| format!("r{round}-{number}")).collect();
            for (number, nonce) in nonces.iter().enumerate() {
                door.begin(nonce, "write", json!({}));
                if number == 20 {
                    kill("-9", door.server());
                }
            }
            for nonce in &nonces {
                let answer = door.answer(nonce);
                if crate::told::told(&answer).is_err() {
                    assert_eq!(crate::told::assert_full(&answer).delivery, "unknown", "{answer}");
                }
            }
            door.works();
        }
        door.closes();
    });
}

#[test]
fn s05_an_answer_that_is_in_the_pipe_when_the_server_dies_is_passed_on() {
    let mut door = Door::timed(Era::Legacy, &["--stateless"]);
    for round in 0..5 {
        let (last, dies) = (format!("last-{round}"), format!("dies-{round}"));
        door.begin(&last, "write", json!({}));
        door.begin(&dies, "kill", json!({}));
        let answer = door.answer(&last);
        assert!(crate::told::told(&answer).is_ok(), "{answer}");
        assert_eq!(door.failed(&dies).delivery, "unknown");
        // Each answer earns a part of what the next death costs.
        for _ in 0..6 {
            door.works();
        }
    }
    door.closes();
}

#[test]
fn s06_a_grandchild_that_holds_the_pipes_hides_no_death_and_goes_too() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--grandchild"]);
        door.begin("a", "hang", json!({}));
        door.running("a");
        let (shim, server, tree) = (door.shim(), door.server(), door.tree());
        assert!(tree.len() >= 4, "shim, reaper, server and grandchild: {tree:?}");
        let start = std::time::Instant::now();
        kill("-9", server);
        let failure = door.failed("a");
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        assert_eq!(failure.delivery, "unknown", "{failure}");
        door.works();
        let old = tree.into_iter().filter(|pid| *pid != shim);
        assert_eq!(
            old.filter(|pid| lives(*pid)).collect::<Vec<_>>(),
            [0_i32; 0],
            "no dial before the old tree is gone"
        );
        door.closes();
    });
}

#[test]
fn s07_a_closed_output_ends_calls_at_once_and_the_server_with_them() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        door.begin("other", "hang", json!({}));
        door.running("other");
        let server = door.server();
        let failure = door.fails("a", "close_stdout", json!({}));
        assert!(door.took("a") < AT_ONCE, "{:?}", door.took("a"));
        assert!(failure.cause.contains("closed its stdout"), "{failure}");
        assert_eq!(door.failed("other").delivery, "unknown");
        door.works();
        assert!(!lives(server));
        door.closes();
    });
}

#[test]
fn s08_a_closed_input_costs_nobody_anything() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--single-threaded"]);
        door.answers("a", "close_stdin", json!({}));
        door.works();
        assert_eq!(door.generations(), 2);
        door.closes();
    });
}

#[test]
fn s11_half_a_line_of_its_own_is_no_answer() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        let failure = door.fails("a", "half", json!({}));
        assert_eq!(failure.delivery, "unknown", "{failure}");
        door.works();
        door.closes();
    });
}

#[test]
fn s11_a_line_of_ours_that_was_half_read_is_run_by_the_next_one_unseen() {
    let mut door = Door::bad(Era::Legacy, &["--careful", "--single-threaded"]);
    door.begin("first", "sleep", json!({ "ms": 60_000 }));
    door.running("first");
    // Longer than its pipe: at most half of it can have been read.
    door.begin("half", "write", json!({ "x": "x".repeat(200_000) }));
    let server = door.server();
    eventually("a full pipe", || (unread(server) > 60_000).then_some(()));
    kill("-9", server);
    assert_eq!(door.failed("first").delivery, "unknown");
    let answer = door.answer("half");
    assert!(crate::told::told(&answer).is_ok(), "half a line runs nothing: {answer}");
    door.closes();
}

#[test]
fn s22_a_list_that_really_changed_across_a_restart_is_told_once() {
    in_both_eras(|era| {
        let file = crate::look::Dir::new();
        let extra = file.file("extra");
        let mut door = Door::bad(era, &["--changing", extra.to_str().unwrap()]);
        let listed = |door: &mut Door| door.ask("tools/list", json!({})).contains(r#""surprise""#);
        if era == Era::Modern {
            door.listens();
        }
        for (content, known) in [("", false), ("surprise", true), ("surprise", true)] {
            std::fs::write(&extra, content).unwrap();
            door.kills();
            door.works();
            if known && door.changes == 0 {
                door.hears("notifications/tools/list_changed");
                door.changes = 1;
            }
            assert_eq!(listed(&mut door), known);
        }
        door.closes();
    });
}

#[test]
fn s23_when_the_shim_is_killed_its_whole_tree_goes_escapees_included() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--grandchild", "--escapee"]);
        door.works();
        eventually("five processes", || (door.tree().len() >= 5).then_some(()));
        door.dies();
    });
}

#[test]
fn s25_a_killed_reaper_takes_the_server_with_it_and_both_are_replaced() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--escapee"]);
        door.begin("a", "hang", json!({}));
        door.running("a");
        let (shim, old) = (door.shim(), door.tree());
        assert!(old.len() >= 4, "{old:?}");
        kill("-9", door.reaper());
        let failure = door.failed("a");
        assert_eq!(failure.delivery, "unknown", "{failure}");
        door.works();
        let left: Vec<_> = old.into_iter().filter(|pid| *pid != shim && lives(*pid)).collect();
        assert!(left.is_empty(), "{left:?}");
        door.closes();
    });
}
