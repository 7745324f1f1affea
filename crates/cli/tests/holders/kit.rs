//! A user's home, the shims in it, and an agent on each.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// A home of the test's own, gone with it.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lt-home-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.0.join(".local/state/linetender")
    }

    /// `linetender`, as it would be run by an agent that hands on few variables.
    pub(crate) fn linetender(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LINETENDER);
        command.args(words).env_clear().env("HOME", &self.0).env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.linetender(words).stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_slice(&self.run(&["status", "--json"]).stdout).unwrap()
    }

    /// Everything that was written down, oldest first. All of it must be readable.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let output = self.run(&["journal", "--json", "--last", "100000"]);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A shim in front of a badserver, and an agent that has been greeted.
    pub(crate) fn shim(&self, flags: &[&str], server: &[&str]) -> Shim {
        Shim::start(self.linetender(&[]), flags, server).greeted()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Shim {
    pub(crate) process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Shim {
    pub(crate) fn start(mut linetender: Command, flags: &[&str], server: &[&str]) -> Self {
        linetender.args(["run", "--name", "bad"]).args(flags);
        linetender.args(["--", LINETENDER, "__badserver", "--era", "legacy"]).args(server);
        Self::spawned(linetender)
    }

    fn spawned(mut linetender: Command) -> Self {
        let mut process =
            linetender.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (to, from) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, to, from }
    }

    /// A shim in front of what a shell makes of this.
    pub(crate) fn start_script(mut linetender: Command, script: &str) -> Self {
        linetender.args(["run", "--name", "bad", "--", "sh", "-c", script]);
        Self::spawned(linetender)
    }

    pub(crate) fn greeted(mut self) -> Self {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = self.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "badserver", "{answer}");
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.to.as_mut().unwrap(), "{message}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the agent's pipe was closed");
            let heard: Value = serde_json::from_str(&line).unwrap();
            if heard["id"] == 1 {
                return heard;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The server dies of it, and is back when this returns.
    pub(crate) fn kill_server(&mut self) {
        let answer = self.call("kill", &json!({}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        self.echo();
    }

    pub(crate) fn echo(&mut self) {
        let answer = self.call("echo", &json!({ "n": 1 }));
        assert!(answer["result"]["isError"].is_null(), "{answer}");
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// The agent goes; what the shim said on stderr.
    pub(crate) fn leave(mut self) -> String {
        self.to = None;
        assert!(self.process.wait().unwrap().success());
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until this is so, and not for ever.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
