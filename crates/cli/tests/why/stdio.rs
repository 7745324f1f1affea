//! Servers that are processes.

use insta::assert_snapshot;
use linetender_badserver::Book;
use serde_json::json;

use crate::agent::LINETENDER;
use crate::kit::{Dir, Shim};

const BAD: [&str; 5] = ["--", LINETENDER, "__badserver", "--era", "legacy"];

fn bad(flags: &[&str]) -> Shim {
    Shim::works(&[&BAD, flags].concat())
}

#[test]
fn exits_at_start_and_says_why() {
    let shim =
        Shim::start(&[&BAD[..], &["--exit", "1", "--stderr", "Error: GITHUB_TOKEN is not set"]].concat());
    assert_snapshot!(shim.parked().why());
}

#[test]
fn killed_while_it_served() {
    let shim = bad(&[]);
    shim.signal("-KILL");
    assert_snapshot!(shim.back().why());
}

#[test]
fn segmentation_fault() {
    let shim = bad(&[]);
    // Rust's own handler takes the first for a stack overflow, and steps aside.
    shim.signal("-SEGV");
    shim.signal("-SEGV");
    assert_snapshot!(shim.back().why());
}

#[test]
fn command_not_found() {
    assert_snapshot!(Shim::start(&["--", "linetender-no-such-command"]).parked().why());
}

#[test]
fn not_found_by_a_shell() {
    assert_snapshot!(Shim::script("linetender-no-such-command 2>&-", &[]).parked().why());
}

#[test]
fn prints_its_usage_and_exits() {
    assert_snapshot!(Shim::script("echo 'usage: server --port N'; exit 2", &[]).parked().why());
}

#[test]
fn ends_at_once_without_an_error() {
    assert_snapshot!(Shim::script("exit 0", &[]).parked().why());
}

#[test]
fn hangs_in_a_call_that_the_agent_gives_up() {
    let folder = Dir::new();
    let book = Book::at(folder.path().join("book"));
    let mut shim = bad(&["--single-threaded", "--book", book.path().to_str().unwrap()]);
    shim.begin("slow", "sleep", &json!({ "nonce": "slow", "ms": 60_000 }));
    // A call that the server never had would not be waited for.
    shim.until("the server has the call", |_| book.runs().contains_key("slow"));
    shim.cancel("slow");
    // A server that hangs is replaced for a caller that waits.
    shim.begin("waits", "echo", &json!({}));
    assert_snapshot!(shim.back().why());
}

#[test]
fn says_nothing_at_its_start() {
    assert_snapshot!(Shim::script("exec sleep 60", &[]).parked().why());
}

#[test]
fn is_no_mcp_server_and_runs_on() {
    assert_snapshot!(Shim::script("echo 'Listening on port 3000'; exec sleep 60", &[]).parked().why());
}

#[test]
fn closes_its_output_and_lives_on() {
    let mut shim = bad(&[]);
    shim.begin("close", "close_stdout", &json!({}));
    assert_snapshot!(shim.back().why());
}

#[test]
fn breaks_off_in_the_middle_of_an_answer() {
    let mut shim = bad(&[]);
    shim.begin("half", "half", &json!({}));
    assert_snapshot!(shim.back().why());
}

#[test]
fn suspended_while_nobody_used_it() {
    let mut shim = bad(&[]);
    shim.signal("-STOP");
    shim.until("long silence", |line| {
        line["state"] == "suspect" && line["since_millis"].as_u64() > Some(2500)
    });
    shim.begin("waits", "echo", &json!({}));
    assert_snapshot!(shim.back().why());
}

#[test]
fn dies_again_and_again_while_it_serves() {
    let mut shim = bad(&[]);
    // The policy allows three restarts: the fourth end parks the server. `why` counts a call that is refused after that, or does not,
    // by when it comes.
    for _ in 0..4 {
        shim.agent.call(&json!("kill"), "kill", &json!({}));
    }
    assert_snapshot!(shim.parked().why());
}
