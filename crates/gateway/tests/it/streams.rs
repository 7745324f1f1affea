//! Streams: whose message goes where, what can be resumed, and how they end.

use crate::kit::{House, in_time, text};
use serde_json::{Value, json};

const ONE: &str = r#"
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
"#;

fn progress(token: &str) -> Value {
    json!({ "name": "bad__progress", "arguments": { "times": 3, "ms": 1 }, "_meta": { "progressToken": token } })
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_own_request() {
    let house = House::up(ONE).await;
    let agent = house.agent("/mcp").await;
    let (mut one, mut other) = tokio::join!(
        agent.request(1, "tools/call", progress("same")),
        agent.request(2, "tools/call", progress("other")),
    );
    for (answer, token) in [(&mut one, "same"), (&mut other, "other")] {
        let mut told = 0;
        while let Some(event) = answer.event().await {
            if event.data["method"] == "notifications/progress" {
                assert_eq!(event.data["params"]["progressToken"], token);
                told += 1;
            }
        }
        assert_eq!(told, 3, "{token}");
    }
    let modern = house.modern("/mcp/bad", "tools/call", {
        let mut params = progress("m");
        params["name"] = "progress".into();
        params
    });
    let mut modern = modern.await;
    assert!(modern.is_stream());
    assert_eq!(modern.event().await.unwrap().data["params"]["progressToken"], "m");
}

#[tokio::test]
async fn a_progress_token_may_be_spelt_with_escapes() {
    let house = House::up(ONE).await;
    for (path, name) in [("/mcp", "bad__progress"), ("/mcp/bad", "progress")] {
        let agent = house.agent(path).await;
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": name, "arguments": { "times": 3, "ms": 1 }, "_meta": { "progressToken": "e" } } });
        let mut answer =
            agent.post_text(call.to_string().replace("progressToken", r"progress\u0054oken")).await;
        let mut told = 0;
        while let Some(event) = answer.event().await {
            told += u32::from(event.data["method"] == "notifications/progress");
        }
        assert_eq!(told, 3, "{path}");
    }
}

#[tokio::test]
async fn a_burst_of_progress_reaches_a_modern_agent_whole_and_before_the_answer() {
    let house = House::up(ONE).await;
    for (path, name) in [("/mcp", "bad__progress"), ("/mcp/bad", "progress")] {
        let params =
            json!({ "name": name, "arguments": { "times": 500, "ms": 0 }, "_meta": { "progressToken": 7 } });
        let mut answer = house.modern(path, "tools/call", params).await;
        for step in 1..=500 {
            let event = answer.event().await.unwrap().data;
            assert_eq!(event["params"]["progress"], step, "{event}");
        }
        let last = answer.event().await.unwrap().data;
        assert!(last["result"].is_object(), "{last}");
    }
}

#[tokio::test]
async fn a_stream_that_was_cut_is_resumed_behind_the_last_event() {
    let house = House::up(ONE).await;
    let agent = house.agent("/mcp/bad").await;
    let call = json!({ "name": "sleep", "arguments": { "ms": 1500 } });
    let mut cut = agent.request(1, "tools/call", call).await;
    let first = cut.event().await.unwrap();
    assert_eq!(first.data, Value::Null, "it says nothing but where it can be resumed");
    drop(cut);
    let mut resumed = agent.stream(first.id.as_deref()).await;
    loop {
        let event = resumed.event().await.expect("the answer");
        if event.data["id"] == 1 {
            assert!(event.data["result"].is_object(), "{event:?}");
            break;
        }
    }
    assert!(resumed.event().await.is_none(), "and that was all");
    assert_eq!(agent.stream(Some("99-1")).await.status, 400);
}

#[tokio::test]
async fn hanging_up_on_a_modern_request_takes_it_back() {
    let book = std::env::temp_dir().join(format!("linetender-gateway-{}-hang-up", std::process::id()));
    let text = ONE.replace("\"--full\"", &format!("\"--book\", \"{}\"", book.display()));
    let house = House::up(&text).await;
    // Sooner than calls are waited for whose agent only stopped asking.
    let soon = std::time::Duration::from_secs(3);
    for (times, (path, name)) in
        [("/mcp", "bad__hang"), ("/mcp/bad", "hang")].repeat(2).into_iter().enumerate()
    {
        let answer = house.modern(path, "tools/call", json!({ "name": name, "arguments": {} })).await;
        assert!(answer.is_stream(), "a silent response becomes a stream");
        drop(answer);
        let cancelled = async {
            while std::fs::read_to_string(&book).unwrap_or_default().matches("cancelled:").count() <= times {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(soon, cancelled).await.expect("the server is told");
    }
    let echo = house.modern("/mcp", "tools/call", json!({ "name": "bad__echo", "arguments": {} })).await;
    assert_eq!(text_of(echo).await, "{}", "the line is free for others");
    assert_eq!(house.gateway.lines().pop().unwrap().status().generation, 1, "and its one process lives on");
    let _ = std::fs::remove_file(book);
}

#[tokio::test]
async fn the_stream_of_a_legacy_request_ends_when_it_is_taken_back() {
    let house = House::up(ONE).await;
    for (path, name) in [("/mcp", "bad__hang"), ("/mcp/bad", "hang")] {
        let agent = house.agent(path).await;
        let take_back = |id: u64| {
            let params = json!({ "requestId": id });
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
        };
        let hangs = || json!({ "name": name, "arguments": {} });
        // Once it is a stream.
        let mut late = agent.request(1, "tools/call", hangs()).await;
        let first = late.event().await.unwrap();
        assert_eq!(agent.post(&take_back(1)).await.status, 202);
        assert!(late.event().await.is_none(), "it ends, and nothing was said");
        assert_eq!(agent.stream(first.id.as_deref()).await.status, 400, "there is nothing to come back for");
        // Before it is one: taken back again and again, as the two may overtake each other.
        let over = tokio::sync::Notify::new();
        let early = async {
            let mut early = agent.request(2, "tools/call", hangs()).await;
            while early.event().await.is_some() {}
            over.notify_one();
        };
        let takes_back = async {
            loop {
                assert_eq!(agent.post(&take_back(2)).await.status, 202);
                tokio::select! {
                    () = over.notified() => return,
                    () = tokio::task::yield_now() => {}
                }
            }
        };
        tokio::join!(early, takes_back);
        assert_eq!(agent.delete().await, 200);
    }
}

async fn text_of(answer: crate::kit::Answer) -> String {
    text(&answer.json().await).to_owned()
}

#[tokio::test]
async fn a_resource_that_changes_is_heard_of_by_whoever_asked() {
    let house = House::up(ONE).await;
    let (asked, other) = (house.agent("/mcp").await, house.agent("/mcp").await);
    let uri = "linetender://bad/note://a";
    assert_eq!(asked.ask("resources/subscribe", json!({ "uri": uri })).await["result"], json!({}));
    let (mut hears, mut silent) = (asked.stream(None).await, other.stream(None).await);
    let wants = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let mut modern = house.modern("/mcp", "subscriptions/listen", wants).await;
    let first = modern.event().await.unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"]["resourceSubscriptions"], json!([uri]));
    // It is known that the server was told only once it says so.
    let updated = async |stream: &mut crate::kit::Answer| loop {
        let event = stream.event().await.unwrap().data;
        if event["method"] == "notifications/resources/updated" {
            return event["params"].clone();
        }
    };
    let heard = in_time(async {
        loop {
            other.call("bad__touch", json!({ "uri": "note://a" })).await;
            let wait = std::time::Duration::from_millis(200);
            if let Ok(heard) = tokio::time::timeout(wait, updated(&mut hears)).await {
                return heard;
            }
        }
    });
    assert_eq!(heard.await["uri"], uri);
    let told = updated(&mut modern).await;
    assert_eq!(
        (&told["uri"], &told["_meta"]["io.modelcontextprotocol/subscriptionId"]),
        (&json!(uri), &json!("m"))
    );
    // A part of it is told of too, by its own address; what only begins alike is none.
    for other_resource in ["note://ab", "note://a/part#1"] {
        other.call("bad__touch", json!({ "uri": other_resource })).await;
    }
    for stream in [&mut hears, &mut modern] {
        let part = in_time(async {
            loop {
                let told = updated(stream).await;
                assert_ne!(told["uri"], format!("{uri}b"));
                if told["uri"] != uri {
                    return told["uri"].clone();
                }
            }
        });
        assert_eq!(part.await, format!("{uri}/part#1"));
    }
    assert_eq!(silent.event().await.unwrap().data, Value::Null, "where it begins");
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(100), silent.event()).await.is_err(),
        "it asked for nothing"
    );
}

#[tokio::test]
async fn g02_told_to_stop_it_finishes_what_is_under_way_and_ends_its_streams() {
    let mut house = House::up(ONE).await;
    let agent = house.agent("/mcp").await;
    let mut own = agent.stream(None).await;
    own.event().await.unwrap();
    let mut listens = house.modern("/mcp", "subscriptions/listen", json!({ "notifications": {} })).await;
    listens.event().await.unwrap();
    let call = json!({ "name": "bad__sleep", "arguments": { "ms": 1000 } });
    let mut under_way = agent.request(1, "tools/call", call).await;
    drop(agent);
    house.stop();
    assert!(own.event().await.is_none());
    assert_eq!(listens.event().await.unwrap().data["result"]["resultType"], "complete");
    assert!(listens.event().await.is_none());
    let mut last = Value::Null;
    while let Some(event) = under_way.event().await {
        last = event.data;
    }
    assert_eq!(last["id"], 1, "{last}");
    assert_eq!(house.ended().await, linetender_gateway::front::Served::Finished);
}

#[tokio::test]
async fn o06_an_agent_that_does_not_read_is_bounded_and_told_what_it_missed() {
    let house = House::up(ONE).await;
    let (idle, busy) = (house.agent("/mcp").await, house.agent("/mcp").await);
    idle.ask("resources/subscribe", json!({ "uri": "linetender://bad/note://a" })).await;
    let touch = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "bad__touch", "arguments": { "uri": "note://a" } } });
    for _ in 0..13 {
        let batch: Value = (0..100).map(touch).collect();
        busy.post(&batch).await.last().await;
    }
    // Nobody else was held up; and the one that did not read is told.
    assert_eq!(text(&busy.call("bad__echo", json!({})).await), "{}");
    let mut late = idle.stream(None).await;
    assert_eq!(late.event().await.unwrap().data, Value::Null, "where it begins");
    let told = late.event().await.unwrap().data;
    assert_eq!(told["method"], "notifications/message", "{told}");
    assert!(told["params"]["data"].as_str().unwrap().contains("messages dropped"), "{told}");
    assert_eq!(
        late.event().await.unwrap().data["method"],
        "notifications/resources/updated",
        "and the newest are there"
    );
}

#[tokio::test]
async fn a_modern_call_that_takes_its_time_is_answered_on_a_stream() {
    let house = House::up(ONE).await;
    for (path, name) in [("/mcp", "bad__sleep"), ("/mcp/bad", "sleep")] {
        let params = json!({ "name": name, "arguments": { "ms": 1500 } });
        let answer = house.modern(path, "tools/call", params).await;
        assert!(answer.is_stream(), "nobody between likes a silent response");
        assert_eq!(answer.last().await["result"]["content"][0]["text"], r#"{"ms":1500}"#);
    }
}

#[tokio::test]
async fn hanging_up_on_a_modern_request_takes_it_back_too_with_and_without_progress() {
    let book = std::env::temp_dir().join(format!("linetender-gateway-{}-hang-up-2", std::process::id()));
    let text = ONE.replace("\"--full\"", &format!("\"--book\", \"{}\"", book.display()));
    let house = House::up(&text).await;
    let told = |what: &'static str, times: usize| {
        let book = book.clone();
        in_time(async move {
            while std::fs::read_to_string(&book).unwrap_or_default().matches(what).count() < times {
                tokio::task::yield_now().await;
            }
        })
    };
    let hang = |name: &str, token: bool| {
        let meta = if token { json!({ "progressToken": 1 }) } else { json!({}) };
        json!({ "name": name, "arguments": {}, "_meta": meta })
    };
    // One hangs up before the response has begun, one on the stream that it became.
    let mut times = 0;
    for (path, name) in [("/mcp", "bad__hang"), ("/mcp/bad", "hang")] {
        for token in [false, true] {
            times += 1;
            tokio::select! {
                _ = house.modern(path, "tools/call", hang(name, token)) => panic!("it never answers"),
                () = told("read -", times) => {}
            }
            told("cancelled:", times).await;
            times += 1;
            drop(house.modern(path, "tools/call", hang(name, token)).await);
            told("cancelled:", times).await;
        }
    }
    let _ = std::fs::remove_file(book);
}
