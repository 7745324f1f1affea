//! How many lines there are, and from when on.

use http::Method;
use linetender::State;
use serde_json::json;

use crate::kit::{House, in_time, is_answered, names, text};

#[tokio::test]
async fn a_lazy_server_is_started_when_the_first_agent_comes() {
    let text = "[servers.now]\n{bad}\n[servers.later]\n{bad}\nlazy = true";
    let house = House::open(text).await;
    let state = |name: &str| {
        let lines = house.gateway.lines();
        lines.iter().find(|line| line.name() == name).unwrap().status().state
    };
    in_time(async {
        while state("now") != State::Up {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(house.send(Method::GET, "/readyz", &[], String::new()).await.status, 200);
    assert_eq!(state("later"), State::Idle, "nobody came yet");
    in_time(async {
        loop {
            let listed = house.modern("/mcp", "tools/list", json!({})).await.json().await;
            if names(&listed, "tools").contains(&"later__echo".to_owned()) {
                return;
            }
        }
    })
    .await;
    assert_eq!(state("later"), State::Up);
}

#[tokio::test]
async fn as_many_lines_as_agreed_on_and_whoever_would_need_one_more_is_told() {
    let text_of = "[gateway]\nlines = 3\n[servers.own]\n{bad}\nscope = 'session'\nargs = ['--era', 'legacy']";
    let house = House::up(text_of).await;
    let (first, second) = (house.agent("/mcp/own").await, house.agent("/mcp").await);
    assert!(is_answered(&second.call("own__echo", json!({})).await));
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let refused = house.send(Method::POST, "/mcp/own", &[], hello.to_string()).await;
    assert_eq!(refused.status, 503);
    assert!(!refused.headers.contains_key("retry-after"), "nobody knows when a session ends");
    let third = house.agent("/mcp").await;
    let told = third.call("own__echo", json!({})).await;
    assert_eq!(told["result"]["_meta"]["linetender"]["delivery"], "not executed", "{told}");
    assert!(text(&told).contains("server connection limit reached"), "{told}");
    assert_eq!(first.delete().await, 200);
    in_time(async { while third.call("own__echo", json!({})).await["result"].get("isError").is_some() {} })
        .await;
}

#[tokio::test]
async fn s32_a_healthy_server_does_not_wait_behind_those_that_never_answer() {
    // Three times as many as are dialled at once, and they come first.
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let silent: String = (0..cores * 6)
        .map(|n| format!("[servers.a{n}]\ncommand = 'sleep'\nargs = ['600']\n"))
        .collect::<Vec<_>>()
        .concat();
    let house = House::open(&format!("{silent}[servers.zz]\n{{bad}}")).await;
    let lines = house.gateway.lines();
    let healthy = lines.iter().find(|line| line.name() == "zz").unwrap();
    let up = tokio::time::timeout(std::time::Duration::from_secs(6), healthy.ready()).await;
    assert!(up.is_ok(), "servers that never answer kept it waiting");
}
