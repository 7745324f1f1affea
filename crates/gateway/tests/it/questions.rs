//! What a server asks reaches its agent and nobody else, wherever that is allowed.

use http::Method;
use linetender::Era;
use serde_json::{Value, json};

use crate::corners::Door;
use crate::kit::{House, text};
use crate::peer::{ERAS, Peer, WAYS};

fn roots() -> Value {
    json!({ "roots": [{ "uri": "file:///here", "odd": 1.5 }] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_legacy_agent_with_a_line_of_its_own_is_asked_by_servers_of_either_era() {
    for (server, way) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
        let peer = Peer::start(way, server);
        let house = House::up(&peer.config("it", "scope = 'session'")).await;
        for door in [Door::One, Door::All] {
            let other = house.agent_with(door.path(), &json!({ "roots": {} })).await;
            let agent = house.agent_with(door.path(), &json!({ "roots": {} })).await;
            let question = json!({ "name": door.name("question"), "arguments": {} });
            let mut answer = agent.request(1, "tools/call", question).await;
            let mut own = agent.stream(None).await;
            let asked = loop {
                let event = tokio::select! {
                    event = answer.event() => event,
                    event = own.event() => event,
                };
                let heard = event.expect("a question").data;
                if heard["method"] == "roots/list" {
                    break heard["id"].clone();
                }
                assert!(heard.get("result").is_none(), "{server:?} {way:?} {door:?}: {heard}");
            };
            let reply = json!({ "jsonrpc": "2.0", "id": asked, "result": roots() });
            assert_eq!(agent.post(&reply).await.status, 202);
            let answer = answer.last().await;
            assert!(text(&answer).contains("file:///here"), "{server:?} {way:?} {door:?}: {answer}");
            other.delete().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_agent_is_asked_by_a_result_and_a_legacy_server_is_told_that_nobody_can_be() {
    for (server, way) in ERAS.into_iter().flat_map(|era| WAYS.map(|way| (era, way))) {
        let peer = Peer::start(way, server);
        let house = House::up(&peer.config("it", "")).await;
        for door in [Door::One, Door::All] {
            let mut params = json!({ "name": door.name("question"), "arguments": {} });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "roots": {} });
            let answer = house.modern(door.path(), "tools/call", params.clone()).await.last().await;
            if server == Era::Legacy {
                assert!(text(&answer).contains("-32601"), "{answer}");
                continue;
            }
            assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
            params["inputResponses"] = json!({ "roots": roots() });
            params["requestState"] = answer["result"]["requestState"].clone();
            let answer = house.modern(door.path(), "tools/call", params).await.last().await;
            assert!(text(&answer).contains("file:///here") && text(&answer).contains("so far"), "{answer}");
        }
    }
}

#[tokio::test]
async fn whoever_shares_a_server_is_never_asked() {
    let peer = Peer::start(WAYS[0], Era::Legacy);
    let house = House::up(&peer.config("it", "")).await;
    let agent = house.agent_with("/mcp", &json!({ "roots": {} })).await;
    assert!(text(&agent.call("it__question", json!({})).await).contains("-32601"));
    let gone = house.send(Method::DELETE, "/mcp", &[("mcp-session-id", &agent.session)], String::new()).await;
    assert_eq!(gone.status, 200);
}
