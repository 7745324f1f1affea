//! An agent that does everything by hand.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub(crate) const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// The shim, and both of its pipes.
pub(crate) struct Agent {
    pub(crate) shim: Child,
    pub(crate) to: Option<ChildStdin>,
    pub(crate) from: BufReader<ChildStdout>,
}

impl Agent {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::of(LINETENDER, flags)
    }

    pub(crate) fn of(linetender: &str, flags: &[&str]) -> Self {
        let server = ["--", LINETENDER, "__badserver", "--era", "legacy"];
        Self::run(linetender, server.iter().chain(flags))
    }

    pub(crate) fn run<'a>(linetender: &str, words: impl Iterator<Item = &'a &'a str>) -> Self {
        let mut shim = Command::new(linetender);
        // What it writes down is not to stand among what happened to the user's own servers.
        let elsewhere = std::env::temp_dir().join("linetender-tests");
        let shim = shim.env("XDG_STATE_HOME", &elsewhere).env("XDG_RUNTIME_DIR", &elsewhere);
        Self::of_command(shim.args(["run", "--no-memory", "--name", "bad"]).args(words))
    }

    /// One whose things are kept in this folder.
    pub(crate) fn at_home(home: &Path, words: &[&str]) -> Self {
        let mut shim = Command::new(LINETENDER);
        let shim = shim.env("XDG_CACHE_HOME", home).env("XDG_STATE_HOME", home).env("XDG_RUNTIME_DIR", home);
        Self::of_command(shim.args(["run", "--name", "bad"]).args(words))
    }

    pub(crate) fn of_command(shim: &mut Command) -> Self {
        let shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shim = shim.spawn().unwrap();
        let (to, from) = (shim.stdin.take(), BufReader::new(shim.stdout.take().unwrap()));
        Self { shim, to, from }
    }

    pub(crate) fn up(flags: &[&str]) -> Self {
        Self::start(flags).greeted()
    }

    pub(crate) fn greeted(self) -> Self {
        let mut agent = self;
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = agent.ask(&json!("hello"), "initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "badserver", "{answer}");
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn send(&mut self, id: &Value, method: &str, params: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// The next message. Everything on stdout is one.
    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.from.read_line(&mut line).unwrap() > 0, "the agent's pipe was closed");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"))
    }

    /// The answer to this id; notifications before it are passed over.
    pub(crate) fn ask(&mut self, id: &Value, method: &str, params: &Value) -> Value {
        self.send(id, method, params);
        loop {
            let heard = self.hear();
            if heard.get("id") == Some(id) {
                return heard;
            }
        }
    }

    pub(crate) fn call(&mut self, id: &Value, tool: &str, arguments: &Value) -> Value {
        self.ask(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.shim.kill();
        let _ = self.shim.wait();
    }
}
