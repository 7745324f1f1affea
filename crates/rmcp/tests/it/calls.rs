//! Calls while the server lives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::{Line, Rig};
use linetender_badserver::webserver::Speaks;
use rmcp::model::{CallToolRequestParams, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use rmcp::{ClientHandler, ServiceExt as _};
use serde_json::json;

use crate::kit::{call, in_time, legacy, lives, our_words, says, text, web};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_lists_and_calls_as_on_any_other_transport() {
    let bad = legacy(&[]);
    let client = bad.client().await;
    assert_eq!(client.peer_info().unwrap().server_info.as_ref().unwrap().name, "badserver");
    assert!(in_time(client.list_all_tools()).await.unwrap().len() > 10);
    assert_eq!(says(&client, "echo", json!({ "n": 1 })).await, r#"{"n":1}"#);
    let error = in_time(client.list_all_prompts()).await.unwrap_err();
    assert!(error.to_string().contains("-32601"), "the server's own word: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ran_and_was_refused_is_told_as_refused() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let (_web, bad) = web(speaks);
        let client = bad.client().await;
        for code in [429, 413, 405] {
            let arguments = json!({ "code": code, "run": true, "nonce": code.to_string() });
            let result = call(&client, "status", arguments).await.unwrap();
            assert_eq!(our_words(&result), "refused", "{speaks:?} {code}: {result:?}");
            assert!(
                text(&result).contains("linetender cannot check that: check for side effects"),
                "{result:?}"
            );
            assert!(!text(&result).contains("safe"), "{result:?}");
            assert_eq!(bad.book.runs()[&code.to_string()], 1, "{speaks:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_leaves_nothing_of_the_server() {
    let bad = legacy(&[]);
    let client = bad.client().await;
    says(&client, "echo", json!({ "nonce": "a" })).await;
    let pid = bad.ran("a");
    assert!(lives(pid));
    // A call that will never be answered does not hold it up.
    let hangs = client.peer().clone();
    let hanging = async move { call(&hangs, "hang", json!({ "nonce": "h" })).await };
    let close = async {
        while !bad.book.runs().contains_key("h") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let start = tokio::time::Instant::now();
        client.cancel().await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
        assert!(!lives(pid));
    };
    let (told, ()) = in_time(Box::pin(async { tokio::join!(hanging, close) })).await;
    assert!(told.is_err(), "its client closed: {told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_is_cancelled() {
    let bad = legacy(&[]);
    let client = bad.client().await;
    // More than a line takes at once: if they were not cancelled, the last would wait for the first.
    for _ in 0..300 {
        let hang = client.call_tool(CallToolRequestParams::new("hang"));
        assert!(tokio::time::timeout(Duration::from_millis(2), hang).await.is_err());
    }
    says(&client, "echo", json!({ "nonce": "after" })).await;
}

#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Watcher {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap().push(params.progress);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_reaches_the_handler() {
    let (bad, watcher) = (legacy(&[]), Watcher::default());
    let transport = linetender_rmcp::transport_on(bad.server.clone(), &Rig::new());
    let client = in_time(watcher.clone().serve(transport)).await.unwrap();
    says(&client, "progress", json!({ "times": 3, "ms": 20 })).await;
    // Each notification is handled in a task of its own.
    in_time(async {
        while watcher.0.lock().unwrap().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let mut heard = watcher.0.lock().unwrap().clone();
    heard.sort_by(f64::total_cmp);
    assert_eq!(heard, [1.0, 2.0, 3.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_share_a_line_and_each_hears_its_own() {
    let bad = legacy(&[]);
    let line = Line::open(bad.server.clone());
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(in_time(().serve(linetender_rmcp::shared(&line))).await.unwrap());
    }
    let mut calls = tokio::task::JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        for round in 0..20 {
            let peer = client.peer().clone();
            calls.spawn(async move {
                let arguments = json!({ "nonce": format!("{number}-{round}") });
                assert_eq!(says(&peer, "echo", arguments.clone()).await, arguments.to_string());
            });
        }
    }
    in_time(calls.join_all()).await;
    // One goes; the others stay.
    clients.pop().unwrap().cancel().await.unwrap();
    says(&clients[0], "echo", json!({ "nonce": "last" })).await;
    bad.ran_nothing_twice();
    assert_eq!(line.status().generation, 1);
    in_time(line.close()).await;
}
