//! A shim in front of a server that fails, with a journal of its own, and what `why` says of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, LINETENDER};

/// Short times, so that no test waits for long; and few restarts.
pub(crate) const POLICY: &str = "\
state = 'none'
probe = { keepalive = 400, timeout = 200, over_http = true }
call = { abandoned_after = 1000 }
dial = { start = 1200, handshake = 800 }
budget = { tokens = 3 }
park = { wake = 100, wake_cap = 400 }
";

/// Longer than anything here takes, on any machine.
const MOST: Duration = Duration::from_secs(30);

/// A folder of the test's own.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lt-why-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn linetender(&self) -> Command {
        let mut command = Command::new(LINETENDER);
        command.env("XDG_STATE_HOME", &self.0).env("XDG_RUNTIME_DIR", &self.0).env("HOME", &self.0);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.linetender().args(words).output().unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The shim, its agent, and its folder.
pub(crate) struct Shim {
    pub(crate) agent: Agent,
    pub(crate) dir: Dir,
}

impl Shim {
    /// In front of what these words name. The agent has said hello and waits for nothing.
    pub(crate) fn start(words: &[&str]) -> Self {
        let dir = Dir::new();
        let policy = dir.path().join("policy.toml");
        std::fs::write(&policy, POLICY).unwrap();
        let mut shim = dir.linetender();
        shim.args(["run", "--no-memory", "--name", "bad", "--era", "legacy", "--policy"]).arg(&policy);
        let mut agent = Agent::of_command(shim.args(words).current_dir(dir.path()));
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        agent.send(&json!("hello"), "initialize", &hello);
        Self { agent, dir }
    }

    /// In front of a shell that does this; `$@` is the badserver, with these flags.
    pub(crate) fn script(script: &str, flags: &[&str]) -> Self {
        let server = ["--", "sh", "-c", script, "sh", LINETENDER, "__badserver", "--era", "legacy"];
        Self::start(&[&server, flags].concat())
    }

    /// In front of a badserver that has answered a call.
    pub(crate) fn works(words: &[&str]) -> Self {
        let mut shim = Self::start(words);
        while shim.agent.hear()["id"] != "hello" {}
        shim.agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        shim.echo();
        shim
    }

    pub(crate) fn echo(&mut self) {
        let answer = self.agent.call(&json!("echo"), "echo", &json!({}));
        assert!(answer["result"]["isError"].is_null() && answer["error"].is_null(), "{answer}");
    }

    /// A call that nobody waits for.
    pub(crate) fn begin(&mut self, id: &str, tool: &str, arguments: &Value) {
        self.agent.send(&json!(id), "tools/call", &json!({ "name": tool, "arguments": arguments }));
    }

    /// The agent gives up on it.
    pub(crate) fn cancel(&mut self, id: &str) {
        self.agent.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        );
    }

    /// What `status` says of the server.
    pub(crate) fn line(&self) -> Value {
        let status = self.dir.run(&["status", "--json"]).stdout;
        let status: Value = serde_json::from_slice(&status).unwrap();
        status.pointer("/holders/0/report/lines/0").cloned().unwrap_or_default()
    }

    pub(crate) fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let line = self.line();
            if so(&line) {
                return line;
            }
            assert!(begin.elapsed() < MOST, "in vain: {what}: {line}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn parked(self) -> Self {
        self.until("parked", |line| line["state"] == "parked");
        self
    }

    pub(crate) fn needs_auth(self) -> Self {
        self.until("needs-auth", |line| line["state"] == "needs-auth");
        self
    }

    /// Another generation serves.
    pub(crate) fn back(self) -> Self {
        self.until("back", |line| {
            line["state"] == "up" && line["generation"].as_u64() > Some(1) && !line["cause"].is_null()
        });
        self
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.until("the server's process", |line| !line["pid"].is_null())["pid"].to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// What `why` says, without what differs from run to run.
    pub(crate) fn why(&self) -> String {
        let output = self.dir.run(&["why", "bad"]);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().unwrap();
        let text = text.replace(LINETENDER, "linetender").replace(self.dir.path().to_str().unwrap(), "HOME");
        format!("{}(exit code {code})", text.lines().map(|line| steady(line) + "\n").collect::<String>())
    }
}

/// Times, spans, process ids, ports and search paths differ from run to run; the words do not.
fn steady(line: &str) -> String {
    let line = between(line, "(PATH searched: ", ")", "PATH");
    let words: Vec<_> = line.split(' ').collect();
    let shown = words.iter().enumerate().map(|(at, word)| {
        let next = words.get(at + 1).map_or("", |next| next.trim_end_matches(['.', ',', ';', ')', ':']));
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let number = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        if number && ["ms", "s", "min", "h"].contains(&next) {
            // A span of two units is one.
            return "N".to_owned();
        }
        if ["ms", "s", "min", "h"].contains(&word.trim_end_matches(['.', ',', ';', ')', ':']))
            && before.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
        {
            return word.replace("min", "s").replace("ms", "s").replace('h', "s");
        }
        match word {
            word if word.len() == 10 && word.starts_with("20") && word.matches('-').count() == 2 => {
                "DATE".to_owned()
            }
            word if word.len() == 8 && word.matches(':').count() == 2 => "TIME".to_owned(),
            _ => port(word),
        }
    });
    // Which of the two it is depends on how long this machine took.
    shown.collect::<Vec<_>>().join(" ").replace("the first call after N s", "the next call")
}

fn port(word: &str) -> String {
    match word.find("127.0.0.1:").map(|at| at + "127.0.0.1:".len()) {
        Some(at) => {
            let rest = word[at..].trim_start_matches(|letter: char| letter.is_ascii_digit());
            format!("{}PORT{rest}", &word[..at])
        }
        None => word.to_owned(),
    }
}

fn between(text: &str, from: &str, to: &str, mark: &str) -> String {
    let found = text.find(from).map(|at| at + from.len());
    match found.and_then(|at| Some((at, at + text[at..].find(to)?))) {
        Some((at, end)) => format!("{}{mark}{}", &text[..at], &text[end..]),
        None => text.to_owned(),
    }
}
