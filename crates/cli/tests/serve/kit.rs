//! A gateway's home, and an agent on its stdin and stdout.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

/// Longer than anything here may take, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait before one looks again.
const GLANCE: Duration = Duration::from_millis(5);

/// A folder of the test's own, gone with it. The config has one to itself: it is watched.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str, config: &str) -> Self {
        let home = Self(std::env::temp_dir().join(format!("linetender-serve-{}-{name}", std::process::id())));
        std::fs::create_dir_all(home.config().parent().unwrap()).unwrap();
        home.write(config);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.0.join("etc/linetender.toml")
    }

    /// Puts this into the config, where a line `{bad}` stands for a server, and what comes behind it for its flags.
    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.config(), with_servers(config)).unwrap();
    }

    /// Nothing that is written down here is to stand among what happened to the user's own servers.
    pub(crate) fn linetender(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LINETENDER);
        command
            .args(words)
            .env("HOME", &self.0)
            .env("XDG_STATE_HOME", &self.0)
            .env("XDG_RUNTIME_DIR", &self.0);
        command
    }

    /// `linetender serve` on this config, to be told how.
    pub(crate) fn serve(&self, words: &[&str]) -> Command {
        let mut command = self.linetender(&["serve", "--config"]);
        command.arg(self.config()).args(words);
        command
    }

    /// An agent that has been greeted. The log is kept.
    pub(crate) fn agent(&self) -> Agent {
        let mut serve = self.serve(&["--stdio", "--log"]);
        serve.arg(self.0.join("log")).stderr(Stdio::null());
        Agent::of(&mut serve).greeted()
    }

    /// A gateway that listens, and where.
    pub(crate) fn listens(&self) -> (Serves, String) {
        self.listens_beside("log")
    }

    /// The same, with a log of this name.
    pub(crate) fn listens_beside(&self, log: &str) -> (Serves, String) {
        let mut serve = self.serve(&["--listen", "127.0.0.1:0", "--log"]);
        let serves = Serves(serve.arg(self.0.join(log)).stdin(Stdio::null()).spawn().unwrap());
        let said = until("an address", || {
            self.log_of(log).lines().find(|line| line.contains("serving address=http://")).map(str::to_owned)
        });
        let address = said.split("http://").nth(1).unwrap().trim_end_matches("/mcp");
        (serves, address.to_owned())
    }

    pub(crate) fn log(&self) -> String {
        self.log_of("log")
    }

    pub(crate) fn log_of(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// Everything that was written down, oldest first.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.join("linetender/journal.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What `linetender status` says of a server of this gateway.
    pub(crate) fn status(&self, serves: &Serves, server: &str) -> Value {
        let output = self.linetender(&["status", "--json"]).output().unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |list: &Value, is: &dyn Fn(&Value) -> bool| {
            let found = list.as_array().and_then(|list| list.iter().find(|one| is(one)).cloned());
            found.unwrap_or_else(|| panic!("{all}"))
        };
        let holder = of(&all["holders"], &|holder| holder["pid"] == serves.0.id());
        of(&holder["report"]["lines"], &|line| line["server"] == server)
    }

    /// These words are in the log so often, and not more often. The log is written a moment after what it tells of.
    pub(crate) fn wait_for_count(&self, words: &str, count: usize) {
        until(&format!("{count} of: {words}"), || (self.log().matches(words).count() >= count).then_some(()));
        assert_eq!(self.log().matches(words).count(), count, "{}", self.log());
    }

    /// The first line of the log that has these words, as soon as there is one.
    pub(crate) fn wait_for_log(&self, words: &str) -> String {
        let what = || format!("a log with: {words}\n{}", self.log());
        until_named(&what, || self.log().lines().find(|line| line.contains(words)).map(str::to_owned))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A config with a server in the place of each `{bad}`.
pub(crate) fn with_servers(config: &str) -> String {
    let server = |flags: &str| {
        let flags: Vec<_> = flags.split_ascii_whitespace().map(|flag| format!(", '{flag}'")).collect();
        format!("command = '{LINETENDER}'\nargs = ['__badserver'{}]", flags.concat())
    };
    let line = |line: &str| line.strip_prefix("{bad}").map_or_else(|| line.to_owned(), server) + "\n";
    config.lines().map(line).collect()
}

/// It runs. Dropped, it is killed.
pub(crate) struct Serves(pub(crate) Child);

impl Serves {
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("an end", || self.0.try_wait().unwrap())
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent on stdin and stdout.
pub(crate) struct Agent {
    pub(crate) serves: Serves,
    pub(crate) to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Agent {
    pub(crate) fn of(serve: &mut Command) -> Self {
        let mut serves = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (serves.stdin.take(), BufReader::new(serves.stdout.take().unwrap()));
        Self { serves: Serves(serves), to, from }
    }

    pub(crate) fn greeted(mut self) -> Self {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        assert_eq!(self.ask("initialize", &hello)["result"]["serverInfo"]["name"], "linetender");
        self
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.to.as_mut().unwrap(), "{question}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the agent's pipe was closed");
            let heard: Value = serde_json::from_str(&line).unwrap();
            if heard["id"] == 1 {
                return heard;
            }
        }
    }

    /// It asks nothing any more; how that ended.
    pub(crate) fn leaves(&mut self) -> ExitStatus {
        self.to = None;
        self.serves.ended()
    }

    /// Nobody hears any more either; how that ended.
    pub(crate) fn vanishes(self) -> ExitStatus {
        let Self { mut serves, to, from } = self;
        drop((to, from));
        serves.ended()
    }

    /// Calls a tool until its answer is as wanted.
    pub(crate) fn wait_for(&mut self, tool: &str, wanted: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": {} }));
            if answer["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains(wanted)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{answer}");
            std::thread::park_timeout(GLANCE);
        }
    }
}

/// What this finds, as soon as it finds it.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_named(&|| what.to_owned(), look)
}

/// The same, where it is said at the end what was waited for.
fn until_named<T>(what: &dyn Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "in {PATIENCE:?} there was never {}", what());
        std::thread::park_timeout(GLANCE);
    }
}
