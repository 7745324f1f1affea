//! The server as a process.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::kit::{ask, call, exchange, in_time, post};

async fn start(port: u16, flags: &[&str]) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_badserver"))
        .args(["--http", &port.to_string()])
        .args(flags)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = in_time(lines.next_line()).await.unwrap().unwrap();
    let url = line.strip_prefix("listening on http://127.0.0.1:").unwrap();
    (child, url.strip_suffix("/mcp").unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_process_is_killed_and_started_again_on_its_port() {
    let (mut child, port) = start(0, &["--era", "legacy", "--unknown-session", "400"]).await;
    let address = ([127, 0, 0, 1], port).into();
    let heard = exchange(address, &post("connection: close\r\n", &ask("initialize"))).await;
    let session =
        format!("connection: close\r\nmcp-session-id: {}\r\n", heard.header("mcp-session-id").unwrap());
    assert_eq!(exchange(address, &post(&session, &call("echo", json!({})))).await.status(), 200);
    in_time(child.kill()).await.unwrap();
    let (_child, again) = start(port, &["--era", "legacy", "--unknown-session", "400"]).await;
    assert_eq!(again, port);
    assert_eq!(exchange(address, &post(&session, &call("echo", json!({})))).await.status(), 400);
}

#[tokio::test]
async fn flags_are_manners() {
    let flags = ["--stateless", "--primed", "--retry-ms", "5", "--fault", r#"ping=status:{"code":502}"#];
    let (_child, port) = start(0, &flags).await;
    let address = ([127, 0, 0, 1], port).into();
    let heard = exchange(address, &post("connection: close\r\n", &call("echo", json!({})))).await;
    assert!(heard.body().contains("retry: 5\n") && heard.id_of_last_event().is_some());
    assert_eq!(exchange(address, &post("connection: close\r\n", &ask("ping"))).await.status(), 502);
}

#[tokio::test]
async fn a_flag_that_does_not_exist_is_refused() {
    let child = Command::new(env!("CARGO_BIN_EXE_badserver"))
        .args(["--http", "0", "--nonsense"])
        .stderr(Stdio::piped())
        .spawn();
    let output = in_time(child.unwrap().wait_with_output()).await.unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("--nonsense"));
}
