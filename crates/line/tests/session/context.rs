//! S53: each agent is told of a context that it used, whoever else shares the server.

use std::time::Duration;

use linetender::{Era, Line, Policy, Server, ServerState, Settings, session};
use serde_json::{Value, json};

use crate::agent::Raw;
use crate::look::{eventually, in_time, kill};
use crate::peer::{Peer, Way};

/// A server that keeps this in memory.
fn keeps(peer: &Peer, state: ServerState) -> Server {
    let mut settings = Settings::default();
    settings.state = state;
    peer.server().policy(Policy::new(settings).unwrap())
}

fn perhaps(peer: &Peer) -> Server {
    keeps(peer, ServerState::Unknown)
}

async fn replaced(line: &Line) {
    let generation = line.status().generation;
    kill("-9", eventually(|| line.pid()).await);
    in_time(line.wait_for(|status| status.state.is_live() && status.generation > generation)).await;
}

fn is_notice(result: &Value) {
    let ours = &result["_meta"]["linetender"];
    assert_eq!((&result["isError"], &ours["reason"]), (&json!(true), &json!("context-replaced")), "{result}");
    assert_eq!(ours["delivery"], "not executed", "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("was not executed") && text.contains("set it up first"), "{text}");
}

#[tokio::test]
async fn s53_agents_of_one_server_are_told_each_of_what_it_used() {
    for era in [Era::Legacy, Era::Modern] {
        let peer = Peer::start(Way::Pipe, era);
        let line = Line::open(perhaps(&peer));
        let join = |version| Raw::new(session::join(&line), version);
        let mut agents = [join("2025-11-25"), join("2026-07-28"), join("2025-11-25")];
        for agent in &mut agents {
            agent.greet().await;
        }
        let [one, other, third] = &mut agents;
        for agent in [&mut *one, &mut *other] {
            agent.call("use", json!({ "what": "test" })).await;
        }
        replaced(&line).await;
        is_notice(&one.call("drop_all", json!({})).await);
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_ne!(one.call("drop_all", json!({})).await["isError"], true);
        is_notice(&other.call("drop_all", json!({})).await);
        assert_ne!(third.call("drop_all", json!({})).await["isError"], true, "it used nothing");
        line.close().await;
    }
}

#[tokio::test]
async fn s53_an_agent_whose_cancellation_crosses_the_notice_is_told_again() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(perhaps(&peer));
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    agent.call("use", json!({ "what": "test" })).await;
    replaced(&line).await;
    let id = agent.ask("tools/call", json!({ "name": "drop_all", "arguments": {} })).await;
    is_notice(&agent.answer(id).await["result"]);
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    agent.say(cancelled.to_string()).await;
    // A ping is answered after what came before it was heard.
    agent.request("ping", json!({})).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    is_notice(&agent.call("drop_all", json!({})).await);
    line.close().await;
}

#[tokio::test]
async fn s53_a_resource_and_a_prompt_of_a_server_with_state_are_not_read_from_fresh_memory_unseen() {
    let reads =
        [("resources/read", json!({ "uri": "note://a" })), ("prompts/get", json!({ "name": "greet" }))];
    for (state, is_told) in [(ServerState::Process, true), (ServerState::Unknown, false)] {
        for (method, params) in &reads {
            let peer = Peer::start(Way::Pipe, Era::Legacy);
            let line = Line::open(keeps(&peer, state));
            let mut agent = Raw::new(session::join(&line), "2025-11-25");
            agent.greet().await;
            agent.call("use", json!({ "what": "test" })).await;
            replaced(&line).await;
            let id = agent.ask(method, params.clone()).await;
            let answer = agent.answer(id).await;
            let reason = &answer["error"]["data"]["reason"];
            assert_eq!(*reason == "context-replaced", is_told, "{answer}");
            line.close().await;
        }
    }
}
