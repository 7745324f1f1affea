//! Answers that end too early, or never begin.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::kit::{End, call, eventually, exchange, get, hear, hear_until, in_time, plain, post};

#[cfg_attr(windows, ignore = "wine closes a connection that is to be reset")]
#[tokio::test]
async fn a_reset_comes_before_the_headers_and_the_book_says_what_ran() {
    for (tool, runs, end) in
        [("reset_before", 0, End::Reset), ("reset_after_run", 1, End::Reset), ("close_before", 1, End::Fin)]
    {
        let web = plain();
        let heard = web.call(tool, json!({})).await;
        assert_eq!((heard.text.as_str(), heard.end), ("", end), "{tool}");
        assert_eq!((web.reads(), web.runs()), (1, runs), "{tool}");
    }
}

#[tokio::test]
async fn half_a_body_comes_under_the_length_of_a_whole_one() {
    let web = plain();
    let heard = web.call("half_body", json!({})).await;
    let length: usize = heard.header("content-length").unwrap().parse().unwrap();
    assert!(heard.body().starts_with("{\""), "{heard:?}");
    assert_eq!(heard.body().len(), length / 2);
    assert_eq!(web.runs(), 1);
}

#[tokio::test]
async fn a_stream_ends_without_its_answer() {
    let web = plain();
    let heard = web.call("cut_sse", json!({})).await;
    assert_eq!(heard.header("content-type"), Some("text/event-stream"));
    assert!(heard.events().is_empty() && heard.id_of_last_event().is_none() && heard.whole(), "{heard:?}");
    let heard = web.call("cut_sse", json!({ "abrupt": true })).await;
    assert!(heard.text.contains(": working") && !heard.whole(), "{heard:?}");
    assert_eq!(web.runs(), 2);
}

#[tokio::test]
async fn a_stream_with_an_id_is_resumed_after_so_many_cuts() {
    let web = plain();
    let heard = web.call("cut_sse_resumable", json!({ "times": 2 })).await;
    let id = heard.id_of_last_event().unwrap().to_owned();
    assert!(!heard.text.contains("jsonrpc"), "{heard:?}");
    let resume = get(&format!("connection: close\r\nlast-event-id: {id}\r\n"));
    let heard = exchange(web.addr(), &resume).await;
    assert!(heard.whole() && !heard.text.contains("jsonrpc"), "{heard:?}");
    let heard = exchange(web.addr(), &resume).await;
    assert!(heard.events()[0].contains("\"id\":7"), "{heard:?}");
    assert_eq!(web.runs(), 1);
}

#[tokio::test]
async fn silence_runs_the_tool_and_says_nothing() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(post("", &call("silent", json!({}))).as_bytes()).await.unwrap();
    eventually(|| web.runs() == 1).await;
    assert_eq!(stream.try_read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn an_early_close_leaves_a_stale_connection() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(post("", &call("early_close", json!({}))).as_bytes()).await.unwrap();
    let heard = hear(&mut stream).await;
    assert_eq!((heard.status(), heard.end), (200, End::Fin));
    assert_eq!(heard.header("connection"), None, "it does not say so");
    assert_eq!(heard.json()["id"], 7);
}

#[tokio::test]
async fn a_good_bye_is_said_where_there_is_one() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(post("", &call("goaway", json!({}))).as_bytes()).await.unwrap();
    let heard = hear(&mut stream).await;
    assert_eq!((heard.status(), heard.header("connection")), (200, Some("close")));
}

#[tokio::test]
async fn a_connection_serves_many_calls() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    for _ in 0..3 {
        stream.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
        in_time(hear_until(&mut stream, "\"id\":7")).await;
    }
    let counters = web.server.counters();
    assert_eq!((counters.connections, counters.posts, counters.calls), (1, 3, 3));
    assert_eq!((counters.open, counters.most_open, counters.most_requests), (1, 1, 1));
}
