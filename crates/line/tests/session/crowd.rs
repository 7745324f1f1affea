//! Several agents on one line: each hears what is its own.

use linetender::{Era, Line, session};
use serde_json::json;

use crate::agent::Raw;
use crate::peer::{ERAS, Peer, Way};

#[tokio::test]
async fn agents_of_both_eras_share_a_line_and_each_has_its_own_version() {
    for server in ERAS {
        let peer = Peer::start(Way::Pipe, server);
        let line = Line::open(peer.server());
        for version in ["2024-11-05", "2026-07-28", "2025-06-18"] {
            let mut agent = Raw::new(session::join(&line), version);
            let hello = agent.greet().await;
            match agent.era() {
                Era::Legacy => assert_eq!(hello["protocolVersion"], version),
                Era::Modern => assert_eq!(hello["supportedVersions"], json!([version])),
            }
            // Their ids and tokens are the same; their answers are not.
            agent.call("echo", json!({ "nonce": version })).await;
            assert!(agent.heard.is_empty(), "{:?}", agent.heard);
        }
        assert_eq!(line.status().generation, 1, "one server for all of them");
        line.close().await;
    }
}

#[tokio::test]
async fn nobody_is_asked_on_a_line_that_is_shared_with_a_legacy_server() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(peer.server());
    let mut agents = ["2025-11-25", "2026-07-28"].map(|version| Raw::new(session::join(&line), version));
    for agent in &mut agents {
        agent.greet().await;
        let result = agent.call("question", json!({})).await;
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("-32601"), "{told}");
    }
    for agent in &mut agents {
        agent.call("echo", json!({})).await;
        assert!(agent.heard.is_empty(), "{:?}", agent.heard);
    }
    line.close().await;
}

#[tokio::test]
async fn what_one_agent_cancels_goes_on_for_the_others() {
    let peer = Peer::start(Way::Pipe, Era::Legacy);
    let line = Line::open(peer.server());
    let mut agents = ["2025-11-25", "2026-07-28"].map(|version| Raw::new(session::join(&line), version));
    for agent in &mut agents {
        agent.greet().await;
    }
    let [one, other] = &mut agents;
    let sleep = |nonce: &str| json!({ "name": "sleep", "arguments": { "ms": 200, "nonce": nonce } });
    let (mine, theirs) =
        (one.ask("tools/call", sleep("one")).await, other.ask("tools/call", sleep("other")).await);
    assert_eq!(mine, theirs, "the same id on purpose");
    peer.runs("one").await;
    peer.runs("other").await;
    one.cancel(mine).await;
    assert!(other.answer(theirs).await["result"]["content"][0]["text"].as_str().unwrap().contains("other"));
    one.call("echo", json!({})).await;
    assert!(one.heard.is_empty(), "{:?}", one.heard);
    line.close().await;
}

#[tokio::test]
async fn x08_what_a_server_writes_by_itself_is_not_shown_to_other_principals() {
    for (principals, shown) in [([1, 1], true), ([1, 2], false)] {
        let peer = Peer::start(Way::Pipe, Era::Legacy);
        let line = Line::open(peer.server());
        let [mut a, mut b] = principals.map(|principal| {
            let who = session::Who { principal, agent: 7 };
            Raw::new(
                session::join_as(
                    &line,
                    session::Guest { who, name: "somebody".into(), ..Default::default() },
                ),
                "2025-11-25",
            )
        });
        for agent in [&mut a, &mut b] {
            agent.greet().await;
            agent.result("logging/setLevel", json!({ "level": "debug" })).await;
        }
        a.call("echo", json!({ "nonce": "a" })).await;
        b.call("flood_stderr", json!({ "bytes": 2000 })).await;
        a.call("log", json!({ "level": "error" })).await;
        b.call("echo", json!({})).await;
        assert_eq!(b.count("notifications/message") > 0, shown, "{:?}", b.heard);
        let id = b.ask("tools/call", json!({ "name": "exit", "arguments": { "status": 3 } })).await;
        let text = b.answer(id).await.to_string();
        assert_eq!((text.contains("eeee"), text.contains("linetender journal")), (shown, !shown), "{text}");
        line.close().await;
    }
}
