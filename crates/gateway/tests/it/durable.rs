//! Calls with a key, on servers that keep outcomes.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use linetender::Rig;
use linetender_badserver::Book;
use linetender_badserver::agent::{Answer, Caller};
use linetender_fleet::Local;
use linetender_gateway::front::Served;
use linetender_gateway::{Bearers, Gateway, Known, Refused, Shared, Shown, Verdict};
use serde_json::{Value, json};

use crate::kit::{House, book, config, in_time, is_answered, text};

const KEY: &str = "linetender/call";

/// A server that keeps outcomes, another one, and the book of both.
struct Kept {
    house: House,
    book: Book,
}

fn servers(book: &Book, more: &str) -> String {
    let args = format!("args = ['--book', '{}']", book.path().display());
    format!("[servers.a]\n{{bad}}\n{args}\ndurable = true\n{more}\n[servers.b]\n{{bad}}\n{args}\n")
}

impl Kept {
    async fn up(more: &str) -> Self {
        let book = book();
        Self { house: House::up(&servers(&book, more)).await, book }
    }

    fn runs(&self, nonce: &str) -> u32 {
        self.book.runs().get(nonce).copied().unwrap_or_default()
    }

    async fn runs_now(&self, nonce: &str) {
        in_time(async {
            while self.runs(nonce) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file::<PathBuf>(self.book.path().into());
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made where it is passed")]
fn params(tool: &str, key: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments, "_meta": { (KEY): key } })
}

/// Asks as an agent of this era that is new each time. Dropped, the answer is hung up on.
async fn asks(web: &Caller, modern: bool, path: &str, params: Value) -> Answer {
    if modern {
        return web.modern(path, "tools/call", params).await;
    }
    web.agent(path).await.request(1, "tools/call", params).await
}

async fn answers(web: &Caller, modern: bool, path: &str, params: Value) -> Value {
    asks(web, modern, path, params).await.last().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_outlives_its_agent_and_the_next_one_gets_its_result() {
    outlives("auto").await;
    outlives("legacy").await;
}

async fn outlives(era: &str) {
    let kept = Kept::up(&format!("era = '{era}'")).await;
    let mut number = 0;
    for (path, tool) in [("/mcp", "a__sleep"), ("/mcp/a", "sleep")] {
        for (first, second) in [(true, true), (false, false), (true, false), (false, true)] {
            number += 1;
            let nonce = format!("n{number}");
            let params = params(tool, &nonce, json!({ "ms": 700, "nonce": nonce }));
            let asked = tokio::spawn({
                let (web, path, params) = (*kept.house, path.to_owned(), params.clone());
                async move { asks(&web, first, &path, params).await.last().await }
            });
            kept.runs_now(&nonce).await;
            asked.abort();
            assert!(asked.await.unwrap_err().is_cancelled());
            // The other address leads to the same call.
            for (path, tool) in [("/mcp", "a__sleep"), ("/mcp/a", "sleep")] {
                let mut params = params.clone();
                params["name"] = tool.into();
                let answer = answers(&kept.house, second, path, params).await;
                assert!(is_answered(&answer) && text(&answer).contains(&nonce), "{path}: {answer}");
                assert!(!second || answer["result"]["resultType"] == "complete", "{answer}");
            }
            assert_eq!(kept.runs(&nonce), 1, "{path} {first} {second}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_session_does_not_take_its_calls_with_it() {
    let kept = Kept::up("").await;
    let agent = kept.house.agent("/mcp").await;
    let params = params("a__sleep", "k", json!({ "ms": 500, "nonce": "n" }));
    let stream = agent.request(1, "tools/call", params.clone()).await;
    kept.runs_now("n").await;
    assert_eq!(agent.delete().await, 200);
    drop(stream);
    let answer = answers(&kept.house, false, "/mcp", params).await;
    assert!(is_answered(&answer), "{answer}");
    assert_eq!(kept.runs("n"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_run_once_and_other_arguments_not_at_all() {
    let kept = Kept::up("").await;
    for (at, modern) in [false, true].into_iter().enumerate() {
        let nonce = format!("n{at}");
        let call = |nonce: &str| params("a__sleep", &at.to_string(), json!({ "ms": 300, "nonce": nonce }));
        let one = answers(&kept.house, modern, "/mcp", call(&nonce));
        let two = answers(&kept.house, !modern, "/mcp", call(&nonce));
        let (one, two) = tokio::join!(one, two);
        assert_eq!(one["result"]["content"], two["result"]["content"]);
        assert_eq!(kept.runs(&nonce), 1);
        let other = answers(&kept.house, modern, "/mcp", call("other")).await;
        assert_eq!(other["error"]["code"], -32602, "{other}");
        assert!(other["error"]["message"].as_str().unwrap().contains("other arguments"), "{other}");
        assert_eq!(other["error"]["data"]["delivery"], "not executed");
        assert_eq!(kept.runs("other"), 0);
    }
    // Another tool with the same key is another call.
    let echo = answers(&kept.house, true, "/mcp", params("a__echo", "0", json!({ "nonce": "echo" }))).await;
    assert!(is_answered(&echo) && kept.runs("echo") == 1, "{echo}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_or_on_another_server_every_call_runs() {
    let kept = Kept::up("").await;
    for modern in [false, true] {
        for _ in 0..2 {
            let mut call = params("a__echo", "k", json!({ "nonce": format!("{modern}") }));
            call.as_object_mut().unwrap().remove("_meta");
            assert!(is_answered(&answers(&kept.house, modern, "/mcp", call).await));
            let call = params("b__echo", "k", json!({ "nonce": format!("b {modern}") }));
            assert!(is_answered(&answers(&kept.house, modern, "/mcp", call).await));
        }
        assert_eq!((kept.runs(&format!("{modern}")), kept.runs(&format!("b {modern}"))), (2, 2));
        for bad in [json!(7), json!(""), json!("k".repeat(201))] {
            let mut call = params("a__echo", "", json!({ "nonce": "bad" }));
            call["_meta"][KEY] = bad.clone();
            let answer = answers(&kept.house, modern, "/mcp", call).await;
            assert_eq!(answer["error"]["code"], -32602, "{bad}: {answer}");
        }
    }
    assert_eq!(kept.runs("bad"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_may_be_a_header() {
    let kept = Kept::up("").await;
    let message = |meta: Value| {
        let params = json!({ "name": "echo", "arguments": { "nonce": "n" }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
    };
    let agent = kept.house.agent("/mcp/a").await;
    for _ in 0..2 {
        let headers = [("mcp-session-id", agent.session.as_str()), ("idempotency-key", "k")];
        let answer = kept.house.send(Method::POST, "/mcp/a", &headers, message(json!({}))).await;
        assert!(is_answered(&answer.json().await));
    }
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("idempotency-key", "k"),
    ];
    let answer = kept.house.send(Method::POST, "/mcp/a", &headers, message(modern.clone())).await;
    assert!(is_answered(&answer.json().await));
    // The same key, wherever it stands.
    let answer = answers(&kept.house, true, "/mcp", params("a__echo", "k", json!({ "nonce": "n" }))).await;
    assert!(is_answered(&answer));
    assert_eq!(kept.runs("n"), 1);
    let long = "k".repeat(201);
    let headers = [headers[0], headers[1], headers[2], ("idempotency-key", long.as_str())];
    let answer = kept.house.send(Method::POST, "/mcp/a", &headers, message(modern)).await;
    assert_eq!(answer.json().await["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_is_taken_from_its_server_and_stays_unknown() {
    let kept = Kept::up("").await;
    let params = params("a__hang", "k", json!({ "nonce": "n" }));
    let agent = kept.house.agent("/mcp").await;
    let stream = agent.request(1, "tools/call", params.clone()).await;
    kept.runs_now("n").await;
    let waiting = tokio::spawn({
        let (web, params) = (*kept.house, params.clone());
        async move { answers(&web, true, "/mcp", params).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(agent.post(&cancelled).await.status, 202);
    let told = in_time(waiting).await.unwrap();
    assert!(text(&told).contains("was cancelled"), "{told}");
    let fields = &told["result"]["_meta"]["linetender"];
    assert_eq!((&fields["delivery"], &fields["reason"]), (&json!("unknown"), &json!("cancelled")), "{told}");
    assert!(stream.all().await.iter().all(|message| message.get("id").is_none()), "it is not answered");
    let told = answers(&kept.house, false, "/mcp", params).await;
    assert!(text(&told).contains("was cancelled"), "{told}");
    assert_eq!(kept.runs("n"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_stays_one_and_is_not_tried_again() {
    let kept = Kept::up("").await;
    let params = params("a__kill", "k", json!({ "nonce": "n" }));
    let first = answers(&kept.house, true, "/mcp", params.clone()).await;
    assert_eq!(first["result"]["_meta"]["linetender"]["delivery"], "unknown", "{first}");
    for modern in [true, false] {
        let again = answers(&kept.house, modern, "/mcp", params.clone()).await;
        assert_eq!(text(&again), text(&first));
    }
    assert_eq!(kept.runs("n"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_reaches_whoever_began_the_call() {
    let kept = Kept::up("").await;
    for modern in [false, true] {
        let mut params =
            params("a__progress", &modern.to_string(), json!({ "ms": 20, "times": 5, "nonce": "n" }));
        params["_meta"]["progressToken"] = json!("t");
        let all = asks(&kept.house, modern, "/mcp", params).await.all().await;
        let steps = all.iter().filter(|message| message["method"] == "notifications/progress").count();
        assert!(steps > 0 && is_answered(all.last().unwrap()), "{all:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_result_is_told_once_and_then_that_it_was() {
    let kept = Kept::up("").await;
    let params = params("a__big", "k", json!({ "bytes": 2_000_000, "size": 2_000_000, "nonce": "n" }));
    let first = answers(&kept.house, true, "/mcp", params.clone()).await;
    assert!(is_answered(&first) && text(&first).len() > 1_000_000);
    let again = answers(&kept.house, false, "/mcp", params).await;
    assert!(text(&again).contains("was not kept") && text(&again).contains("was executed"), "{again}");
    assert_eq!(again["result"]["_meta"]["linetender"]["delivery"], "answered");
    assert_eq!(kept.runs("n"), 1);
}

/// Everybody is whoever its token says.
#[derive(Debug)]
struct Names;

impl Bearers for Names {
    fn known(&self, token: &str, _: Option<&str>) -> Option<Verdict> {
        let name = token.to_owned();
        Some(Ok(Known { name, groups: Vec::new(), realm: "test".to_owned(), until: None, stamp: 0 }))
    }

    fn check<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(std::future::ready(Err(Refused::Invalid("no".to_owned()))))
    }

    fn look(&self) -> Pin<Box<dyn Future<Output = u64> + Send + '_>> {
        Box::pin(std::future::ready(0))
    }

    fn stands(&self, _: &Shown<'_>) -> bool {
        true
    }

    fn issuer(&self) -> Option<String> {
        None
    }

    fn scopes(&self) -> Vec<String> {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_key_of_somebody_else_is_another_call() {
    for scope in ["shared", "identity"] {
        let book = book();
        let text_of = servers(&book, &format!("scope = '{scope}'")) + "[gateway.auth]\ntokens = '/nowhere'\n";
        let house = House::open_with("127.0.0.1:0", |_| {
            (Gateway::start_on(Rig::new(), config(&text_of)), Some(Arc::new(Names)))
        })
        .await;
        for line in house.gateway.lines() {
            in_time(line.catalogue()).await.unwrap();
        }
        for name in ["alice", "bob"] {
            let web = house.bearing(name);
            for modern in [true, false] {
                let call = params("echo", "k", json!({ "nonce": "n" }));
                let answer = answers(&web, modern, "/mcp/a", call).await;
                assert!(is_answered(&answer), "{answer}");
            }
        }
        assert_eq!(book.runs()["n"], 2, "{scope}");
        let _ = std::fs::remove_file(book.path());
    }
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A node of a fleet whose directory is in this process, for agents who have tokens.
async fn node(number: u64, directory: &Local, gone: &Arc<AtomicBool>, book: &Book) -> House {
    let text = servers(book, "") + "[gateway.auth]\ntokens = '/nowhere'\n";
    let (directory, gone) = (Arc::new(directory.clone()), Arc::clone(gone));
    let shared = Shared::new(directory, number, move |_| !gone.load(Ordering::SeqCst));
    let start = |_| (Gateway::start_among(Rig::new(), config(&text), shared), Some(Arc::new(Names) as _));
    let house = House::open_with("127.0.0.1:0", start).await;
    for line in house.gateway.lines() {
        in_time(line.catalogue()).await.unwrap();
    }
    house
}

async fn knows_tasks(web: &Caller, path: &str, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { TASKS: {} } });
    web.modern(path, method, params).await.last().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_call_becomes_a_task_that_any_node_can_be_asked_for() {
    let (book, directory, gone) = (book(), Local::default(), Arc::<AtomicBool>::default());
    let one = node(1, &directory, &gone, &book).await;
    let two = node(2, &directory, &gone, &book).await;
    let (alice, bob) = (two.bearing("alice"), two.bearing("bob"));
    for path in ["/mcp", "/mcp/a"] {
        let told = alice.modern(path, "server/discover", json!({})).await.json().await;
        assert!(told["result"]["capabilities"]["extensions"][TASKS].is_object(), "{path}: {told}");
    }
    // What is over soon is no task.
    let quick = params("echo", "quick", json!({ "nonce": "quick" }));
    assert!(is_answered(&knows_tasks(&one.bearing("alice"), "/mcp/a", "tools/call", quick).await));
    let call = params("sleep", "k", json!({ "ms": 3000, "nonce": "n" }));
    let begun = knows_tasks(&one.bearing("alice"), "/mcp/a", "tools/call", call.clone()).await;
    let task = &begun["result"];
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{begun}");
    assert_eq!(task["ttlMs"], 3_600_000, "{begun}");
    let named = json!({ "taskId": task["taskId"] });
    let working = knows_tasks(&alice, "/mcp", "tasks/get", named.clone()).await;
    assert_eq!(working["result"]["status"], "working", "{working}");
    for (web, path, id) in [
        (&bob, "/mcp", named.clone()),
        (&bob, "/mcp/a", named.clone()),
        (&alice, "/mcp/b", named.clone()),
        (&alice, "/mcp", json!({ "taskId": format!("linetender-call-{}", "0".repeat(64)) })),
    ] {
        let none = knows_tasks(web, path, "tasks/get", id).await;
        assert_eq!(none["error"]["code"], -32602, "{path}: {none}");
    }
    let undeclared = alice.modern("/mcp", "tasks/get", named.clone()).await.json().await;
    assert_eq!(undeclared["error"]["code"], -32021, "{undeclared}");
    let done = in_time(async {
        loop {
            let state = knows_tasks(&alice, "/mcp", "tasks/get", named.clone()).await;
            if state["result"]["status"] != "working" {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let result = &done["result"]["result"];
    assert_eq!((&done["result"]["status"], &result["resultType"]), (&json!("completed"), &json!("complete")));
    assert!(result["content"][0]["text"].as_str().unwrap().contains("\"n\""), "{done}");
    // Whoever has the key alone gets the same.
    let again = answers(&alice, true, "/mcp/a", call).await;
    assert_eq!(again["result"]["content"], result["content"]);
    assert_eq!(book.runs()["n"], 1);
    let _ = std::fs::remove_file(book.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_can_be_taken_back_where_it_runs_and_is_unknown_when_its_node_is_gone() {
    let (book, directory, gone) = (book(), Local::default(), Arc::<AtomicBool>::default());
    let one = node(1, &directory, &gone, &book).await;
    let two = node(2, &directory, &gone, &book).await;
    let (here, there) = (one.bearing("alice"), two.bearing("alice"));
    let begin = async |key: &str| {
        let call = params("a__hang", key, json!({ "nonce": key }));
        let begun = knows_tasks(&here, "/mcp", "tools/call", call).await;
        json!({ "taskId": begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")) })
    };
    let (back, lost) = tokio::join!(begin("back"), begin("lost"));
    let told = knows_tasks(&here, "/mcp", "tasks/cancel", back.clone()).await;
    assert_eq!(told["result"], json!({ "resultType": "complete" }));
    in_time(async {
        while knows_tasks(&there, "/mcp", "tasks/get", back.clone()).await["result"]["status"] != "cancelled"
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    gone.store(true, Ordering::SeqCst);
    let told = knows_tasks(&there, "/mcp", "tasks/get", lost).await;
    let result = &told["result"]["result"];
    assert_eq!(
        (&told["result"]["status"], &result["isError"]),
        (&json!("completed"), &json!(true)),
        "{told}"
    );
    assert_eq!(result["_meta"]["linetender"]["delivery"], "unknown", "{told}");
    let again = answers(&there, false, "/mcp", params("a__hang", "lost", json!({ "nonce": "lost" }))).await;
    assert!(text(&again).contains("node that ran this call died"), "{again}");
    assert_eq!((book.runs()["lost"], book.runs()["back"]), (1, 1));
    let _ = std::fs::remove_file(book.path());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_waits_for_calls_whose_agents_are_gone() {
    let book = book();
    let mut house = House::up(&servers(&book, "")).await;
    let call = params("a__sleep", "k", json!({ "ms": 1500, "nonce": "n" }));
    let asked = tokio::spawn({
        let web = *house;
        async move { asks(&web, true, "/mcp", call).await.last().await }
    });
    in_time(async {
        while !book.runs().contains_key("n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    asked.abort();
    let begun = std::time::Instant::now();
    house.stop();
    assert_eq!(house.ended().await, Served::Finished);
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
    let _ = std::fs::remove_file(book.path());
}
