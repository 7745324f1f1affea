//! A list that is the same is the same to the byte, whoever died in between; one that changed is told once.

use std::time::Duration;

use linetender::{Era, Event, Kind, Line, State, session};
use serde_json::json;

use crate::agent::{META, Raw, members};
use crate::look::{eventually, in_time, kill};
use crate::peer::{ERAS, Peer, Way};

const CHANGED: &str = "notifications/tools/list_changed";

async fn list(agent: &mut Raw) -> String {
    let params = agent.params(json!({}));
    agent.say(format!(r#"{{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{params}}}"#)).await;
    loop {
        let text = agent.hear_text().await;
        let answer = members(&text);
        match answer.get("result") {
            Some(result) => return result.clone(),
            None => agent.heard.push_back(serde_json::from_str(&text).unwrap()),
        }
    }
}

/// Kills the server, and waits until the lists of the next one have been read.
async fn again(line: &Line) {
    let before = line.status().generation;
    kill("-9", eventually(|| line.pid()).await);
    in_time(line.wait_for(|status| status.state == State::Up && status.generation > before)).await;
    in_time(async {
        while line.catalogue().await.unwrap().generation <= before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_crash_changes_no_byte_of_a_list_and_a_change_is_told_to_each_agent_once() {
    for server in ERAS {
        let peer = Peer::start(Way::Pipe, server);
        let line = Line::open(peer.server());
        let mut agents = ["2025-06-18", "2026-07-28"].map(|version| Raw::new(session::join(&line), version));
        let mut before = Vec::new();
        let mut streams = Vec::new();
        for agent in &mut agents {
            agent.greet().await;
            before.push(list(agent).await);
            if agent.era() == Era::Modern {
                let wanted = json!({ "notifications": { "toolsListChanged": true } });
                streams.push(agent.ask("subscriptions/listen", wanted).await);
                agent.next("notifications/subscriptions/acknowledged").await;
            }
        }
        let mut events = line.events();
        again(&line).await;
        for (agent, before) in agents.iter_mut().zip(&before) {
            assert_eq!(list(agent).await, *before, "{server:?}");
            assert!(agent.heard.is_empty(), "{:?}", agent.heard);
        }
        // The next one has a tool more, and so has the one after it.
        peer.will_change();
        again(&line).await;
        again(&line).await;
        let mut changes = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
            if let Event::Changed(kind, change) = event {
                changes.push((kind, change.added.clone(), change.removed.clone(), change.changed.clone()));
            }
        }
        assert_eq!(changes, [(Kind::Tools, vec!["fresh".to_owned()], vec![], vec![])]);
        for (agent, before) in agents.iter_mut().zip(&before) {
            let after = list(agent).await;
            assert_ne!(after, *before);
            assert!(after.contains(r#""fresh""#), "{after}");
            agent.call("echo", json!({})).await;
            let told = agent.next(CHANGED).await;
            let tag = told["params"]["_meta"].get(format!("{META}subscriptionId"));
            assert_eq!(tag.is_some(), agent.era() == Era::Modern, "{told}");
            assert!(tag.is_none_or(|tag| *tag == streams[0]), "{told}");
            assert!(agent.heard.is_empty(), "once: {:?}", agent.heard);
        }
        line.close().await;
    }
}
