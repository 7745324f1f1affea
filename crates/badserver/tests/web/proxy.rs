//! The proxy between two healthy peers.

use std::time::Duration;

use linetender_badserver::proxy::{Fault, Passed, Proxy, Way};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::kit::{End, Heard, Web, call, eventually, exchange, hear, hear_until, in_time, plain, post};

fn between() -> (Web, Proxy) {
    let web = plain();
    let proxy = Proxy::start(web.addr()).unwrap();
    (web, proxy)
}

async fn call_through(proxy: &Proxy) -> Heard {
    exchange(proxy.addr(), &post("connection: close\r\n", &call("echo", json!({})))).await
}

#[tokio::test]
async fn bytes_pass_unchanged_and_are_counted() {
    let (_web, proxy) = between();
    let request = post("connection: close\r\n", &call("big", json!({ "bytes": 3_000_000 })));
    let heard = exchange(proxy.addr(), &request).await;
    assert_eq!(heard.json()["id"], 7);
    let Passed { connections, up, down } = proxy.passed();
    assert_eq!((connections, up, down), (1, request.len() as u64, heard.text.len() as u64));
    eventually(|| proxy.open() == 0).await;
}

#[tokio::test]
async fn only_loopback_is_served() {
    assert!(Proxy::start(([192, 0, 2, 1], 80).into()).is_err());
}

#[tokio::test]
async fn silence_keeps_connections_open_and_loses_nothing() {
    let (web, proxy) = between();
    let mut open = TcpStream::connect(proxy.addr()).await.unwrap();
    open.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
    hear_until(&mut open, "\"id\":7").await;
    proxy.set(Fault::Silence).await;
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    for stream in [&mut open, &mut new] {
        stream.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
    }
    eventually(|| proxy.open() == 2).await;
    assert_eq!(web.reads(), 1);
    assert!(open.try_read(&mut [0; 1]).is_err());
    proxy.set(Fault::None).await;
    for stream in [&mut open, &mut new] {
        hear_until(stream, "\"id\":7").await;
    }
}

#[cfg_attr(windows, ignore = "wine closes a connection that is to be reset")]
#[tokio::test]
async fn resets_and_refusals_are_done_when_set_returns() {
    let (web, proxy) = between();
    let mut open = TcpStream::connect(proxy.addr()).await.unwrap();
    open.write_all(post("", &call("hang", json!({}))).as_bytes()).await.unwrap();
    eventually(|| web.runs() == 1).await;
    proxy.set(Fault::Reset).await;
    assert_eq!(proxy.open(), 0);
    assert_eq!(hear(&mut open).await.end, End::Reset);
    eventually(|| web.server.counters().open == 0).await;
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(hear(&mut new).await.end, End::Reset);
    proxy.set(Fault::Refuse).await;
    let refused = TcpStream::connect(proxy.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    proxy.set(Fault::None).await;
    assert_eq!(call_through(&proxy).await.status(), 200);
}

#[tokio::test]
async fn a_refusal_leaves_open_connections_alone() {
    let (_web, proxy) = between();
    let mut open = TcpStream::connect(proxy.addr()).await.unwrap();
    eventually(|| proxy.open() == 1).await;
    proxy.set(Fault::Refuse).await;
    open.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
    hear_until(&mut open, "\"id\":7").await;
}

#[tokio::test]
async fn latency_and_drip_take_their_time() {
    let (_web, proxy) = between();
    let time = Duration::from_millis(20);
    proxy.set(Fault::Latency(time)).await;
    let start = std::time::Instant::now();
    assert_eq!(call_through(&proxy).await.status(), 200);
    assert!(start.elapsed() >= 2 * time, "there and back");
    proxy.set(Fault::Drip { bytes: 50, every: Duration::from_millis(1) }).await;
    let start = std::time::Instant::now();
    let heard = call_through(&proxy).await;
    assert_eq!(heard.json()["id"], 7);
    let pieces = u32::try_from(heard.text.len() / 50).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(1) * pieces);
}

#[tokio::test]
async fn a_cut_comes_after_exactly_so_many_bytes() {
    let (web, proxy) = between();
    proxy.set(Fault::CutAfter { way: Way::Down, bytes: 30 }).await;
    let heard = in_time(call_through(&proxy)).await;
    assert_eq!(heard.text.len(), 30);
    assert_eq!(web.runs(), 1);
    proxy.set(Fault::CutAfter { way: Way::Up, bytes: 30 }).await;
    let before = proxy.passed().up;
    let heard = call_through(&proxy).await;
    assert_eq!((heard.text.as_str(), proxy.passed().up - before), ("", 30));
    assert_eq!(web.reads(), 1, "the request never came whole");
}

#[tokio::test]
async fn a_target_that_is_gone_looks_like_a_close() {
    let (mut web, proxy) = between();
    web.server.stop(linetender_badserver::webserver::Ending::Fin).await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(hear(&mut stream).await.text, "");
}
