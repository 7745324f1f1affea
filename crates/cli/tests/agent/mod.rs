//! An agent that does everything by hand.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// A shim that says nothing for this long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Lines that lie here until the agent looks; when there are more, it is an agent that does not read.
const UNREAD: usize = 1024;

/// The shim, and both of its pipes. What it says is read in a thread, so that no test waits for ever.
pub(crate) struct Agent {
    pub(crate) shim: Child,
    pub(crate) to: Option<ChildStdin>,
    pub(crate) from: Receiver<String>,
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
        Self::with_stderr(shim, Stdio::null())
    }

    pub(crate) fn with_stderr(shim: &mut Command, stderr: impl Into<Stdio>) -> Self {
        let shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut shim = shim.spawn().unwrap();
        let (to, from) = (shim.stdin.take(), lines(shim.stdout.take().unwrap()));
        Self { shim, to, from }
    }

    pub(crate) fn up(flags: &[&str]) -> Self {
        Self::start(flags).greeted()
    }

    pub(crate) fn greeted(self) -> Self {
        let (agent, answer) = self.greets();
        assert_eq!(answer["result"]["serverInfo"]["name"], "badserver", "{answer}");
        agent
    }

    /// Whoever answers.
    pub(crate) fn begun(self) -> Self {
        self.greets().0
    }

    fn greets(mut self) -> (Self, Value) {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = self.ask(&json!("hello"), "initialize", &hello);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        (self, answer)
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn send(&mut self, id: &Value, method: &str, params: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// The next message. Everything on stdout is one.
    pub(crate) fn hear(&mut self) -> Value {
        let line = self.hear_text();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"))
    }

    /// The next message, as it was spelt.
    pub(crate) fn hear_text(&mut self) -> String {
        match self.from.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => panic!("the agent's pipe was closed"),
            Err(RecvTimeoutError::Timeout) => panic!("nothing was heard for {PATIENCE:?}"),
        }
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

/// What comes out of a pipe, line by line, until it is closed.
fn lines(pipe: ChildStdout) -> Receiver<String> {
    let (tell, told) = sync_channel(UNREAD);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.shim.kill();
        let _ = self.shim.wait();
    }
}
