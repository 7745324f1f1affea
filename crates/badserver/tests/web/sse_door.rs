//! HTTP+SSE of 2024-11-05: the stream, the URL that it names, and what becomes of messages.

use linetender_badserver::webserver::SseDoor;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::kit::{ask, call, eventually, exchange, hear_until, post, web};

/// A stream, and the path that it names.
async fn opened(at: std::net::SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /sse HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n").await.unwrap();
    let mut heard = hear_until(&mut stream, "data: ").await;
    let named = loop {
        match heard.split_once("data: ").and_then(|(_, data)| data.split_once("\r\n")) {
            Some((named, _)) => break named.to_owned(),
            None => heard += &hear_until(&mut stream, "\n").await,
        }
    };
    assert!(
        heard.contains("content-type: text/event-stream") && heard.contains("event: endpoint"),
        "{heard}"
    );
    (stream, named)
}

fn to(path: &str, message: &serde_json::Value) -> String {
    post("connection: close\r\n", message).replacen("/mcp", path, 1)
}

#[tokio::test]
async fn a_message_is_taken_and_answered_on_the_stream() {
    let web = web(|_| {});
    let (mut stream, named) = opened(web.addr()).await;
    let heard = exchange(web.addr(), &to(&named, &call("echo", json!({})))).await;
    assert!(heard.text.starts_with("HTTP/1.1 202"), "{heard:?}");
    let answer = hear_until(&mut stream, "\"result\"").await;
    assert!(answer.contains("event: message"), "{answer}");
    assert_eq!((web.runs(), web.server.event_streams()), (1, 1));
    drop(stream);
    eventually(|| web.server.event_streams() == 0).await;
    let heard = exchange(web.addr(), &to(&named, &ask("ping"))).await;
    assert!(heard.text.starts_with("HTTP/1.1 404"), "its stream is gone: {heard:?}");
}

#[tokio::test]
async fn a_mute_one_takes_messages_and_a_forgotten_session_refuses_them() {
    let web = web(|manners| manners.sse = SseDoor::Mute);
    let (stream, named) = opened(web.addr()).await;
    let heard = exchange(web.addr(), &to(&named, &call("echo", json!({})))).await;
    assert!(heard.text.starts_with("HTTP/1.1 202"), "{heard:?}");
    assert_eq!(web.runs(), 0, "it is not run either");
    web.server.forget_sessions();
    let heard = exchange(web.addr(), &to(&named, &ask("ping"))).await;
    assert!(heard.text.starts_with("HTTP/1.1 404"), "{heard:?}");
    assert_eq!(web.server.event_streams(), 1, "the stream knows nothing of it");
    web.server.cut_event_streams();
    eventually(|| web.server.event_streams() == 0).await;
    drop(stream);
}
