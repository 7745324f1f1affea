//! `linetender serve` as a person and a service manager see it.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A config file of its own.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linetender-serve-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = Self(folder.join("linetender.toml"));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        let text = text.replace("{bad}", &format!("command = '{LINETENDER}'\nargs = ['__badserver']"));
        std::fs::write(&self.0, text).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// An agent on stdin and stdout.
struct Agent {
    serves: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Agent {
    fn of(file: &File) -> Self {
        let mut serves = Command::new(LINETENDER)
            .args(["serve", "--stdio", "--config"])
            .arg(&file.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (serves.stdin.take().unwrap(), BufReader::new(serves.stdout.take().unwrap()));
        let mut agent = Self { serves, to, from };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        assert_eq!(agent.ask("initialize", &hello)["result"]["serverInfo"]["name"], "linetender");
        agent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        writeln!(self.to, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the agent's pipe was closed");
            let heard: Value = serde_json::from_str(&line).unwrap();
            if heard["id"] == 1 {
                return heard;
            }
        }
    }

    /// Calls a tool until its answer is as wanted.
    fn wait_for(&mut self, tool: &str, wanted: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": {} }));
            if answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains(wanted)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{answer}");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.serves.kill();
        let _ = self.serves.wait();
    }
}

#[test]
fn a_broken_file_is_shown_with_its_place() {
    let file = File::new("broken", "[servers.a]\n{bad}\nenv = { KEY = \"${NO_SUCH_VARIABLE}\" }\n");
    let output = Command::new(LINETENDER).args(["serve", "--config"]).arg(&file.0).output().unwrap();
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("NO_SUCH_VARIABLE is not set"), "{words}");
    assert!(words.contains("linetender.toml:4:"), "it says where: {words}");
}

#[test]
fn a_file_that_changes_is_read_again_and_a_broken_one_changes_nothing() {
    let file = File::new("reload", "[servers.a]\n{bad}\n");
    let mut agent = Agent::of(&file);
    agent.wait_for("a__echo", "{}");
    agent.wait_for("b__echo", "the servers are: a");
    file.write("[servers.a]\n{bad}\n[servers.b]\n{bad}\n");
    agent.wait_for("b__echo", "{}");
    file.write("[servers.a\n");
    file.write("[servers.a]\n{bad}\n[servers.c]\n{bad}\n");
    agent.wait_for("c__echo", "{}");
    agent.wait_for("b__echo", "the servers are: a, c");
}

#[test]
fn told_to_stop_it_ends_well() {
    let file = File::new("stop", "[servers.a]\n{bad}\n");
    let mut agent = Agent::of(&file);
    agent.wait_for("a__echo", "{}");
    let pid = agent.serves.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = agent.serves.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
}

/// Processes with this word in their command line.
fn processes(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|words| words.contains(word))
    })
    .count()
}

#[test]
fn killed_it_leaves_no_server_behind() {
    let mark = format!("/nowhere/linetender-killed-{}", std::process::id());
    let file = File::new("killed", "[servers.a]\n{bad}\nenv = {}\n");
    let text = std::fs::read_to_string(&file.0).unwrap();
    std::fs::write(
        &file.0,
        text.replace("['__badserver']", &format!("['__badserver', '--changing', '{mark}']")),
    )
    .unwrap();
    let mut agent = Agent::of(&file);
    agent.wait_for("a__echo", "{}");
    assert!(processes(&mark) > 0);
    agent.serves.kill().unwrap();
    agent.serves.wait().unwrap();
    let killed = Instant::now();
    while processes(&mark) > 0 {
        assert!(killed.elapsed() < PATIENCE, "it is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
}

#[test]
fn an_agent_that_stops_asking_still_hears_its_answers() {
    let file = File::new("eof", "[servers.a]\n{bad}\n");
    let mut serves = Command::new(LINETENDER)
        .args(["serve", "--stdio", "--config"])
        .arg(&file.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = serves.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {} } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a__sleep", "arguments": { "ms": 300 } } });
    writeln!(to, "{hello}").unwrap();
    // Without its line break, as some pipes end.
    write!(to, "{call}").unwrap();
    drop(to);
    let output = serves.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().any(|line| line.contains("\"id\":1") && line.contains("\"result\"")), "{said}");
    assert!(output.status.success());
}
