//! Streams: of answers, of changes, and of neither.

use std::time::Duration;

use linetender_badserver::webserver::{Answers, Speaks, Streams};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::kit::{Web, call, eventually, exchange, get, hear_until, in_time, modern, plain, post, web};

fn streaming(answers: Answers) -> Web {
    web(|manners| {
        manners.stateless = true;
        manners.answers = answers;
        manners.retry_ms = Some(20);
    })
}

#[tokio::test]
async fn an_answer_by_stream_has_a_hint_and_perhaps_an_id() {
    let heard = streaming(Answers::Sse).call("echo", json!({})).await;
    assert!(heard.body().contains("retry: 20\n\n") && heard.whole(), "{heard:?}");
    assert!(heard.id_of_last_event().is_none() && heard.events()[0].contains("\"id\":7"), "{heard:?}");
    let heard = streaming(Answers::Primed).call("echo", json!({})).await;
    assert_eq!((heard.events()[0], heard.events().len()), ("", 2), "{heard:?}");
    assert!(heard.id_of_last_event().is_some());
}

#[tokio::test]
async fn progress_comes_before_the_answer_however_it_travels() {
    for answers in [Answers::Json, Answers::Sse, Answers::Primed] {
        let heard = streaming(answers).call("progress", json!({ "n": 2 })).await;
        let events: Vec<Value> =
            heard.events().iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        assert_eq!(events.len(), 3, "{heard:?}");
        assert_eq!(
            (&events[0]["params"]["progress"], &events[1]["params"]["progress"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(events[2]["id"], 7);
    }
}

#[tokio::test]
async fn work_outlives_a_primed_stream_and_its_answer_is_resumed() {
    let web = streaming(Answers::Primed);
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(post("", &call("sleep", json!({ "ms": 20 }))).as_bytes()).await.unwrap();
    let heard = hear_until(&mut stream, "data: \n").await;
    let id = heard.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(stream);
    let heard = exchange(web.addr(), &get(&format!("connection: close\r\nlast-event-id: {id}\r\n"))).await;
    assert!(heard.events()[0].contains("\"id\":7"), "{heard:?}");
    assert_eq!(web.runs(), 1);
}

#[tokio::test]
async fn changes_are_told_on_a_get_stream() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(get("").as_bytes()).await.unwrap();
    hear_until(&mut stream, "\r\n\r\n").await;
    web.call("list_change", json!({})).await;
    hear_until(&mut stream, "notifications/tools/list_changed").await;
    let list = web.post("", &crate::kit::ask("tools/list")).await;
    assert!(list.body().contains("extra_1"));
    assert_eq!(web.call("extra_1", json!({})).await.json()["id"], 7);
}

#[tokio::test]
async fn a_subscription_is_acknowledged_first() {
    let web = web(|manners| manners.speaks = Speaks::Modern);
    let (body, headers) =
        modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(post(&headers, &body).as_bytes()).await.unwrap();
    let heard = hear_until(&mut stream, "\n\n").await;
    assert!(heard.contains("notifications/subscriptions/acknowledged"), "{heard}");
    web.server.change_tools();
    let heard = hear_until(&mut stream, "list_changed").await;
    assert!(heard.contains("\"io.modelcontextprotocol/subscriptionId\":7"), "{heard}");
    assert_eq!(web.server.counters().listens, 1);
}

#[tokio::test]
async fn streams_are_refused_empty_closed_or_cut() {
    let web = plain();
    let get = get("connection: close\r\n");
    let time = Duration::from_millis(5);
    for (streams, status, whole) in [
        (Streams::Refused, 405, false),
        (Streams::Empty, 200, true),
        (Streams::CloseAfter(time), 200, true),
        (Streams::CutAfter(time), 200, false),
    ] {
        web.server.set(|manners| manners.streams = streams);
        let heard = exchange(web.addr(), &get).await;
        assert_eq!(heard.status(), status);
        assert!(heard.events().is_empty());
        assert_eq!(heard.whole() || heard.body().ends_with("0\r\n\r\n"), whole, "{streams:?} {heard:?}");
    }
    assert_eq!(web.server.counters().gets, 4);
}

#[tokio::test]
async fn a_subscription_ends_with_its_result_or_without() {
    let web = web(|manners| manners.speaks = Speaks::Modern);
    let time = Duration::from_millis(5);
    for (streams, messages) in [(Streams::CloseAfter(time), 2), (Streams::CutAfter(time), 1)] {
        web.server.set(|manners| manners.streams = streams);
        let heard = web.modern("subscriptions/listen", json!({ "notifications": {} })).await;
        assert_eq!(heard.events().len(), messages, "{heard:?}");
    }
    web.server.set(|manners| manners.streams = Streams::Refused);
    assert_eq!(web.modern("subscriptions/listen", json!({})).await.status(), 404);
}

#[tokio::test]
async fn a_silent_stream_does_not_even_tell_changes() {
    let web = plain();
    web.server.set(|manners| manners.streams = Streams::Silent);
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    stream.write_all(get("").as_bytes()).await.unwrap();
    hear_until(&mut stream, "\r\n\r\n").await;
    web.server.change_tools();
    // A later exchange has come back, and still nothing was said here.
    in_time(web.call("echo", json!({}))).await;
    assert!(stream.try_read(&mut [0; 1]).is_err());
    drop(stream);
    eventually(|| web.server.counters().open == 0).await;
}
