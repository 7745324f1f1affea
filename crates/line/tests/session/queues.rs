//! What an agent says to a server that does not read for a moment, and in which order it arrives.

use linetender::{Era, Policy, Rig, Settings, session};
use linetender_badserver::process;
use serde_json::json;

use crate::agent::Raw;
use crate::look::eventually;
use crate::peer::{Peer, Way};

/// More than a pipe holds.
const LONG: usize = 1 << 20;

/// S46: the listening request finds no room, and is sent when there is room again.
#[tokio::test]
async fn s46_a_subscription_while_the_server_does_not_read_is_told_later() {
    let peer = Peer::start(Way::Pipe, Era::Modern);
    let mut settings = Settings::default();
    settings.limits.queue = 4;
    let server = peer.server().policy(Policy::new(settings).unwrap());
    let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
    agent.greet().await;
    let pid = agent.call("pid", json!({})).await["content"][0]["text"].clone();
    let pid = pid.as_str().unwrap().parse().unwrap();
    process::stop(pid);
    let call = json!({ "name": "echo", "arguments": { "nonce": "long", "text": "x".repeat(LONG) } });
    let long = agent.ask("tools/call", call).await;
    for n in 0..64 {
        let custom = json!({ "jsonrpc": "2.0", "method": "notifications/custom", "params": { "n": n } });
        agent.say(custom.to_string()).await;
    }
    // When this is answered, all of it was heard; the subscription waits with it.
    agent.result("ping", json!({})).await;
    agent.result("resources/subscribe", json!({ "uri": "bad://one" })).await;
    agent.result("ping", json!({})).await;
    process::go_on(pid);
    agent.answer(long).await;
    // The server opens the stream when it reads the request, which is written behind the rest.
    let mut told = false;
    for _ in 0..200 {
        agent.call("touch", json!({ "uri": "bad://one" })).await;
        told = agent.count("notifications/resources/updated") > 0;
        if told {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(told, "{:?}", agent.heard);
}

/// S48: a notification may be about the call before it.
#[tokio::test]
async fn s48_a_notification_never_overtakes_an_earlier_call() {
    const ROUNDS: usize = 20;
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
    agent.greet().await;
    let mut sent = Vec::new();
    for round in 0..ROUNDS {
        let mut calls = Vec::new();
        for n in 0..3 {
            let nonce = format!("{round}-{n}");
            sent.push(format!("read {nonce}"));
            calls.push(
                agent.ask("tools/call", json!({ "name": "echo", "arguments": { "nonce": nonce } })).await,
            );
        }
        let method = format!("notifications/custom-{round}");
        agent.say(json!({ "jsonrpc": "2.0", "method": method }).to_string()).await;
        sent.push(format!("heard {method}"));
        for call in calls {
            agent.answer(call).await;
        }
    }
    let heard = || {
        let text = std::fs::read_to_string(peer.book.path()).unwrap();
        let words = text.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()));
        let words: Vec<_> = words
            .filter(|line| line.starts_with("read ") || line.starts_with("heard notifications/custom"))
            .collect();
        (words.len() == sent.len()).then_some(words)
    };
    assert_eq!(eventually(heard).await, sent);
}
