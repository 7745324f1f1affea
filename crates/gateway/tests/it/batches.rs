//! Batches of agents that speak MCP 2025-03-26, at every door.

use crate::kit::{Answer, House, config, in_time};
use http::Method;
use linetender_badserver::agent::Agent;
use linetender_gateway::{Gateway, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

const BOTH: &str = r#"
[servers.old]
{bad}
args = ["--era", "legacy"]
[servers.new]
{bad}
args = ["--era", "modern"]
"#;

/// The doors, and what a tool of the first server is called there.
const DOORS: [(&str, &str); 2] = [("/mcp", "old__"), ("/mcp/old", "")];

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

fn cancel(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

/// The ids of the answers in an array, in order; an element without one is 0.
fn ids(array: &Value) -> Vec<u64> {
    let all = array.as_array().unwrap_or_else(|| panic!("{array}"));
    let mut ids: Vec<_> = all.iter().map(|answer| answer["id"].as_u64().unwrap_or(0)).collect();
    ids.sort_unstable();
    ids
}

/// The array that answers a batch. On a machine that has more to do it may be a stream instead: then it is sent again.
async fn array(agent: &Agent<'_>, batch: impl Into<String>) -> Value {
    let batch = batch.into();
    in_time(async {
        loop {
            let answer = agent.post_text(batch.clone()).await;
            if !answer.is_stream() {
                assert_eq!(answer.status, 200);
                return answer.json().await;
            }
            answer.all().await;
        }
    })
    .await
}

/// What a stream says.
async fn events(answer: Answer) -> Vec<Value> {
    assert!(answer.is_stream());
    answer.all().await
}

#[tokio::test]
async fn a_batch_is_answered_as_one_array_whoever_answers_its_requests() {
    let house = House::up(BOTH).await;
    for (path, prefix) in DOORS {
        let agent = house.agent(path).await;
        let other = if prefix.is_empty() { "echo" } else { "new__echo" };
        let batch = json!([
            call(1, &format!("{prefix}echo"), &json!({})),
            call(2, other, &json!({})),
            call(3, &format!("{prefix}tool_error"), &json!({})),
            call(4, "no such tool", &json!({})),
            ping(5),
            { "jsonrpc": "2.0", "method": "notifications/initialized" },
            ["no message"],
        ]);
        let all = array(&agent, batch.to_string()).await;
        assert_eq!(ids(&all), [0, 1, 2, 3, 4, 5], "{path}: {all}");
        let refused = all.as_array().unwrap().iter().find(|answer| answer["id"].is_null()).unwrap();
        assert_eq!(refused["error"]["code"], -32600, "{path}: {refused}");
        let two_names = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        let all = array(&agent, format!("[{two_names},{}]", ping(8))).await;
        assert_eq!(ids(&all), [7, 8], "{path}: {all}");
        let one = array(&agent, json!([ping(6)]).to_string()).await;
        assert_eq!(ids(&one), [6], "{path}: a batch of one");
        // And of a server that dies.
        let kill = json!([call(9, &format!("{prefix}kill"), &json!({})), ping(10)]);
        assert_eq!(ids(&agent.post(&kill).await.all().await.into()), [9, 10], "{path}");
    }
}

#[tokio::test]
async fn a_batch_without_requests_has_no_answer_but_to_what_is_no_message() {
    let house = House::up(BOTH).await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for (path, _) in DOORS {
        let agent = house.agent(path).await;
        assert_eq!(agent.post(&json!([note, cancel(1)])).await.status, 202, "{path}");
        for (batch, status, refused) in [(json!([1, 2]), 400, vec![0, 0]), (json!([note, {}]), 200, vec![0])]
        {
            let answer = agent.post(&batch).await;
            assert_eq!(answer.status, status, "{path}: {batch}");
            assert_eq!(ids(&answer.json().await), refused, "{path}: {batch}");
        }
        let empty = agent.post(&json!([])).await;
        assert_eq!(empty.status, 400, "{path}");
        assert_eq!(empty.json().await["error"]["code"], -32600, "{path}: one error, and no array");
    }
    let hello = json!([{
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    }]);
    let answer = house.send(Method::POST, "/mcp", &[], hello.to_string()).await;
    assert!(answer.headers.contains_key("mcp-session-id"));
    assert_eq!(ids(&answer.json().await), [1]);
}

#[tokio::test]
async fn a_batch_that_takes_its_time_or_reports_progress_is_answered_on_a_stream_one_by_one() {
    let house = House::up(BOTH).await;
    for (path, prefix) in DOORS {
        let agent = house.agent(path).await;
        let slow = json!([ping(1), call(2, &format!("{prefix}sleep"), &json!({ "ms": 900 }))]);
        let told = events(agent.post(&slow).await).await;
        assert_eq!(told.iter().map(|told| told["id"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
        // Progress comes at once, though the answers would have come soon enough to wait for.
        let mut progress = call(2, &format!("{prefix}progress"), &json!({ "times": 1, "ms": 100 }));
        progress["params"]["_meta"] = json!({ "progressToken": "t" });
        let told = events(agent.post(&json!([ping(1), progress])).await).await;
        let told: Vec<_> = told.iter().map(|told| told["id"].as_u64()).collect();
        assert_eq!(told, [Some(1), None, Some(2)], "{path}");
    }
}

#[tokio::test]
async fn a_request_that_is_taken_back_leaves_its_batch() {
    let house = House::up(BOTH).await;
    for (path, prefix) in DOORS {
        let agent = house.agent(path).await;
        let hang = |id| call(id, &format!("{prefix}hang"), &json!({}));
        let all = array(&agent, json!([hang(1), ping(2), cancel(1)]).to_string()).await;
        assert_eq!(ids(&all), [2], "{path}: {all}");
        let batch = json!([ping(3), hang(4)]);
        let (answer, _) = tokio::join!(agent.post(&batch), async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            agent.post(&cancel(4)).await
        });
        assert_eq!(ids(&answer.all().await.into()), [3], "{path}");
    }
}

#[tokio::test]
async fn answers_of_a_batch_that_are_too_much_for_one_array_come_as_a_stream() {
    let house = House::up(BOTH).await;
    for (path, prefix) in DOORS {
        let agent = house.agent(path).await;
        let echo = |id| call(id, &format!("{prefix}echo"), &json!({ "text": "x".repeat(600_000) }));
        let told = events(agent.post(&json!([echo(1), echo(2), echo(3), echo(4)])).await).await;
        assert_eq!(ids(&told.into()), [1, 2, 3, 4], "{path}");
    }
}

#[tokio::test]
async fn a_batch_on_pipes_is_answered_as_one_array() {
    let gateway = Gateway::start(config("[servers.old]\n{bad}\nargs = ['--era', 'legacy']"));
    let (agent, ours) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let serves = stdio::serve(&gateway, input, output, std::future::pending());
    let (hears, mut says) = tokio::io::split(agent);
    let talks = async {
        let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let hello = json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": params });
        let two_names = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
        let echo = call(1, "old__echo", &json!({}));
        let hang = call(2, "old__hang", &json!({}));
        let batch = format!("[{echo},{hang},{},{two_names},5,{}]", ping(3), cancel(2));
        let mut hears = BufReader::new(hears).lines();
        says.write_all(format!("{hello}\n{batch}\n").as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        while heard.len() < 2
            && let Ok(Some(line)) = hears.next_line().await
        {
            let said: Value = serde_json::from_str(&line).unwrap();
            heard.extend((said.get("method").is_none()).then_some(said));
        }
        says.shutdown().await.unwrap();
        heard
    };
    let (_, heard) = in_time(async { tokio::join!(serves, talks) }).await;
    assert_eq!(heard[0]["id"], 9, "{heard:?}");
    assert_eq!(ids(&heard[1]), [0, 1, 3, 4], "{heard:?}");
}
