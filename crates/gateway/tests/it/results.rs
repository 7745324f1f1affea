//! Results that are larger than a user allows.

use crate::kit::{House, config, is_answered, text};
use serde_json::{Value, json};

const LIMIT: usize = 4096;

/// A legacy server with a limit, a modern one by default of the gateway, and one without.
const THREE: &str = "[gateway]\nresult_limit = 8192\n\
    [servers.old]\n{bad}\nargs = ['--era', 'legacy', '--full']\nresult_limit = '4KiB'\n\
    [servers.new]\n{bad}\nargs = ['--full']\n\
    [servers.free]\n{bad}\nresult_limit = 0";

/// The address that a note names, and from where on.
fn place(answer: &Value) -> (String, usize) {
    let blocks = answer["result"]["content"].as_array().unwrap();
    let words = blocks.last().unwrap()["text"].as_str().unwrap();
    let uri =
        words.split_whitespace().find(|word| word.contains("?offset=")).unwrap_or_else(|| panic!("{words}"));
    let (uri, offset) = uri.split_once("?offset=").unwrap();
    (uri.to_owned(), offset.parse().unwrap())
}

fn contents(answer: &Value) -> &Value {
    &answer["result"]["contents"][0]
}

#[tokio::test]
async fn a_large_result_is_cut_and_the_whole_can_be_read_at_every_door_in_both_eras() {
    let house = House::up(THREE).await;
    for (path, prefix, server, limit) in [
        ("/mcp", "old__", "old", LIMIT),
        ("/mcp", "new__", "new", 8192),
        ("/mcp/old", "", "old", LIMIT),
        ("/mcp/new", "", "new", 8192),
    ] {
        let agent = house.agent(path).await;
        let call = json!({ "name": format!("{prefix}big"), "arguments": { "bytes": 50_000 } });
        let legacy = agent.ask("tools/call", call.clone()).await;
        let modern = house.modern(path, "tools/call", call).await.json().await;
        for (answer, is_modern) in [(legacy, false), (modern, true)] {
            assert!(answer.to_string().len() <= limit + 100, "{path} {server}: {}", answer.to_string().len());
            assert!(answer["result"]["isError"] != true, "{answer}");
            let begin = text(&answer);
            let (uri, offset) = place(&answer);
            assert_eq!(begin.len(), offset, "the rest begins where it was cut");
            let read = |uri: String| {
                let (house, agent) = (&house, &agent);
                async move {
                    let asked = json!({ "uri": uri });
                    if is_modern {
                        house.modern(path, "resources/read", asked).await.json().await
                    } else {
                        agent.ask("resources/read", asked).await
                    }
                }
            };
            let whole = read(uri.clone()).await;
            let whole_text = contents(&whole)["text"].as_str().unwrap();
            assert!(whole_text.len() >= 50_000 && whole_text.starts_with(begin), "{}", whole_text.len());
            assert_eq!(
                (&contents(&whole)["uri"], &contents(&whole)["mimeType"]),
                (&json!(uri), &json!("text/plain"))
            );
            assert_eq!(whole["result"].get("resultType").is_some(), is_modern, "as its era wants it");
            let (mut pieces, mut next) = (begin.to_owned(), format!("{uri}?offset={offset}"));
            loop {
                let piece = read(next).await;
                let piece_text = contents(&piece)["text"].as_str().unwrap();
                assert!(piece_text.len() <= limit && !piece_text.is_empty(), "{piece}");
                pieces.push_str(piece_text);
                match contents(&piece)["_meta"]["linetender"]["next"].as_str() {
                    Some(more) => next = more.to_owned(),
                    None => break,
                }
            }
            assert!(pieces == whole_text, "piece by piece it is the same");
        }
        let small = agent.call(&format!("{prefix}echo"), json!({ "n": 1 })).await;
        assert_eq!(text(&small), r#"{"n":1}"#);
    }
    let free = house.agent("/mcp/free").await.call("big", json!({ "bytes": 50_000 })).await;
    assert!(text(&free).len() >= 50_000, "it has none");
}

#[tokio::test]
async fn a_kept_result_is_found_by_nobody_else_and_nowhere_else() {
    let house = House::up(THREE).await;
    let agent = house.agent("/mcp/old").await;
    let (uri, _) = place(&agent.call("big", json!({ "bytes": 50_000 })).await);
    let read = async |path: &str, uri: &str| {
        let answer = house.agent(path).await.ask("resources/read", json!({ "uri": uri })).await;
        (answer["error"]["code"].as_i64(), answer)
    };
    assert_eq!(read("/mcp", &uri).await.0, None, "it is there for another agent of the same user");
    let other = format!("{}{}", &uri[..uri.len() - 1], if uri.ends_with('0') { '1' } else { '0' });
    for (path, uri) in [("/mcp/new", uri.as_str()), ("/mcp", &other), ("/mcp/old", &other)] {
        let (code, answer) = read(path, uri).await;
        assert_eq!(code, Some(7009), "{path} {uri}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("no such result"), "{answer}");
    }
    let listed = agent.ask("resources/list", json!({})).await;
    assert!(!listed.to_string().contains("results/"), "{listed}");
    // Whoever may not see the server any more does not see what it said either.
    house.gateway.apply(config(&THREE.replace("[servers.new]", "access.nobody = {}\n[servers.new]")));
    assert_eq!(read("/mcp", &uri).await.0, Some(7009));
}

#[tokio::test]
async fn structure_images_and_errors_stay_what_clients_take() {
    let folder = std::env::temp_dir().join(format!("linetender-cut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let answers = folder.join("answer");
    let house = House::up(THREE).await;
    let agent = house.agent("/mcp").await;
    let call = async |result: Value| {
        std::fs::write(&answers, result.to_string()).unwrap();
        agent.call("old__exact", json!({ "answer": answers, "heard": folder.join("heard") })).await
    };
    let text_block = json!({ "type": "text", "text": "short" });
    let structured = json!({ "content": [text_block], "structuredContent": { "rows": "y".repeat(20_000) } });
    let answer = call(structured.clone()).await;
    assert_eq!(answer["result"]["isError"], true, "no schema is checked then: {answer}");
    assert!(answer["result"].get("structuredContent").is_none());
    assert!(answer.to_string().contains("do not call it again"), "{answer}");
    let (uri, _) = place(&answer);
    let whole = agent.ask("resources/read", json!({ "uri": uri })).await;
    assert_eq!(contents(&whole)["mimeType"], "application/json");
    let kept: Value = serde_json::from_str(contents(&whole)["text"].as_str().unwrap()).unwrap();
    assert_eq!(kept["structuredContent"], structured["structuredContent"]);
    let image = json!({ "type": "image", "data": "A".repeat(20_000), "mimeType": "image/png" });
    let answer = call(json!({ "content": [image, text_block], "isError": true })).await;
    let blocks = answer["result"]["content"].as_array().unwrap();
    assert_eq!((blocks.len(), &blocks[0], &answer["result"]["isError"]), (2, &text_block, &json!(true)));
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test]
async fn a_limit_that_comes_with_a_reload_holds_for_agents_that_are_there() {
    let before = "[servers.a]\n{bad}\nargs = ['--era', 'legacy']";
    let house = House::up(before).await;
    let (straight, all) = (house.agent("/mcp/a").await, house.agent("/mcp").await);
    for (agent, tool) in [(&straight, "big"), (&all, "a__big")] {
        assert!(text(&agent.call(tool, json!({ "bytes": 50_000 })).await).len() >= 50_000);
    }
    house.gateway.apply(config(&format!("{before}\nresult_limit = '4k'")));
    for (agent, tool) in [(&straight, "big"), (&all, "a__big")] {
        let answer = agent.call(tool, json!({ "bytes": 50_000 })).await;
        assert!(answer.to_string().len() <= LIMIT + 100, "{}", answer.to_string().len());
        let (uri, _) = place(&answer);
        let whole = agent.ask("resources/read", json!({ "uri": uri })).await;
        assert!(contents(&whole)["text"].as_str().unwrap().len() >= 50_000, "{whole}");
    }
    assert!(is_answered(&straight.call("echo", json!({})).await));
    assert_eq!(house.gateway.lines()[0].status().generation, 1, "a limit is no reason to restart");
}
