//! Calls whose agent and whose node are killed: real processes, a real NATS, a book of what ran.
//!
//! `CALLS=100 cargo nextest run -p linetender-fleet --all-features --run-ignored ignored-only killed`

#![expect(clippy::disallowed_methods, reason = "a test owns its processes, and measures with a real clock")]

mod cluster;

use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::Cluster;
use linetender_badserver::Book;
use linetender_badserver::agent::{Caller, is_answered, text};
use serde_json::{Value, json};

struct Node {
    process: Child,
    web: Caller,
}

impl Node {
    fn start(nats: &str, book: &Book) -> Self {
        // Beside the folder of tests.
        let test = std::env::current_exe().unwrap();
        let node: PathBuf = test.parent().unwrap().with_file_name("examples").join("node");
        let mut command = Command::new(node);
        command.arg(nats).arg(book.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, web: Caller::at(line.trim().parse().unwrap()) }
    }

    /// Until its server is up, and its directory: a call of its own.
    async fn warm(&self) {
        let key = self.process.id().to_string();
        let meta = json!({ "linetender/call": key });
        let call = json!({ "name": "echo", "arguments": { "nonce": "warm" }, "_meta": meta });
        let answer = self.web.modern("/mcp/slow", "tools/call", call).await.last().await;
        assert!(is_answered(&answer), "{answer}");
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What became of all calls.
#[derive(Debug, Default)]
struct Tally {
    /// They were tasks when the node died.
    tasks: usize,
    /// The first node ran it, and its result was there.
    stored: usize,
    /// It is unknown, and was run once.
    unknown: usize,
    /// It is unknown, and was not run.
    never_ran: usize,
    /// The first node was killed before it began: the second ran it.
    ran_by_second: usize,
}

fn call(number: usize, takes: u64) -> Value {
    json!({
        "name": "sleep",
        "arguments": { "ms": takes, "nonce": format!("n{number}") },
        "_meta": {
            "linetender/call": format!("k{number}"),
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        },
    })
}

/// The outcome of a task, as that of its call.
async fn task_of(web: &Caller, task: &Value) -> Value {
    loop {
        let known = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": known });
        let get = json!({ "taskId": task, "_meta": meta });
        let state = web.modern("/mcp", "tasks/get", get).await.last().await;
        match state["result"]["status"].as_str() {
            Some("working") => tokio::time::sleep(Duration::from_millis(20)).await,
            Some("completed") => return json!({ "result": state["result"]["result"] }),
            _ => panic!("{state}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs tools/real-nats"]
async fn a_call_whose_agent_and_node_are_killed_has_its_outcome_elsewhere_or_is_unknown() {
    let calls = std::env::var("CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(8);
    let cluster = Cluster::start(1).await;
    let (nats, book) = (cluster.addresses()[0].clone(), Book::at(cluster.folder().join("book")));
    let second = Node::start(&nats, &book);
    second.warm().await;
    let servers = book.runs_by()["warm"].clone();
    let mut tally = Tally::default();
    for number in 0..calls {
        let mut first = Node::start(&nats, &book);
        first.warm().await;
        // Some calls are over when the node dies, some run, some have not begun; the time is spread over all of these.
        let (mut takes, lives) = ((number as u64 * 53) % 200, (number as u64 * 29) % 260);
        // Every fourth is long enough to become a task.
        let is_task = number % 4 == 3;
        if is_task {
            takes += 1000;
        }
        let mut agent = tokio::spawn({
            let (web, call) = (first.web, call(number, takes));
            async move { web.modern("/mcp/slow", "tools/call", call).await.last().await }
        });
        let task =
            if is_task { (&mut agent).await.unwrap()["result"]["taskId"].clone() } else { Value::Null };
        tokio::time::sleep(Duration::from_millis(lives)).await;
        first.kill();
        agent.abort();
        let answer = if task.is_string() {
            tally.tasks += 1;
            task_of(&second.web, &task).await
        } else if number % 2 == 0 {
            second.web.modern("/mcp/slow", "tools/call", call(number, takes)).await.last().await
        } else {
            let mut call = call(number, takes);
            call["name"] = "slow__sleep".into();
            second.web.agent("/mcp").await.ask("tools/call", call).await
        };
        let runs = book.runs().get(&format!("n{number}")).copied().unwrap_or_default();
        assert!(runs <= 1, "{number} ran {runs} times: {answer}");
        let ran_by_second = book.runs_by().get(&format!("n{number}")).is_some_and(|by| *by == servers[0..1]);
        if is_answered(&answer) {
            assert!(text(&answer).contains(&format!("\"n{number}\"")) && runs == 1, "{number}: {answer}");
            *(if ran_by_second { &mut tally.ran_by_second } else { &mut tally.stored }) += 1;
        } else {
            let told = &answer["result"]["_meta"]["linetender"];
            assert_eq!(told["delivery"], "unknown", "{number}: {answer}");
            assert!(text(&answer).contains("node that ran this call died"), "{number}: {answer}");
            *(if runs == 1 { &mut tally.unknown } else { &mut tally.never_ran }) += 1;
        }
        // It is the same for whoever asks next.
        let again = second.web.modern("/mcp/slow", "tools/call", call(number, takes)).await.last().await;
        assert_eq!(again["result"]["content"], answer["result"]["content"], "{number}");
    }
    println!("{tally:?}");
    assert!(tally.stored > 0 && tally.unknown > 0, "{tally:?}");
}
