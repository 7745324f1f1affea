//! What is printed while it happens, and the form of the log.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Home, LINETENDER, Shim};

/// A command that goes on, and what it prints.
pub(crate) struct Follows(Child, Receiver<String>);

impl Follows {
    pub(crate) fn start(home: &Home, words: &[&str]) -> Self {
        let mut command = home.linetender(words);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, told) = channel();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self(process, told)
    }

    /// Whether it has printed something since.
    pub(crate) fn has_some(&self) -> bool {
        self.1.try_iter().count() > 0
    }

    pub(crate) fn until(&self, words: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains(words)) {
            match self.1.recv_timeout(Duration::from_secs(20)) {
                Ok(line) => seen.push(line),
                Err(error) => panic!("{error}: {words}: {seen:#?}"),
            }
        }
        seen
    }
}

impl Drop for Follows {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_journal_is_followed_from_before_it_exists_and_over_files_that_are_put_away() {
    let home = Home::new();
    let journal = Follows::start(&home, &["journal", "-f", "--json"]);
    let logs = Follows::start(&home, &["logs", "bad", "-f"]);
    let mut shim = home.shim(&["--journal-size", "2k"], &["--stderr", "about to work"]);
    for _ in 0..4 {
        shim.kill_server();
    }
    shim.leave();
    let seen = journal.until(r#""what":"end""#);
    assert!(home.state().join("journal.1.jsonl").exists(), "it was put away");
    let ends: Vec<_> = seen
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|entry| entry["state"] == "ending" && entry["cause"]["leaves"] == json!(["exit"]))
        .map(|entry| entry["generation"].as_u64().unwrap())
        .collect();
    assert_eq!(ends, [1, 2, 3, 4], "each once: {seen:#?}");
    let seen = logs.until("bad #4  about to work");
    assert_eq!(seen.len(), 4, "each end once: {seen:#?}");
}

#[test]
fn the_stderr_of_a_server_that_ended_is_shown_with_its_generation() {
    let home = Home::new();
    let mut shim = home.shim(&[], &["--stderr", "about to \u{1b}[31mwork"]);
    shim.kill_server();
    shim.kill_server();
    shim.leave();
    let shown = String::from_utf8(home.run(&["logs", "bad"]).stdout).unwrap();
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(lines[0].contains("bad #1  about to") && lines[1].contains("bad #2  about to"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let last = home.run(&["logs", "bad", "--last", "1", "--json"]);
    let line: Value = serde_json::from_slice(&last.stdout).unwrap();
    assert_eq!(line["generation"], 2, "{line}");
    let none = String::from_utf8(home.run(&["logs", "nobody"]).stdout).unwrap();
    assert!(none.starts_with("The journal has no stderr of server nobody."), "{none}");
}

/// What a shim logs while its server is killed.
fn logged(variables: &[(&str, &str)], flags: &[&str]) -> String {
    let home = Home::new();
    let mut command = home.linetender(&[]);
    command.envs(variables.iter().copied());
    let flags: Vec<_> = flags.iter().copied().chain(["--stderr", "off"]).collect();
    let mut shim = Shim::start(command, &flags, &[]).greeted();
    shim.kill_server();
    shim.leave()
}

#[test]
fn the_log_is_json_and_as_long_as_was_asked_for() {
    let json = logged(&[("LINETENDER_LOG_FORMAT", "json")], &[]);
    assert!(json.contains("SIGKILL"), "{json}");
    for line in json.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
    assert!(logged(&[], &[]).contains(" INFO "));
    assert_eq!(logged(&[("LINETENDER_LOG", "off")], &[]), "");
    let flag = logged(&[("LINETENDER_LOG", "off")], &["--log-level", "info"]);
    assert!(flag.contains(" INFO "), "a flag comes before a variable: {flag}");
    let wrong = Home::new().run(&["run", "--log-level", "loud", "--", LINETENDER, "__badserver"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("expected off, error, warn, info"));
}
