//! S28: a task of ours that panics is a death like a server's. Its calls end, the line comes back, nothing hangs.
//!
//! Only in debug builds: what makes a task panic is not in others.

#![cfg(debug_assertions)]
#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

mod agent;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use agent::{Agent, LINETENDER, PATIENCE};
use linetender_badserver::agent::Caller;
use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};
use serde_json::{Value, json};

/// A folder in which a file of a task's name makes that task panic.
struct Faults(PathBuf);

impl Faults {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-panics-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn arm(&self, task: &str) -> PathBuf {
        let file = self.0.join(task);
        std::fs::write(&file, "").unwrap();
        file
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    fn panics(&self) -> usize {
        std::fs::read_to_string(self.log()).unwrap_or_default().matches("panicked at").count()
    }

    fn said(&self, words: &str) -> bool {
        std::fs::read_to_string(self.log()).unwrap_or_default().contains(words)
    }

    fn linetender(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LINETENDER);
        command.args(words).arg("--log").arg(self.log());
        command.env("LINETENDER_TEST_FAULTS", &self.0).env("XDG_STATE_HOME", &self.0);
        command.env("XDG_RUNTIME_DIR", &self.0);
        command
    }

    fn shim(&self) -> Agent {
        let mut shim = self.linetender(&["run", "--no-memory", "--no-journal", "--name", "bad"]);
        Agent::of_command(shim.args(["--", LINETENDER, "__badserver", "--era", "legacy"])).greeted()
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until this is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "still not: {what}");
        std::thread::yield_now();
    }
}

fn call(agent: &mut Agent, id: &str, tool: &str, arguments: &Value) {
    agent.send(&json!(id), "tools/call", &json!({ "name": tool, "arguments": arguments }));
}

/// The answers to these, in whichever order they come.
fn answers(agent: &mut Agent, ids: &[&str]) -> Vec<Value> {
    let mut found = vec![Value::Null; ids.len()];
    while found.contains(&Value::Null) {
        let heard = agent.hear();
        if let Some(at) = ids.iter().position(|id| heard["id"] == *id) {
            found[at] = heard;
        }
    }
    found
}

fn is_internal(answer: &Value) -> bool {
    answer.to_string().contains("internal error")
}

/// A task of the line panics while this call is under way: it is answered, and the next one is served. What it was told.
fn a_line_survives(task: &str, tool: &str) -> Value {
    let faults = Faults::new(task);
    let mut agent = faults.shim();
    let armed = faults.arm(task);
    let told = agent.call(&json!("under way"), tool, &json!({ "ms": 100 }));
    assert!(!armed.exists(), "the {task} never panicked");
    until("it is in the log", || faults.said(&format!("internal error in linetender ({task} panicked)")));
    let served = agent.call(&json!("next"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
    told
}

#[test]
fn s28_a_reader_that_panics_is_a_death() {
    let faults = Faults::new("reader");
    let mut agent = faults.shim();
    call(&mut agent, "slow", "sleep", &json!({ "ms": 60_000 }));
    // Whoever answers this has read what came before it.
    let served = agent.call(&json!("before"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    let armed = faults.arm("reader");
    call(&mut agent, "poke", "echo", &json!({ "n": 2 }));
    let told = answers(&mut agent, &["slow", "poke"]);
    assert!(!armed.exists(), "the reader never panicked");
    assert_eq!(told[0]["result"]["_meta"]["linetender"]["delivery"], "unknown", "{told:?}");
    assert!(is_internal(&told[0]), "{told:?}");
    let served = agent.call(&json!("next"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn s28_a_request_of_a_batch_that_panics_is_answered_in_the_array() {
    let faults = Faults::new("batch");
    let mut agent = faults.shim();
    let sleep = |id: &str, ms: u32| {
        let params = json!({ "name": "sleep", "arguments": { "ms": ms } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let armed = faults.arm("request");
    agent.say(&json!([sleep("first", 1), sleep("second", 100)]));
    let told = agent.hear();
    assert!(!armed.exists(), "no request panicked");
    let told = told.as_array().unwrap_or_else(|| panic!("{told}"));
    assert_eq!((told.len(), told.iter().filter(|answer| is_internal(answer)).count()), (2, 1), "{told:?}");
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn s28_a_writer_that_panics_is_a_death_and_what_it_never_wrote_is_sent_again() {
    let told = a_line_survives("writer", "sleep");
    assert!(told["result"]["isError"].is_null(), "{told}");
}

#[test]
fn s28_a_keeper_that_panics_is_a_death() {
    assert!(is_internal(&a_line_survives("keeper", "kill")));
}

/// A server at an address, in this process.
fn web() -> (tokio::runtime::Runtime, WebServer) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let manners = Manners { speaks: Speaks::Legacy, ..Manners::default() };
    let server = {
        let _entered = runtime.enter();
        WebServer::start(Config { manners, ..Config::default() }).unwrap()
    };
    (runtime, server)
}

/// A task of a line to an address panics: `poke` makes it do so and says whether it saw that, and the next call is served.
fn a_line_to_an_address_survives(task: &str, poke: impl Fn(&mut Agent) -> bool) {
    let (_runtime, server) = web();
    let faults = Faults::new(&task.replace(' ', "-"));
    let mut shim = faults.linetender(&["run", "--no-memory", "--no-journal", "--name", "web"]);
    let mut agent = Agent::of_command(shim.arg(server.url())).begun();
    let served = agent.call(&json!("before"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    until("it panicked, and that was seen", || {
        let armed = faults.arm(task);
        // A list that is being read may have met it instead; that is read again.
        poke(&mut agent) && !armed.exists()
    });
    until("it is served", || agent.call(&json!("next"), "echo", &json!({}))["result"]["isError"].is_null());
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn s28_a_keeper_of_an_address_that_panics_is_a_death() {
    a_line_to_an_address_survives("http keeper", |agent| {
        // Calls pass the keeper by, and what an agent tells the server does not.
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
        agent.call(&json!("poke"), "echo", &json!({}));
        true
    });
}

#[test]
fn s28_an_exchange_that_panics_before_anything_was_sent_is_made_again() {
    a_line_to_an_address_survives("exchange", |agent| {
        let told = agent.call(&json!("poke"), "echo", &json!({}));
        assert!(told["result"]["isError"].is_null(), "{told}");
        true
    });
}

#[test]
fn s28_an_exchange_that_panics_over_its_reply_ends_alone() {
    a_line_to_an_address_survives("exchange reply", |agent| {
        let told = agent.call(&json!("poke"), "echo", &json!({}));
        let delivery = &told["result"]["_meta"]["linetender"]["delivery"];
        assert!(!is_internal(&told) || delivery == "unknown", "{told}");
        is_internal(&told)
    });
}

#[test]
fn s28_a_reader_of_stderr_that_panics_is_a_death() {
    let faults = Faults::new("stderr");
    let mut shim = faults.linetender(&["run", "--no-memory", "--no-journal", "--name", "bad"]);
    let words = ["--", LINETENDER, "__badserver", "--era", "legacy", "--stderr", "hello"];
    faults.arm("stderr");
    let mut agent = Agent::of_command(shim.args(words)).begun();
    until("it panicked", || faults.panics() > 0);
    until("it is served", || agent.call(&json!("next"), "echo", &json!({}))["result"]["isError"].is_null());
}

#[test]
fn s28_a_tender_that_panics_is_a_death() {
    let faults = Faults::new("tender");
    let mut agent = faults.shim();
    call(&mut agent, "slow", "sleep", &json!({ "ms": 60_000 }));
    let served = agent.call(&json!("before"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    // It panics at its next step, which may come before the server dies: the call that is under way is told in either case.
    let armed = faults.arm("tender");
    call(&mut agent, "kill", "kill", &json!({}));
    let told = answers(&mut agent, &["slow", "kill"]);
    assert!(is_internal(&told[0]), "{told:?}");
    assert!(!armed.exists(), "the tender never panicked");
    let served = agent.call(&json!("next"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn s28_a_dial_that_panics_is_a_failed_one() {
    let faults = Faults::new("dial");
    let mut agent = faults.shim();
    let armed = faults.arm("dial");
    call(&mut agent, "kill", "kill", &json!({}));
    answers(&mut agent, &["kill"]);
    let served = agent.call(&json!("next"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    assert!(!armed.exists());
}

#[test]
fn s28_a_tender_that_panics_again_and_again_backs_off_and_comes_back() {
    let faults = Faults::new("always");
    let mut agent = faults.shim();
    let armed = faults.arm("tender.always");
    call(&mut agent, "kill", "kill", &json!({}));
    let told = answers(&mut agent, &["kill"]);
    assert!(is_internal(&told[0]), "{told:?}");
    // Each of these finds a tender that panics, or one that rests; all are told at once.
    for round in 0..20 {
        let refused = agent.call(&json!(round), "echo", &json!({}));
        assert_eq!(refused["result"]["isError"], true, "{refused}");
    }
    until("it rests", || faults.panics() >= 4);
    let panics = faults.panics();
    assert!(panics < 40, "{panics} panics");
    std::fs::remove_file(armed).unwrap();
    until("it is back", || agent.call(&json!("again"), "echo", &json!({}))["result"]["isError"].is_null());
}

#[test]
fn s28_a_request_that_panics_ends_alone() {
    let faults = Faults::new("request");
    let mut agent = faults.shim();
    call(&mut agent, "slow", "sleep", &json!({ "ms": 100 }));
    faults.arm("request");
    call(&mut agent, "broken", "echo", &json!({}));
    let told = answers(&mut agent, &["slow", "broken"]);
    assert!(is_internal(&told[1]) ^ is_internal(&told[0]), "{told:?}");
    let served = agent.call(&json!("next"), "echo", &json!({ "n": 1 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
}

#[test]
fn s28_a_session_that_panics_tells_every_request_and_ends_the_shim() {
    let faults = Faults::new("session");
    let mut agent = faults.shim();
    call(&mut agent, "slow", "hang", &json!({}));
    agent.ask(&json!("ping"), "ping", &json!({}));
    faults.arm("session");
    call(&mut agent, "broken", "echo", &json!({}));
    let told = answers(&mut agent, &["slow", "broken"]);
    assert!(told.iter().all(is_internal), "{told:?}");
    assert_eq!(agent.shim.wait().unwrap().code(), Some(1));
}

#[test]
fn a_second_signal_ends_a_shim_whose_runtime_is_stuck() {
    let faults = Faults::new("stuck");
    let mut agent = faults.shim();
    let pid = agent.shim.id().to_string();
    let armed = faults.arm("session.block");
    agent.send(&json!("stuck"), "ping", &json!({}));
    until("it is stuck", || !armed.exists());
    let signal = || assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    signal();
    // One that comes before the first was taken would be the same one.
    until("the first was taken", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().any(|line| line == "ShdPnd:\t0000000000000000")
    });
    std::thread::park_timeout(std::time::Duration::from_millis(200));
    signal();
    let mut ended = None;
    until("it has ended", || {
        ended = agent.shim.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(128 + 15));
}

/// A gateway with one server. Dropped, it is killed.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn config(faults: &Faults) -> PathBuf {
    let etc = faults.0.join("etc");
    std::fs::create_dir_all(&etc).unwrap();
    let book = faults.0.join("book");
    let args = format!("args = ['__badserver', '--era', 'legacy', '--book', '{}']", book.display());
    let server = format!("[servers.a]\ncommand = '{LINETENDER}'\n{args}\n");
    std::fs::write(etc.join("linetender.toml"), server).unwrap();
    etc.join("linetender.toml")
}

fn listens(faults: &Faults) -> (Gateway, String) {
    let mut serve = faults.linetender(&["serve", "--listen", "127.0.0.1:0"]);
    serve.arg("--config").arg(config(faults)).stdin(Stdio::null()).stderr(Stdio::null());
    let gateway = Gateway(serve.spawn().unwrap());
    let mut at = String::new();
    until("an address", || {
        let log = std::fs::read_to_string(faults.log()).unwrap_or_default();
        let said = log.split_once("serving address=http://").and_then(|(_, rest)| rest.split_once("/mcp"));
        said.is_some_and(|(address, _)| {
            address.clone_into(&mut at);
            true
        })
    });
    (gateway, at)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// One request on a connection of its own: its status and its body.
fn http(at: &str, method: &str, path: &str, session: Option<&str>, body: &str) -> (u16, String) {
    let (method, headers) = (method.parse().unwrap(), session.map(|id| ("mcp-session-id", id)));
    block_on(async {
        let caller = Caller::at(at.parse().unwrap());
        let answer = caller.send(method, path, headers.as_slice(), body.to_owned()).await;
        let status = answer.status.as_u16();
        (status, String::from_utf8(answer.body().await.unwrap().into()).unwrap())
    })
}

fn begin(at: &str) -> String {
    block_on(async { Caller::at(at.parse().unwrap()).agent("/mcp").await.session })
}

fn tool(id: &str, name: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name, "arguments": { "nonce": id } } })
        .to_string()
}

/// A task of an agent's session panics: what it has open is told, its session is no more, and a new one is served.
fn an_agent_begins_anew(task: &str) {
    let faults = Faults::new(&format!("gateway-{task}"));
    let (_gateway, at) = listens(&faults);
    let session = begin(&at);
    let (there, id) = (at.clone(), session.clone());
    let slow = std::thread::spawn(move || http(&there, "POST", "/mcp", Some(&id), &tool("slow", "a__hang")));
    let book = faults.0.join("book");
    until("the call is under way", || std::fs::read_to_string(&book).is_ok_and(|book| book.contains("slow")));
    let armed = faults.arm(task);
    let broken = http(&at, "POST", "/mcp", Some(&session), &tool("broken", "a__echo"));
    assert!(!armed.exists(), "the {task} never panicked");
    assert!(broken.1.contains("unknown"), "{broken:?}");
    let slow = slow.join().unwrap();
    assert!(slow.1.contains("unknown"), "{slow:?}");
    let (gone, _) = http(&at, "POST", "/mcp", Some(&session), &tool("gone", "a__echo"));
    assert_eq!(gone, 404);
    // The server hangs in the call of an agent that is gone, so only what needs no server is asked.
    let session = begin(&at);
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }).to_string();
    let (status, body) = http(&at, "POST", "/mcp", Some(&session), &ping);
    assert!(status == 200 && body.contains(r#""result""#), "{status} {body}");
}

#[test]
fn s28_a_mux_that_panics_costs_its_agent_one_session() {
    an_agent_begins_anew("mux");
}

#[test]
fn s28_a_front_that_panics_costs_its_agent_one_session() {
    an_agent_begins_anew("front");
}

#[test]
fn s28_a_tender_that_panics_behind_a_gateway_is_never_told_to_be_up() {
    let faults = Faults::new("gateway-tender");
    let (_gateway, at) = listens(&faults);
    let session = begin(&at);
    // Until then the tender has more to do, and would panic before the call. After a kill it may have more to do again.
    let list = json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }).to_string();
    let is_listed = || http(&at, "POST", "/mcp", Some(&session), &list).1.contains("a__kill");
    until("its lists are read", is_listed);
    let mut kills = ["one", "two", "three"].into_iter().map(|id| {
        let armed = faults.arm("tender");
        let (_, told) = http(&at, "POST", "/mcp", Some(&session), &tool(id, "a__kill"));
        assert!(!armed.exists() && told.contains("unknown"), "{told}");
        told
    });
    assert!(kills.any(|told| told.contains("internal error")));
    let served = http(&at, "POST", "/mcp", Some(&session), &tool("next", "a__echo"));
    assert!(!served.1.contains("isError"), "{served:?}");
    assert!(http(&at, "GET", "/readyz", None, "").1.contains(r#""a":"up""#));
}
