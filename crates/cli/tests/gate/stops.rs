//! Killed, and told to stop.

use std::cell::Cell;
use std::time::{Duration, Instant};

use http::Method;
use linetender_badserver::agent::{Caller, is_answered, text};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::kit::{Gate, eventually};
use crate::look::{kill, unique};

const TWO: &str = "
[gateway]
drain = 1500
[servers.old]
{bad} --era legacy --full
[servers.new]
{bad} --era modern --full
";

/// An agent that calls until nobody answers it any more.
async fn calls(web: Caller, number: u32) {
    let session = web.agent("/mcp").await.session;
    for call in 0.. {
        let server = if call % 2 == 0 { "old" } else { "new" };
        let params = json!({ "name": format!("{server}__write"), "arguments": { "nonce": format!("{number}-{call}") } });
        let body = json!({ "jsonrpc": "2.0", "id": call, "method": "tools/call", "params": params });
        let headers = [("mcp-session-id", session.as_str())];
        let Ok(answer) = web.try_send(Method::POST, "/mcp", &headers, body.to_string()).await else { return };
        if answer.body().await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_killed_under_load_it_leaves_nothing_and_nothing_is_sent_again() {
    let gate = Gate::new(TWO);
    let mut serving = gate.serves().await;
    let before = gate.web.agent("/mcp").await;
    let mut load = JoinSet::new();
    (0..8).for_each(|number| drop(load.spawn(calls(gate.web, number))));
    eventually("load", async || (gate.book.runs().len() > 200).then_some(())).await;
    serving.kill();
    let gone = gate.is_gone().await;
    assert!(gone < Duration::from_secs(1), "{gone:?}");
    while let Some(agent) = load.join_next().await {
        agent.unwrap();
    }
    let ran = gate.book.runs();
    let begun = Instant::now();
    let _serving = gate.serves().await;
    let after = gate.web.agent("/mcp").await;
    for server in ["old", "new"] {
        let answer = after.call(&format!("{server}__write"), json!({ "nonce": unique() })).await;
        assert!(is_answered(&answer), "{answer}");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(before.request(1, "ping", json!({})).await.status, 404, "agents begin a new session then");
    let now = gate.book.runs();
    assert!(now.values().all(|runs| *runs == 1), "nothing ran twice");
    assert_eq!(now.len(), ran.len() + 2, "and nothing but what was asked for now");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_told_to_stop_it_takes_nobody_new_and_ends_its_streams_well() {
    let gate = Gate::new(&TWO.replace("1500", "10000"));
    let mut serving = gate.serves().await;
    let agent = gate.web.agent("/mcp").await;
    let mut own = agent.stream(None).await;
    own.event().await.unwrap();
    let mut listens = gate.web.modern("/mcp", "subscriptions/listen", json!({ "notifications": {} })).await;
    listens.event().await.unwrap();
    let sleep = |ms: u64| json!({ "name": "old__sleep", "arguments": { "ms": ms } });
    // Its response has begun when it is told to stop.
    // Whoever knocks while the door closes is not answered, and tries again a second later: it takes longer than that.
    let mut under_way = agent.request(1, "tools/call", sleep(3000)).await;
    under_way.event().await.unwrap();
    let answered = Cell::new(false);
    let begun = Instant::now();
    kill("-TERM", serving.pid());
    // It would never end by itself; that its lists have been read may still be on it.
    while own.event().await.is_some() {}
    assert_eq!(listens.event().await.unwrap().data["result"]["resultType"], "complete");
    assert!(listens.event().await.is_none());
    let shut = async {
        eventually("a closed door", async || {
            TcpStream::connect(gate.web.address).await.is_err().then_some(())
        })
        .await;
        assert!(!answered.get(), "it was shut while somebody was still served");
    };
    let served = async {
        let answer = under_way.last().await;
        answered.set(true);
        assert!(text(&answer).contains("3000"), "it was answered: {answer}");
    };
    tokio::join!(shut, served);
    let status = serving.ended().await;
    assert!(status.success(), "{status}");
    assert!(begun.elapsed() < Duration::from_secs(10), "before its time was up: {:?}", begun.elapsed());
    gate.is_gone().await;
    assert!(gate.log().contains("Finished"), "{}", gate.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_what_does_not_end_is_cut_when_the_time_is_up() {
    let gate = Gate::new(TWO);
    let mut serving = gate.serves().await;
    let agent = gate.web.agent("/mcp").await;
    let hang = |name: &str| json!({ "name": name, "arguments": {} });
    let progress = json!({ "name": "old__hang", "arguments": {}, "_meta": { "progressToken": 1 } });
    let mut hung = vec![agent.request(1, "tools/call", hang("old__hang")).await];
    for (path, params) in [("/mcp", hang("old__hang")), ("/mcp/old", hang("hang")), ("/mcp", progress)] {
        hung.push(gate.web.modern(path, "tools/call", params).await);
    }
    let begun = Instant::now();
    kill("-TERM", serving.pid());
    for stream in &mut hung {
        let mut last = Value::Null;
        while let Some(event) = stream.event().await {
            last = event.data;
        }
        let data = &last["error"]["data"];
        assert_eq!(
            (&data["phase"], &data["delivery"]),
            (&json!("at the server"), &json!("unknown")),
            "{last}"
        );
    }
    let cut = begun.elapsed();
    serving.ended().await;
    // The time to drain, and then what polite servers take to end.
    assert!(
        cut >= Duration::from_millis(1400) && begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    gate.is_gone().await;
}
