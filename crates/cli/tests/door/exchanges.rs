//! H03, H05, H10–H12, H16: one exchange goes wrong, and its call alone ends.

use std::time::Duration;

use linetender::Era;
use serde_json::{Value, json};

use crate::kit::{Door, in_both_eras};
use crate::look::most_memory;
use crate::told::told;
use crate::web::Web;

/// The longest message that a line takes, by default.
const CAP: u64 = 16 << 20;

/// Twice the cap, and what a small program with TLS needs.
const MEMORY_KIB: u64 = (2 * CAP + (48 << 20)) / 1024;

/// Each of these ends its own call like this, and disturbs neither another call nor the next.
fn ends(rows: &[(&str, Value, &str, &str)]) {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        door.begin("other", "sleep", json!({ "ms": 700 }));
        door.running("other");
        for (number, (tool, arguments, delivery, cause)) in rows.iter().enumerate() {
            let nonce = format!("{tool}-{number}");
            let failure = door.fails(&nonce, tool, arguments.clone());
            assert_eq!(failure.delivery, *delivery, "{tool} {arguments}: {failure}");
            assert!(failure.cause.contains(cause), "{tool} {arguments}: {failure}");
            assert!(door.took(&nonce) < Duration::from_secs(5));
            door.works();
        }
        let answer = door.answer("other");
        assert!(told(&answer).is_ok(), "nobody else is disturbed: {answer}");
        let handshakes = web.server.counters().initializes;
        assert!(handshakes <= 1, "the line lives on: {handshakes}");
        web.closes(door);
    });
}

#[test]
fn h03_a_reset_after_the_call_ran_leaves_it_unknown() {
    ends(&[
        ("reset_after_run", json!({}), "unknown", "HTTP transport error: response"),
        ("close_before", json!({}), "unknown", "HTTP transport error: response"),
        ("reset_after_run", json!({}), "unknown", ""),
    ]);
}

#[test]
fn h03_a_network_that_resets_everything_leaves_calls_unknown_and_the_door_open() {
    use linetender_badserver::proxy::Fault;
    in_both_eras(|era| {
        let web = Web::start(era);
        let (network, url) = web.network();
        let mut door = web.shut(&[&url], &[]);
        door.greets();
        let nonces = door.begin_all(5, "hang", json!({}));
        door.running_all(&nonces);
        web.set(&network, Fault::Reset);
        for nonce in &nonces {
            assert_eq!(door.failed(nonce).delivery, "unknown");
        }
        web.set(&network, Fault::None);
        door.works_again();
        door.closes();
    });
}

#[test]
fn h05_half_a_body_leaves_the_call_unknown_and_says_how_much_came() {
    ends(&[("half_body", json!({ "x": "x".repeat(1000) }), "unknown", "bytes")]);
}

#[test]
fn h10_a_header_that_the_server_wants_otherwise_is_mended_unseen() {
    let web = Web::start(Era::Modern);
    let mut door = web.door();
    door.ask("tools/list", json!({}));
    door.answers("a", "routed", json!({ "region": "north" }));
    assert!(web.server.seen().iter().any(|seen| seen.header("mcp-param-region") == Some("north")));
    web.server.set(|manners| manners.param_header = "Zone".into());
    door.answers("b", "routed", json!({ "region": "north" }));
    assert!(web.server.seen().iter().any(|seen| seen.header("mcp-param-zone") == Some("north")));
    // That the list is another now is so, and is told to those who asked to hear it: this agent did not.
    door.works();
    web.closes(door);
}

#[test]
fn h11_a_throttled_call_waits_as_long_as_it_was_told_and_runs_once() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.shut(&["--retry-on", "not-executed,rate-limited", &web.server.url()], &[]);
        door.greets();
        web.fault("status", json!({ "code": 429, "retry_after": 1 }), Some(1));
        door.answers("a", "write", json!({}));
        assert!(door.took("a") >= Duration::from_millis(900), "{:?}", door.took("a"));
        assert_eq!(door.book.runs()["a"], 1);
        // It says so again: the answer would be the same.
        web.fault("status", json!({ "code": 429, "retry_after": 1 }), Some(2));
        let failure = door.fails("b", "write", json!({}));
        assert!(failure.delivery == "refused" && failure.cause.contains("retry in 1 s"), "{failure}");
        assert!(
            failure.next_try.starts_with("in "),
            "what it says of the next try agrees with that: {failure}"
        );
        door.works();
        web.closes(door);
    });
}

#[test]
fn h11_a_throttled_call_is_not_sent_again_by_default() {
    let retry = json!({ "code": 429, "retry_after": 1, "run": true });
    ends(&[("status", retry, "refused", "retry in 1 s")]);
}

#[test]
fn h11_a_server_that_is_unavailable_leaves_its_call_unknown_and_is_not_given_up() {
    let long = "retry in 99999 s (HTTP 503); linetender waits at most 30 s";
    ends(&[
        ("status", json!({ "code": 503, "retry_after": 1 }), "unknown", "retry in 1 s"),
        ("status", json!({ "code": 503, "retry_after": 99_999 }), "unknown", long),
    ]);
}

#[test]
fn h12_a_failed_status_is_unknown_unless_it_carries_our_id() {
    ends(&[
        ("status", json!({ "code": 500 }), "unknown", "500"),
        ("status", json!({ "code": 502, "run": true }), "unknown", "502"),
        ("status", json!({ "code": 504 }), "unknown", "504"),
        ("status", json!({ "code": 413 }), "refused", "413"),
    ]);
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        let answer = door.answers("a", "status", json!({ "code": 500, "with_id": true, "run": true }));
        assert_eq!(answer["error"]["code"], -32603, "the server's own word: {answer}");
        let answer = door.answers("b", "no_id_200", json!({ "run": true }));
        assert_eq!(
            answer["error"]["code"], -32600,
            "an error without an id still ends its own call: {answer}"
        );
        door.works();
        web.closes(door);
    });
}

#[test]
fn h16_endless_bodies_events_and_bombs_end_at_the_cap_in_little_memory() {
    let cap = format!("longer than {CAP} bytes");
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        for tool in ["endless_body", "endless_event"] {
            let failure = door.fails(tool, tool, json!({}));
            assert!(failure.cause.contains(&cap), "{tool}: {failure}");
            flat(&door);
        }
        let failure = door.fails("bomb", "bomb", json!({ "bytes": 1_u64 << 30 }));
        assert_eq!(failure.delivery, "unknown", "{failure}");
        flat(&door);
        door.begin("drip", "drip", json!({ "ms": 100 }));
        door.running("drip");
        door.works();
        door.cancel("drip");
        door.works();
        web.closes(door);
    });
}

fn flat(door: &Door) {
    let memory = most_memory(door.shim());
    assert!(memory < MEMORY_KIB, "{memory} KiB");
}
