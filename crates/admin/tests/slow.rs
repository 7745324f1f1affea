//! Watchers that do not read.

use std::time::Duration;

use linetender::Redacted;
use linetender_admin::{Admin, Options, Secret};
use linetender_holder::Holder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

const TOKEN: &str = "0123456789abcdef";

/// As many as may watch at once.
const ALL: usize = 16;

/// Somebody who watches, and the status that it got.
async fn watch(address: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let ask =
        format!("GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    (stream, String::from_utf8_lossy(&status[9..]).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_that_do_not_read_are_dropped_and_their_places_are_free_again() {
    let holder = Holder::new("serve", None, None);
    let options = Options {
        listen: ([127, 0, 0, 1], 0).into(),
        token: Secret::Text(TOKEN.to_owned()),
        hosts: Vec::new(),
        certificate: None,
    };
    let admin = Admin::open(options).await.unwrap();
    let address = admin.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut tasks = JoinSet::new();
    tasks.spawn(admin.serve(holder.clone()));
    let mut deaf = Vec::new();
    for _ in 0..ALL {
        let (stream, status) = watch(&address).await;
        assert_eq!(status, "200");
        deaf.push(stream);
    }
    assert_eq!(watch(&address).await.1, "503", "all places are taken");
    let text = Redacted::head(&"x".repeat(2000), 2000);
    let begun = Instant::now();
    let mut looked = begun;
    loop {
        for _ in 0..50 {
            holder.begin("1", &text);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        if looked.elapsed() > Duration::from_millis(500) {
            looked = Instant::now();
            if watch(&address).await.1 == "200" {
                break;
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "they keep their places");
    }
    drop(deaf);
}
