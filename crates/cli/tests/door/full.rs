//! S09, S10, S12, S17, S18: too much of something, and servers that will not go.

use linetender::Era;
use serde_json::json;

use crate::kit::{Door, in_both_eras};
use crate::look::{eventually, kill, most_memory, unread};

/// The longest message that a line takes, by default.
const CAP: u64 = 16 << 20;

/// Twice the cap, and what a small program needs.
const MEMORY_KIB: u64 = (2 * CAP + (32 << 20)) / 1024;

#[test]
fn s09_a_busy_server_is_left_alone() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &["--single-threaded"]);
        door.answers("a", "sleep", json!({ "ms": 1000 }));
        door.works();
        assert_eq!(door.generations(), 1);
        door.closes();
    });
}

#[test]
fn s09_a_stopped_server_ends_its_call_by_the_hard_time_and_is_replaced() {
    in_both_eras(|era| {
        let times = ["--call-timeout", "500ms", "--quiet-limit", "1s", "--hang-after", "2s"];
        let mut door = Door::timed(era, &times);
        door.works();
        kill("-STOP", door.server());
        let failure = door.fails("a", "write", json!({}));
        assert_eq!(failure.delivery, "unknown", "{failure}");
        assert!(door.took("a") < std::time::Duration::from_secs(2), "{:?}", door.took("a"));
        door.works_again();
        assert_eq!(door.generations(), 2);
        door.closes();
    });
}

#[test]
fn s09_a_stopped_server_with_a_full_pipe_does_not_keep_the_shim_from_closing() {
    let mut door = Door::bad(Era::Legacy, &[]);
    door.works();
    let server = door.server();
    kill("-STOP", server);
    door.begin("a", "write", json!({ "x": "x".repeat(200_000) }));
    door.abandons("a");
    eventually("a full pipe", || (unread(server) > 60_000).then_some(()));
    door.closes();
}

#[test]
fn s10_a_server_that_never_reads_blocks_nobody_and_what_waited_runs_on_the_next_one() {
    let mut door = Door::bad(Era::Legacy, &["--careful", "--single-threaded"]);
    door.begin("first", "sleep", json!({ "ms": 60_000 }));
    door.running("first");
    // More than are in flight and in the line's queue: the rest waits in the shim (its bound is tested with S35).
    let nonces = door.begin_all(400, "write", json!({ "x": "x".repeat(1000) }));
    let server = door.server();
    eventually("a full pipe", || (unread(server) > 30_000).then_some(()));
    assert!(door.ask("ping", json!({})).contains("result"), "the shim itself is there");
    kill("-9", server);
    assert_eq!(door.failed("first").delivery, "unknown");
    for nonce in &nonces {
        let answer = door.answer(nonce);
        assert!(crate::told::told(&answer).is_ok(), "{answer}");
    }
    door.closes();
}

#[test]
fn s12_an_answer_over_the_cap_fails_its_call_alone() {
    in_both_eras(|era| {
        let mut door = Door::bad(era, &[]);
        door.begin("other", "sleep", json!({ "ms": 1000 }));
        door.running("other");
        let failure = door.fails("a", "big", json!({ "bytes": CAP + 4_000_000 }));
        assert!(failure.cause.contains(&format!("longer than {CAP} bytes")), "{failure}");
        assert!(failure.answered(), "{failure}");
        let answer = door.answer("other");
        assert!(crate::told::told(&answer).is_ok(), "{answer}");
        door.works();
        assert_eq!(door.generations(), 1);
        assert!(most_memory(door.shim()) < MEMORY_KIB, "{} KiB", most_memory(door.shim()));
        door.closes();
    });
}

#[test]
fn s12_an_endless_answer_fails_its_call_and_one_without_an_id_fails_all() {
    for tool in ["endless", "endless_no_id"] {
        let mut door = Door::timed(Era::Legacy, &["--stateless"]);
        // Its lists are read by then: nothing of ours is in flight.
        door.works();
        door.begin("other", "hang", json!({}));
        door.running("other");
        let failure = door.fails("a", tool, json!({ "bytes": 3 * CAP }));
        assert!(failure.cause.contains(&format!("longer than {CAP} bytes")), "{failure}");
        // It will never say anything else: somebody ends it.
        if tool == "endless" {
            kill("-9", door.server());
        }
        let other = door.failed("other");
        assert_eq!(other.delivery, "unknown", "{other}");
        if tool == "endless_no_id" {
            assert_eq!(failure.delivery, "unknown", "{failure}");
            kill("-9", door.server());
        }
        door.works();
        assert!(most_memory(door.shim()) < MEMORY_KIB, "{} KiB", most_memory(door.shim()));
        door.closes();
    }
}

#[test]
fn s17_a_hundred_megabytes_on_stderr_block_nobody() {
    let mut door = Door::bad(Era::Legacy, &[]);
    door.answers("a", "flood_stderr", json!({ "bytes": 100_000_000 }));
    door.works();
    assert!(most_memory(door.shim()) < MEMORY_KIB, "{} KiB", most_memory(door.shim()));
    door.closes();
}

#[test]
fn s18_a_server_that_ignores_end_of_file_and_term_is_killed_with_its_tree() {
    let mut door = Door::script(Era::Legacy, "trap '' TERM; exec \"$@\"", &["--ignore-eof", "--grandchild"]);
    door.greets();
    door.works();
    let start = std::time::Instant::now();
    door.closes();
    let took = start.elapsed();
    assert!((3..10).contains(&took.as_secs()), "politely first: {took:?}");
}
