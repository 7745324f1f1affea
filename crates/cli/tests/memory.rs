//! Fast start: an agent is greeted with what its server said the last time, while the server is still starting.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

mod agent;

use std::fs;
use std::path::{Path, PathBuf};

use agent::{Agent, LINETENDER};
use serde_json::{Value, json};

/// A home of the test's own, and a server in it whose flags can be changed from one start to the next.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-home-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// The same command each time; what it does is in a file.
    fn agent(&self, does: &str) -> Agent {
        self.agent_with(&[], does)
    }

    fn agent_with(&self, flags: &[&str], does: &str) -> Agent {
        fs::write(self.0.join("does"), does).unwrap();
        let file = self.0.join("does").display().to_string();
        let command = ["--", "sh", "-c", r#"eval "$(cat "$1")""#, "sh", &file];
        Agent::at_home(self.path(), &[flags, &command].concat())
    }

    fn bad(&self, flags: &str) -> Agent {
        self.agent(&bad(flags))
    }

    /// Runs it once, so that it is known.
    fn known(&self, flags: &str) {
        let mut agent = self.bad(flags).greeted();
        agent.call(&json!(1), "echo", &json!({}));
        self.pages(1);
    }

    /// Waits until so many pages are written.
    fn pages(&self, wanted: usize) {
        let folder = self.0.join("linetender/servers");
        let count = || {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count()
        };
        let start = std::time::Instant::now();
        while count() != wanted {
            assert!(start.elapsed().as_secs() < 20, "{} pages, not {wanted}", count());
            std::thread::yield_now();
        }
    }
}

impl Home {
    /// Waits until this many starts in a row are known to have failed; the third is the last that anybody knows of.
    fn failures(&self, wanted: usize) {
        if wanted == 3 {
            return self.pages(0);
        }
        let folder = self.0.join("linetender/servers");
        let known = || {
            let pages = fs::read_dir(&folder)
                .unwrap()
                .flatten()
                .filter_map(|page| fs::read_to_string(page.path()).ok());
            pages.filter(|text| text.contains(&format!(r#""failed_starts":{wanted}"#))).count() == 1
        };
        let start = std::time::Instant::now();
        while !known() {
            assert!(start.elapsed().as_secs() < 20, "not {wanted} failed starts");
            std::thread::yield_now();
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bad(flags: &str) -> String {
    format!("exec '{LINETENDER}' __badserver --era legacy {flags}")
}

/// A server that never says a word.
const SILENT: &str = "exec sleep 100";

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_known_server_is_greeted_and_listed_before_it_has_said_a_word() {
    let home = Home::new("known");
    let mut agent = home.bad("").greeted();
    let live = agent.ask(&json!(1), "tools/list", &json!({}));
    home.pages(1);
    drop(agent);
    let mut agent = home.agent(SILENT).greeted();
    let known = agent.ask(&json!(1), "tools/list", &json!({}));
    assert_eq!(known["result"]["tools"], live["result"]["tools"]);
    assert!(known["result"].get("nextCursor").is_none());
}

#[test]
fn a_call_waits_for_the_server_that_was_only_remembered() {
    let home = Home::new("waits");
    home.known("");
    let mut agent = home.bad("--start-delay-ms 300").greeted();
    let answer = agent.call(&json!(1), "echo", &json!({ "n": 1 }));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#);
}

#[test]
fn a_list_that_is_another_now_is_told_once() {
    let home = Home::new("list");
    home.known("");
    let extra = home.path().join("extra");
    fs::write(&extra, "surprise").unwrap();
    let mut agent = home.bad(&format!("--start-delay-ms 200 --changing '{}'", extra.display())).greeted();
    assert!(!names(&agent.ask(&json!(1), "tools/list", &json!({}))).contains(&"surprise"));
    assert_eq!(agent.hear()["method"], "notifications/tools/list_changed");
    assert!(names(&agent.ask(&json!(2), "tools/list", &json!({}))).contains(&"surprise"));
    agent.send(&json!(3), "tools/call", &json!({ "name": "echo", "arguments": {} }));
    assert_eq!(agent.hear()["id"], 3, "it is told once");
}

#[test]
fn a_capability_that_has_vanished_is_refused_with_the_reason() {
    let home = Home::new("vanished");
    home.known("--full");
    let mut agent = home.bad("").greeted();
    agent.call(&json!(1), "echo", &json!({}));
    let error = &agent.ask(&json!(2), "prompts/get", &json!({ "name": "hello" }))["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no longer offers prompts"), "{error}");
    assert_eq!(error["data"]["source"], "linetender");
    // A model is told as of any other failure.
    let call = agent.ask(&json!(4), "prompts/list", &json!({}));
    assert_eq!(call["error"]["code"], 7007, "{call}");
    // What never was there is the server's own business.
    assert_eq!(agent.ask(&json!(3), "no/such", &json!({}))["error"]["code"], -32601);
}

#[test]
fn another_version_is_not_remembered_again() {
    let home = Home::new("version");
    home.known("");
    let mut agent = home.bad("--revision 2024-11-05").greeted();
    agent.call(&json!(1), "echo", &json!({}));
    home.pages(0);
}

#[test]
fn three_starts_that_failed_and_nobody_is_greeted_from_memory_any_more() {
    let home = Home::new("failed");
    home.known("");
    for start in 0..3 {
        let mut agent = home.agent("exit 3").greeted();
        let answer = agent.call(&json!(1), "echo", &json!({}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("status 3"), "{answer}");
        home.failures(start + 1);
    }
    let mut agent = home.agent("exit 3");
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert!(agent.ask(&json!(1), "initialize", &hello)["error"]["code"].is_i64());
}

#[test]
fn an_agent_that_leaves_early_does_not_make_a_start_fail() {
    let home = Home::new("early");
    home.known("");
    for _ in 0..4 {
        drop(home.agent(SILENT).greeted());
    }
    home.agent(SILENT).greeted();
}

#[test]
fn thirty_that_an_agent_starts_at_once_are_all_up_and_no_start_counts_as_failed() {
    let home = Home::new("thirty");
    let mut agents: Vec<Agent> = (0..30).map(|_| home.bad("")).collect();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    for agent in &mut agents {
        agent.send(&json!("hello"), "initialize", &hello);
    }
    for agent in &mut agents {
        assert!(agent.hear()["result"].is_object());
        let answer = agent.call(&json!(1), "echo", &json!({ "n": 1 }));
        assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#);
    }
    let journal = home.path().join("linetender/journal.jsonl");
    let count = |state: &str| {
        let text = fs::read_to_string(&journal).unwrap_or_default();
        text.lines().filter(|line| line.contains(&format!(r#""state":"{state}""#))).count()
    };
    let start = std::time::Instant::now();
    while count("up") < 30 {
        assert!(start.elapsed().as_secs() < 20, "{} are up", count("up"));
        std::thread::yield_now();
    }
    assert_eq!((count("up"), count("ending"), count("waiting"), count("parked")), (30, 0, 0, 0));
}

#[test]
fn what_an_agent_says_while_a_known_server_starts_reaches_it() {
    let home = Home::new("says");
    home.known("");
    let book = home.path().join("book");
    let mut agent = home.bad(&format!("--start-delay-ms 200 --book '{}'", book.display())).greeted();
    agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/custom", "params": { "x": 1 } }));
    let start = std::time::Instant::now();
    while !fs::read_to_string(&book).unwrap_or_default().contains("notifications/custom") {
        assert!(start.elapsed().as_secs() < 20, "it was never heard");
        std::thread::yield_now();
    }
}

#[test]
fn what_others_could_have_written_is_not_believed() {
    let home = Home::new("others");
    home.known("");
    let folder = home.path().join("linetender/servers");
    // A pipe in the key's place would keep it waiting for whoever writes into that.
    fs::remove_file(folder.join("key")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.join("key")).status().unwrap();
    assert!(made.success());
    let mut agent = home.bad("").greeted();
    agent.call(&json!(1), "echo", &json!({}));
}

#[test]
fn a_known_server_that_may_stop_when_idle_starts_with_the_first_call() {
    let home = Home::new("lazy");
    let started = home.path().join("started");
    let does = format!("touch '{}'; {}", started.display(), bad(""));
    let flags = ["--idle-stop", "10m"];
    let mut first = home.agent_with(&flags, &does).greeted();
    first.call(&json!(1), "echo", &json!({}));
    home.pages(1);
    drop(first);
    fs::remove_file(&started).unwrap();

    let mut agent = home.agent_with(&flags, &does).greeted();
    assert!(names(&agent.ask(&json!(1), "tools/list", &json!({}))).contains(&"echo"));
    assert!(!started.exists(), "nobody has used it");
    let answer = agent.call(&json!(2), "echo", &json!({ "n": 1 }));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#);
    assert!(started.exists());
}
