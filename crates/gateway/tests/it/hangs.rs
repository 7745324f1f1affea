//! S26: a server that hangs while its agents give up on each call and try again.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::{House, is_answered};

const HOUSE: &str = r#"
[servers.a]
{bad}
args = ["--single-threaded"]
policy = { probe = { keepalive = 400, timeout = 200 }, call = { abandoned_after = 1500 } }
"#;

const PATIENCE: Duration = Duration::from_millis(150);

/// Longer than a replacement may take, on any machine.
const MOST: Duration = Duration::from_secs(20);

/// A modern call whose agent hangs up. Whether it was answered before that.
async fn gives_up(house: &House, tool: &str) -> bool {
    let call = async {
        let answer = house.modern("/mcp/a", "tools/call", json!({ "name": tool, "arguments": {} })).await;
        is_answered(&answer.last().await)
    };
    tokio::time::timeout(PATIENCE, call).await.unwrap_or(false)
}

#[tokio::test]
async fn s26_a_stopped_server_is_replaced_while_its_agents_give_up_and_try_again() {
    let house = House::up(HOUSE).await;
    let line = house.gateway.lines().remove(0);
    let pid = line.pid().unwrap();
    assert!(gives_up(&house, "echo").await);
    let stopped = std::process::Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
    assert!(stopped.success());
    let start = Instant::now();
    while !gives_up(&house, "write").await {
        assert!(start.elapsed() < MOST, "it lives on");
    }
    assert!(start.elapsed() >= Duration::from_millis(1500), "{:?}", start.elapsed());
    let status = line.status();
    assert_eq!((status.generation, status.budget / 1000), (2, 4));
}

#[tokio::test]
async fn s26_a_busy_server_is_not_touched_while_agents_give_up_behind_the_call_it_works_on() {
    let house = House::up(HOUSE).await;
    let line = house.gateway.lines().remove(0);
    let agent = house.agent("/mcp").await;
    let busy = agent.call("a__sleep", json!({ "ms": 4000 }));
    // One that comes before the long call is answered at once.
    let others = async {
        loop {
            gives_up(&house, "write").await;
        }
    };
    let told = tokio::select! {
        told = busy => told,
        () = others => unreachable!("they never stop"),
    };
    assert!(is_answered(&told), "{told}");
    let status = line.status();
    assert_eq!((status.generation, status.budget), (1, 5000));
}
