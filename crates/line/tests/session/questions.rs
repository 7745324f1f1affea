//! What a modern server has to ask reaches a legacy agent; what comes of it when the agent does not play along, or the server
//! is gone.

use std::time::Duration;

use linetender::{Deadline, Era, Policy, RetryOn, Rig, Settings, session};
use linetender_badserver::webserver::Ending;
use serde_json::json;

use crate::agent::Raw;
use crate::peer::{Peer, WAYS, Way};

#[tokio::test]
async fn a_question_that_the_agent_refuses_fails_its_call_with_a_reason() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Modern);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        let question = agent.next("roots/list").await;
        let error = json!({ "code": -32601, "message": "no roots here" });
        agent.say(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }).to_string()).await;
        let result = agent.answer(id).await["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("did not answer"), "{text}");
        assert_eq!(result["_meta"]["linetender"]["source"], "linetender");
        agent.call("echo", json!({})).await;
        assert!(agent.heard.is_empty(), "{:?}", agent.heard);
    }
}

/// S44: the server has executed a part of the call before it asked.
#[tokio::test]
async fn s44_a_call_whose_server_is_gone_when_its_question_is_answered_may_have_been_executed() {
    let mut peer = Peer::start(Way::Http, Era::Modern);
    let mut settings = Settings::default();
    settings.retry_on = RetryOn::NOTHING;
    let server = peer.server().policy(Policy::new(settings).unwrap());
    let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
    agent.greet().await;
    let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
    let question = agent.next("roots/list").await;
    peer.web.as_mut().unwrap().stop(Ending::Reset).await;
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    agent.say(answer.to_string()).await;
    let result = agent.answer(id).await["result"].clone();
    assert_eq!(result["_meta"]["linetender"]["delivery"], "unknown", "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("unknown whether the call was executed"), "{text}");
}

/// S44: a person takes longer to answer than the call may take in all; the next round has its own time.
#[tokio::test]
async fn s44_the_round_after_a_slow_answer_has_its_own_time() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Modern);
        let mut settings = Settings::default();
        settings.call.limit = Duration::from_secs(3);
        settings.call.cap = settings.call.limit;
        let server = peer.server().policy(Policy::new(settings).unwrap()).deadline(Deadline::Policy);
        let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
        agent.greet().await;
        let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        let question = agent.next("roots/list").await;
        // A person thinks. That takes longer than the whole call may.
        tokio::time::sleep(settings.call.cap).await;
        let roots = json!({ "roots": [{ "uri": "file:///slow" }] });
        agent.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots }).to_string()).await;
        let result = agent.answer(id).await["result"].clone();
        assert!(result.to_string().contains("slow"), "{way:?}: {result}");
    }
}

#[tokio::test]
async fn a_call_given_up_while_its_question_is_open_takes_the_agents_late_answer_nowhere() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Modern);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        let question = agent.next("roots/list").await;
        agent.cancel(id).await;
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
        agent.say(answer.to_string()).await;
        agent.call("echo", json!({})).await;
        assert!(agent.heard.is_empty(), "{:?}", agent.heard);
    }
}

fn settings(limit: Duration) -> Settings {
    let mut settings = Settings::default();
    settings.call.limit = limit;
    settings.call.cap = limit;
    settings
}

/// S45: a person takes longer to answer than the call may take.
#[tokio::test]
async fn s45_the_time_of_a_call_stands_still_while_its_question_is_open() {
    const LIMIT: Duration = Duration::from_secs(2);
    for way in WAYS {
        let peer = Peer::start(way, Era::Legacy);
        let server = peer.server().policy(Policy::new(settings(LIMIT)).unwrap()).deadline(Deadline::Policy);
        let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
        agent.greet().await;
        let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        let question = agent.next("roots/list").await;
        // A call that comes later waits for nobody's answer.
        let other = agent.ask("tools/call", json!({ "name": "hang", "arguments": {} })).await;
        let ended = agent.answer(other).await["result"].clone();
        assert!(ended.to_string().contains("no response within"), "{way:?}: {ended}");
        let roots = json!({ "roots": [{ "uri": "file:///slow" }] });
        agent.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots }).to_string()).await;
        let result = agent.answer(id).await["result"].clone();
        assert!(result.to_string().contains("slow"), "{way:?}: {result}");
    }
}

/// S45: the time stands still for so long and no longer; then it goes on.
#[tokio::test]
async fn s45_a_question_that_nobody_answers_ends_with_its_call() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Legacy);
        let mut settings = settings(Duration::from_secs(1));
        settings.call.question_cap = Duration::from_secs(1);
        let server = peer.server().policy(Policy::new(settings).unwrap()).deadline(Deadline::Policy);
        let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
        agent.greet().await;
        let id = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        agent.next("roots/list").await;
        let ended = agent.answer(id).await["result"].clone();
        assert!(ended.to_string().contains("no response within"), "{way:?}: {ended}");
    }
}

#[tokio::test]
async fn what_only_the_old_era_says_does_not_reach_a_modern_server() {
    for way in WAYS {
        let peer = Peer::start(way, Era::Modern);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        agent.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
        agent.call("echo", json!({})).await;
        if let Some(web) = &peer.web {
            let said = |seen: &linetender_badserver::webserver::Seen| {
                seen.method.as_deref() == Some("notifications/roots/list_changed")
            };
            assert!(!web.seen().iter().any(said));
        }
        assert!(agent.heard.is_empty(), "{:?}", agent.heard);
    }
}

#[tokio::test]
async fn s34_a_question_is_taken_back_when_its_server_dies() {
    for way in WAYS {
        let mut peer = Peer::start(way, Era::Legacy);
        let mut agent = Raw::new(session::open(peer.server(), &Rig::new()), "2025-11-25");
        agent.greet().await;
        let asked =
            agent.ask("tools/call", json!({ "name": "question", "arguments": { "nonce": "q" } })).await;
        let question = agent.next("roots/list").await;
        peer.kill("q").await;
        let taken_back = agent.next("notifications/cancelled").await;
        assert_eq!(taken_back["params"]["requestId"], question["id"], "{taken_back}");
        // Its call has an end too; over HTTP that may be an answer of a stream that runs on.
        if way == Way::Pipe {
            assert_eq!(agent.answer(asked).await["result"]["isError"], true);
        }
        // An answer that comes too late goes nowhere, and the next question has a number of its own.
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
        agent.say(answer.to_string()).await;
        let again = agent.ask("tools/call", json!({ "name": "question", "arguments": {} })).await;
        let next = agent.next("roots/list").await;
        assert_ne!(next["id"], question["id"]);
        let roots = json!({ "roots": [{ "uri": "file:///second" }] });
        agent.say(json!({ "jsonrpc": "2.0", "id": next["id"], "result": roots }).to_string()).await;
        let text = agent.answer(again).await["result"]["content"][0]["text"].to_string();
        assert!(text.contains("second"), "{text}");
        assert_eq!(agent.count("notifications/cancelled"), 0, "said once");
    }
}
