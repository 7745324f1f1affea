//! What a client sees of its server's deaths: never the end of its transport.

use std::time::Duration;

use linetender::{Line, Policy, ServerState, Settings, State};
use rmcp::ServiceExt as _;
use serde_json::json;
use tokio::task::JoinSet;

use crate::kit::{Bad, call, in_time, kill, legacy, our_words, says};

/// A budget that every answer refills: these deaths come faster than any server's own.
fn generous(bad: &mut Bad) {
    let mut settings = Settings::default();
    settings.state = ServerState::None;
    settings.budget.millis_per_answer = 5000;
    settings.budget.tokens = 50;
    settings.backoff.base = Duration::from_millis(1);
    settings.backoff.cap = Duration::from_millis(5);
    bad.server = bad.server.clone().policy(Policy::new(settings).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_under_calls_closes_no_peer_and_runs_nothing_twice() {
    let mut bad = legacy(&[]);
    generous(&mut bad);
    let client = bad.client().await;
    let mut failed = 0;
    for round in 0..20 {
        says(&client, "write", json!({ "nonce": format!("before{round}") })).await;
        let pid = bad.ran(&format!("before{round}"));
        let mut calls = JoinSet::new();
        for number in 0..10 {
            let peer = client.peer().clone();
            let nonce = format!("{round}-{number}");
            calls.spawn(async move {
                (call(&peer, "sleep", json!({ "nonce": nonce, "ms": number })).await.unwrap(), nonce)
            });
        }
        tokio::time::sleep(Duration::from_micros(round * 250)).await;
        kill(pid);
        for (result, nonce) in in_time(calls.join_all()).await {
            let runs = bad.book.runs().get(&nonce).copied().unwrap_or(0);
            if result.is_error != Some(true) {
                assert_eq!(runs, 1, "{nonce} was answered");
            } else if our_words(&result) == "not executed" {
                assert_eq!(runs, 0, "{nonce}");
                failed += 1;
            } else {
                failed += 1;
            }
        }
        assert!(!client.is_transport_closed());
    }
    assert!(failed > 0, "no kill met a call");
    bad.ran_nothing_twice();
    in_time(client.cancel()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_kills_its_server_is_told_of_and_the_next_call_works() {
    let bad = legacy(&[]);
    let client = bad.client().await;
    let result = call(&client, "kill", json!({ "nonce": "k" })).await.unwrap();
    assert_eq!(our_words(&result), "unknown");
    assert!(crate::kit::text(&result).contains("SIGKILL"), "{result:?}");
    says(&client, "echo", json!({ "nonce": "after" })).await;
    assert!(in_time(client.list_all_tools()).await.unwrap().len() > 10);
    bad.ran_nothing_twice();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_server_is_an_error_with_words_and_not_a_closed_peer() {
    let bad = legacy(&[]);
    let client = bad.client().await;
    for _ in 0..8 {
        our_words(&call(&client, "kill", json!({})).await.unwrap());
    }
    let error = in_time(client.list_all_prompts()).await.unwrap_err();
    let rmcp::ServiceError::McpError(error) = error else { panic!("{error}") };
    assert!(!(-32768..=-32000).contains(&error.code.0), "{error:?}");
    assert_eq!(error.data.unwrap()["source"], "linetender");
    assert!(!client.is_transport_closed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_start_says_why_to_serve() {
    let bad = legacy(&["--exit", "4", "--stderr", "no API key"]);
    let error = in_time(().serve(linetender_rmcp::transport(bad.server.clone()))).await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("exited with status 4") && error.contains("no API key"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_share_a_line_all_outlive_its_server() {
    let mut bad = legacy(&[]);
    generous(&mut bad);
    let line = Line::open(bad.server.clone());
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(in_time(().serve(linetender_rmcp::shared(&line))).await.unwrap());
    }
    let mut calls = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        let peer = client.peer().clone();
        calls.spawn(async move {
            for round in 0..100 {
                let arguments = json!({ "nonce": format!("{number}-{round}"), "ms": round % 4 });
                let result = call(&peer, "sleep", arguments.clone()).await.unwrap();
                if result.is_error == Some(true) {
                    our_words(&result);
                } else {
                    assert_eq!(crate::kit::text(&result), arguments.to_string(), "another's answer");
                }
            }
        });
    }
    let killing = async {
        for _ in 0..20 {
            // A line is up a moment before its process is known.
            while line.pid().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let generation = line.status().generation;
            kill(line.pid().unwrap());
            line.wait_for(|now| now.state == State::Up && now.generation > generation).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(async { tokio::join!(calls.join_all(), killing) }).await;
    assert!(clients.iter().all(|client| !client.is_transport_closed()));
    bad.ran_nothing_twice();
    in_time(line.close()).await;
}
