//! Answers that are too slow, too long, or longer than they look.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{call, eventually, in_time, plain, post};

#[tokio::test]
async fn bodies_and_events_without_end_go_on_until_nobody_reads() {
    for tool in ["endless_body", "endless_event"] {
        let web = plain();
        let mut stream = TcpStream::connect(web.addr()).await.unwrap();
        stream.write_all(post("", &call(tool, json!({}))).as_bytes()).await.unwrap();
        let mut piece = vec![0; 1 << 20];
        let mut heard = 0;
        while heard < 8 << 20 {
            let read = in_time(stream.read(&mut piece)).await.unwrap();
            assert!(read > 0, "{tool}");
            // After the head there is no end of an event.
            assert!(heard == 0 || !piece[..read].windows(2).any(|pair| pair == b"\n\n"), "{tool}");
            heard += read;
        }
        drop(stream);
        eventually(|| web.server.counters().open == 0).await;
    }
}

#[tokio::test]
async fn a_bomb_is_small_until_it_is_unpacked() {
    let web = plain();
    let mut stream = TcpStream::connect(web.addr()).await.unwrap();
    let request = post("connection: close\r\n", &call("bomb", json!({ "bytes": 8 << 20 })));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    in_time(stream.read_to_end(&mut bytes)).await.unwrap();
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert!(String::from_utf8_lossy(&bytes[..split]).contains("content-encoding: gzip"));
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let mut text = String::new();
    GzDecoder::new(&bytes[split + 4..]).read_to_string(&mut text).unwrap();
    let message: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(message["result"]["content"][0]["text"].as_str().unwrap().len(), 8 << 20);
}

#[tokio::test]
async fn a_big_answer_is_as_big_as_asked() {
    let web = plain();
    let heard = web.call("big", json!({ "bytes": 1_000_000 })).await;
    assert_eq!(heard.json()["result"]["content"][0]["text"].as_str().unwrap().len(), 1_000_000);
}
