//! A shim that was opened: its process and both of its pipes.

#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

use std::io::{BufRead as _, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::now;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench-shims","version":"1"}}}"#;
const WELCOME: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(super) struct Program {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    started: Instant,
    calls: u64,
    line: String,
}

impl Program {
    pub(super) fn start(command: &[String]) -> Result<Self, String> {
        let (program, words) = command.split_first().ok_or("a shim without a command")?;
        let started = now();
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (to, from) = to.zip(from).ok_or("a process without pipes")?;
        Ok(Self { child, to, from: BufReader::new(from), started, calls: 0, line: String::new() })
    }

    pub(super) fn hello(mut self) -> Result<Self, String> {
        self.say(HELLO)?;
        Ok(self)
    }

    pub(super) fn welcome(mut self) -> Result<Self, String> {
        self.hear(r#""hello""#)?;
        self.say(WELCOME)?;
        Ok(self)
    }

    /// Greets it. How long it took from its start until it had answered.
    pub(super) fn greeted(self) -> Result<(Self, Duration), String> {
        let mut open = self.hello()?;
        open.hear(r#""hello""#)?;
        let took = open.started.elapsed();
        open.say(WELCOME)?;
        Ok((open, took))
    }

    /// One call, and how long it took.
    pub(super) fn call(&mut self) -> Result<Duration, String> {
        self.calls += 1;
        let id = self.calls.to_string();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"hello"}}}}}}"#
        );
        let start = now();
        self.say(&text)?;
        self.hear(&id)?;
        let took = start.elapsed();
        if self.line.contains(r#""error""#) || self.line.contains(r#""isError":true"#) {
            return Err(format!("a call failed: {}", self.line));
        }
        Ok(took)
    }

    /// Its resident memory in KiB and its threads.
    pub(super) fn at_rest(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        (number("VmRSS:"), number("Threads:"))
    }

    /// Closes its input and waits until it is gone.
    pub(super) fn end(mut self) -> Result<(), String> {
        drop(self.to);
        let _ = self.from.read_to_end(&mut Vec::new());
        self.child.wait().map(drop).map_err(|error| error.to_string())
    }

    fn say(&mut self, text: &str) -> Result<(), String> {
        // One write: a client that writes a message in two would measure itself.
        self.to.write_all(format!("{text}\n").as_bytes()).map_err(|error| error.to_string())
    }

    /// Reads until the answer to this id; it is in `line` then.
    fn hear(&mut self, id: &str) -> Result<(), String> {
        let here = format!(r#""id":{id}"#);
        loop {
            self.line.clear();
            if self.from.read_line(&mut self.line).map_err(|error| error.to_string())? == 0 {
                return Err("the shim closed its output".into());
            }
            // Nearly always it is spelt like this; if not, it is looked at properly.
            if self.line.contains(&here) || self.answers(id) {
                return Ok(());
            }
        }
    }

    fn answers(&self, id: &str) -> bool {
        let read = |text| serde_json::from_str::<Value>(text).ok();
        read(&self.line).and_then(|heard| heard.get("id").cloned()) == read(id)
    }
}

/// Runs a command and copies both pipes, each by a thread of its own.
pub(super) fn copy(command: &[&str]) -> Result<(), String> {
    let (program, words) = command.split_first().ok_or("copy what?")?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let (to, from) = (child.stdin.take(), child.stdout.take());
    let (to, from) = to.zip(from).ok_or("a process without pipes")?;
    std::thread::spawn(move || pour(std::io::stdin(), to));
    pour(from, std::io::stdout());
    child.wait().map(drop).map_err(|error| error.to_string())
}

/// What can be read is written at once.
fn pour(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
