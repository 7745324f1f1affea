//! A user's home, and a person in it who logs in.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, LINETENDER};
use crate::browser::visit;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long to wait before one looks again.
const GLANCE: Duration = Duration::from_millis(20);

/// A folder of the test's own, gone with it.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-auth-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// `linetender` with few variables, as agents start it.
    pub(crate) fn linetender(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LINETENDER);
        command.args(words).env_clear().env("HOME", &self.0).env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null()).current_dir(&self.0);
        command
    }

    pub(crate) fn output(&self, words: &[&str]) -> Output {
        self.linetender(words).output().unwrap()
    }

    /// What such a command prints; it has to succeed.
    pub(crate) fn prints(&self, words: &[&str]) -> String {
        let output = self.output(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// `linetender login --paste`, by a person with a browser on another machine. What it said, on stderr and on stdout.
    pub(crate) fn login(&self, words: &[&str]) -> (String, String) {
        let mut command = self.linetender(&["login", "--paste"]);
        let command = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut login = command.spawn().unwrap();
        let mut stderr = BufReader::new(login.stderr.take().unwrap());
        let (mut said, mut url) = (String::new(), None);
        let back = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            said += &line;
            if let Some(address) = line.strip_prefix("  http") {
                url = Some(format!("http{}", address.trim_end()));
            }
            if let Some((_, back)) = line.split_once("begins with ") {
                break back.trim_end().trim_end_matches('.').to_owned();
            }
        };
        let redirected = visit(&url.expect("an address to visit"), &back);
        writeln!(login.stdin.take().unwrap(), "{redirected}").unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let output = login.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?} {said}");
        (said, String::from_utf8(output.stdout).unwrap())
    }

    /// An agent on a shim for this URL.
    pub(crate) fn shim(&self, url: &str) -> Agent {
        let log = self.0.join("shim-log");
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
        let mut command = self.linetender(&["run", "--no-memory", "--name", "protected", url]);
        Agent::with_stderr(&mut command, file).begun()
    }

    /// An agent on a gateway with this config file, where it is when nobody says where.
    pub(crate) fn gateway(&self, config: &str) -> Agent {
        self.gateway_by(".config/linetender/linetender.toml", config)
    }

    /// The same, with the file at this place.
    pub(crate) fn gateway_by(&self, place: &str, config: &str) -> Agent {
        let path = self.write(place, config);
        let mut command = self.linetender(&["serve", "--stdio", "--log"]);
        command.arg(self.0.join("gateway-log")).arg("--config").arg(path);
        Agent::of_command(&mut command).begun()
    }

    pub(crate) fn at(&self, place: &str) -> PathBuf {
        self.0.join(place)
    }

    /// Writes a file of this user's.
    pub(crate) fn write(&self, place: &str, text: &str) -> PathBuf {
        let path = self.at(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn file(&self, place: &str) -> String {
        std::fs::read_to_string(self.at(place)).unwrap_or_default()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a call of a tool came to: its text, and whether it failed.
pub(crate) fn call(agent: &mut Agent, tool: &str) -> (String, bool) {
    let answer = agent.call(&json!("call"), tool, &json!({ "say": "hello" }));
    let text = answer["result"]["content"][0]["text"].as_str().map(str::to_owned);
    let failed = answer["result"]["isError"] == true || text.is_none();
    (text.unwrap_or_else(|| answer.to_string()), failed)
}

/// How long it took until this was so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> Result<(), String>) -> Duration {
    let begun = Instant::now();
    loop {
        match so() {
            Ok(()) => return begun.elapsed(),
            Err(why) => assert!(begun.elapsed() < PATIENCE, "never {what}: {why}"),
        }
        std::thread::sleep(GLANCE);
    }
}

/// All lines of `linetender status --json`.
pub(crate) fn lines(home: &Home) -> Vec<Value> {
    let status: Value = serde_json::from_str(&home.prints(&["status", "--json"])).unwrap();
    let holders = status["holders"].as_array().cloned().unwrap_or_default();
    holders
        .iter()
        .flat_map(|holder| holder["report"]["lines"].as_array().cloned().unwrap_or_default())
        .collect()
}
