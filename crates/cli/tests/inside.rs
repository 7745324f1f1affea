//! `linetender inside`, as an agent uses it: behind `linetender run`, which supervises it.

#![allow(clippy::disallowed_methods, reason = "a test has its own environment and clock")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Agent {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: std::path::PathBuf,
}

impl Agent {
    fn start(name: &str, more: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-inside-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let linetender = env!("CARGO_BIN_EXE_linetender");
        let mut child = Command::new(linetender)
            .args(["run", "--name", "self", "--", linetender, "inside"])
            .args(more)
            .env_clear()
            .env("HOME", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut agent = Self { child, to, from, folder };
        let client = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        assert_eq!(agent.ask("initialize", &hello)["result"]["serverInfo"]["name"], "linetender");
        agent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        writeln!(self.to, "{message}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "it ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == method {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].take()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn an_agent_sees_its_servers_and_restarts_one() {
    let mut agent = Agent::start("acts", &[]);
    let said = agent.call("server_status", &json!({}));
    assert!(said["content"][0]["text"].as_str().unwrap().starts_with("self: up for "), "{said}");
    let unknown = agent.call("server_status", &json!({ "server": "other" }));
    assert!(unknown["isError"] == true && unknown.to_string().contains("there are: self"), "{unknown}");
    let calls = agent.call("calls_in_progress", &json!({}));
    assert!(calls.to_string().contains("calls_in_progress"), "this call itself: {calls}");
    let read = agent.ask("resources/read", &json!({ "uri": "linetender://status" }));
    let report: Value =
        serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(report["lines"][0]["state"], "up", "{report}");
    assert!(report["servers"][0]["tool_calls"]["answered"].as_u64().unwrap() >= 2, "{report}");
    // It restarts itself: its answer is lost with it, and the next call finds a new one.
    let redialled = agent.call("server_redial", &json!({ "server": "self" }));
    assert!(redialled["isError"] == true && redialled.to_string().contains("unknown"), "{redialled}");
    let said = agent.ask("resources/read", &json!({ "uri": "linetender://status" })).to_string();
    assert!(said.contains(r#"\"generation\":2"#), "{said}");
}

#[test]
fn one_that_may_only_look_offers_nothing_else() {
    let mut agent = Agent::start("looks", &["--read-only"]);
    let tools = agent.ask("tools/list", &json!({})).to_string();
    assert!(tools.contains("server_status") && !tools.contains("server_redial"), "{tools}");
    let refused =
        agent.ask("tools/call", &json!({ "name": "server_redial", "arguments": { "server": "self" } }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
