//! Whole connections: silent, reset, refused.

use std::time::Duration;

use linetender_badserver::webserver::{Ending, Sockets};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::kit::{End, call, eventually, hear, hear_until, plain, post};

#[tokio::test]
async fn silence_holds_what_is_open_and_what_is_new_until_it_ends() {
    let web = plain();
    let mut open = TcpStream::connect(web.addr()).await.unwrap();
    open.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
    hear_until(&mut open, "\"id\":7").await;
    web.server.set(|manners| manners.sockets = Sockets::Silent);
    let mut new = TcpStream::connect(web.addr()).await.unwrap();
    for stream in [&mut open, &mut new] {
        stream.write_all(post("", &call("echo", json!({}))).as_bytes()).await.unwrap();
    }
    eventually(|| web.server.counters().connections == 2).await;
    assert_eq!(web.runs(), 1, "nothing more was read");
    assert!(open.try_read(&mut [0; 1]).is_err() && new.try_read(&mut [0; 1]).is_err());
    web.server.set(|manners| manners.sockets = Sockets::Open);
    for stream in [&mut open, &mut new] {
        hear_until(stream, "\"id\":7").await;
    }
    assert_eq!(web.runs(), 3);
}

#[cfg_attr(windows, ignore = "wine closes a connection that is to be reset")]
#[tokio::test]
async fn resets_meet_what_is_open_and_what_is_new() {
    let web = plain();
    let mut open = TcpStream::connect(web.addr()).await.unwrap();
    eventually(|| web.server.counters().open == 1).await;
    web.server.set(|manners| manners.sockets = Sockets::Reset);
    assert_eq!(hear(&mut open).await.end, End::Reset);
    let mut new = TcpStream::connect(web.addr()).await.unwrap();
    assert_eq!(hear(&mut new).await.end, End::Reset);
    web.server.set(|manners| manners.sockets = Sockets::Open);
    assert_eq!(web.call("echo", json!({})).await.status(), 200);
}

#[cfg_attr(windows, ignore = "wine closes a connection that is to be reset")]
#[tokio::test]
async fn a_stop_ends_connections_as_asked_and_the_port_refuses() {
    for (how, end) in [(Ending::Reset, End::Reset), (Ending::Fin, End::Fin)] {
        let mut web = plain();
        let mut stream = TcpStream::connect(web.addr()).await.unwrap();
        stream.write_all(post("", &call("hang", json!({}))).as_bytes()).await.unwrap();
        eventually(|| web.runs() == 1).await;
        web.server.stop(how).await;
        assert_eq!(hear(&mut stream).await.end, end);
        let refused = TcpStream::connect(web.addr()).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(web.server.counters().open, 0);
        web.server.restart(how).await.unwrap();
        assert_eq!(web.call("echo", json!({})).await.status(), 200);
    }
}

#[tokio::test]
async fn a_storm_can_be_told_from_a_trickle() {
    let web = plain();
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(TcpStream::connect(web.addr()).await.unwrap());
    }
    eventually(|| web.server.counters().open == 5).await;
    let mut counters = web.server.counters();
    assert_eq!((counters.most_open, counters.attempts.len()), (5, 5));
    counters.attempts = [0, 10, 20, 200, 250].map(Duration::from_millis).to_vec();
    assert_eq!(counters.busiest(Duration::from_millis(100)), 3);
    web.server.end_connections(Ending::Fin);
    eventually(|| web.server.counters().open == 0).await;
}
