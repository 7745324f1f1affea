//! A tool call that its server could not answer, in the two forms in which an agent can be told.

use linetender::{Era, Rig, ToolErrors, session};
use serde_json::{Value, json};

use crate::agent::Raw;
use crate::peer::{ERAS, Peer, WAYS, Way};

const FIELDS: [&str; 5] = ["server", "phase", "cause", "delivery", "nextTry"];

/// The answer to a call whose server was killed while it ran.
async fn killed(way: Way, era: Era, form: ToolErrors) -> Value {
    let mut peer = Peer::start(way, era);
    let version = if era == Era::Legacy { "2025-11-25" } else { "2026-07-28" };
    let mut agent = Raw::new(session::open(peer.server().tool_errors(form), &Rig::new()), version);
    agent.greet().await;
    let id = agent.ask("tools/call", json!({ "name": "hang", "arguments": { "nonce": "lost" } })).await;
    peer.kill("lost").await;
    agent.answer(id).await
}

#[tokio::test]
async fn a_model_and_a_program_read_the_same_of_a_death_in_either_form() {
    for (way, era) in WAYS.into_iter().flat_map(|way| ERAS.map(|era| (way, era))) {
        let result = killed(way, era, ToolErrors::default()).await;
        let error = killed(way, era, ToolErrors::Error).await;
        assert!(result["error"].is_null() && error["result"].is_null(), "{result} {error}");
        assert_eq!(result["result"]["isError"], true, "{result}");
        let code = error["error"]["code"].as_i64().unwrap();
        assert!(!(-32768..=-32000).contains(&code), "{error}");
        let texts = [&result["result"]["content"][0]["text"], &error["error"]["message"]];
        for text in texts.map(|text| text.as_str().unwrap()) {
            assert!(text.contains("\"bad\" failed"), "{text}");
            assert!(text.contains("unknown whether the call was executed"), "{text}");
        }
        for fields in [&result["result"]["_meta"]["linetender"], &error["error"]["data"]] {
            assert!(FIELDS.iter().all(|field| fields[field].is_string()), "{fields}");
            assert_eq!(fields["delivery"], "unknown");
        }
    }
}
