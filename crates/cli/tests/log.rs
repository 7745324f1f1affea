//! S27: whoever reads the log may be gone, may never read, or may have a full disk. The agent notices nothing of it.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

mod agent;

use std::io::{BufRead as _, BufReader, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agent::{Agent, LINETENDER, PATIENCE};
use rustix::fs::{OFlags, fcntl_getfl};
use serde_json::json;

/// As many bytes as an unread pipe takes.
const FULL: usize = 64 * 1024;

/// A shim whose stderr is this, and what it logs.
fn shim(stderr: impl Into<Stdio>, flags: &[&str]) -> Agent {
    let mut shim = Command::new(LINETENDER);
    shim.args(["run", "--no-memory", "--no-journal", "--stateless", "--name", "bad"]).args(flags);
    shim.args(["--", LINETENDER, "__badserver", "--era", "legacy"]);
    Agent::with_stderr(&mut shim, stderr).greeted()
}

/// The server dies under a call; the call is told, the next one is served, and a polite end is a good one.
fn serves_through_deaths(mut agent: Agent) {
    for death in 0..3 {
        let told = agent.call(&json!(format!("kill {death}")), "kill", &json!({}));
        assert_eq!(told["result"]["_meta"]["linetender"]["delivery"], "unknown", "{told}");
        let served = agent.call(&json!(death), "echo", &json!({ "death": death }));
        assert!(served["result"]["isError"].is_null(), "{served}");
    }
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
}

/// A pipe that takes nothing more; its reader lives and does not read.
fn full() -> (std::io::PipeReader, PipeWriter) {
    let (from, mut to) = std::io::pipe().unwrap();
    to.write_all(&vec![b'x'; FULL]).unwrap();
    (from, to)
}

#[test]
fn s27_stderr_whose_reader_is_gone_disturbs_no_call() {
    let (from, to) = std::io::pipe().unwrap();
    drop(from);
    serves_through_deaths(shim(to, &[]));
}

#[test]
fn s27_stderr_that_nobody_reads_disturbs_no_call_and_keeps_its_flags() {
    let (from, to) = full();
    let before = fcntl_getfl(&to).unwrap();
    serves_through_deaths(shim(to.try_clone().unwrap(), &[]));
    let after = fcntl_getfl(&to).unwrap();
    assert_eq!((after, after.contains(OFlags::NONBLOCK)), (before, false));
    drop(from);
}

#[test]
fn s27_stderr_that_somebody_else_made_not_to_block_is_waited_for_by_the_log_alone() {
    let (from, to) = full();
    rustix::fs::fcntl_setfl(&to, fcntl_getfl(&to).unwrap() | OFlags::NONBLOCK).unwrap();
    serves_through_deaths(shim(OwnedFd::from(to), &[]));
    drop(from);
}

#[test]
fn s27_a_full_disk_under_the_log_disturbs_no_call() {
    serves_through_deaths(shim(Stdio::null(), &["--log", "/dev/full"]));
}

#[test]
fn s27_a_fifo_without_a_reader_is_written_once_somebody_reads_it() {
    let fifo: PathBuf = std::env::temp_dir().join(format!("linetender-log-{}", std::process::id()));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut agent = shim(Stdio::null(), &["--log", fifo.to_str().unwrap()]);
    agent.call(&json!(1), "kill", &json!({}));
    agent.call(&json!(2), "echo", &json!({}));
    let (tell, told) = std::sync::mpsc::channel();
    let reader = fifo.clone();
    std::thread::spawn(move || {
        let lines = BufReader::new(std::fs::File::open(reader).unwrap()).lines();
        let seen = lines.map_while(Result::ok).any(|line| line.contains("SIGKILL"));
        tell.send(seen)
    });
    let seen = told.recv_timeout(PATIENCE);
    std::fs::remove_file(&fifo).unwrap();
    assert_eq!(seen, Ok(true), "the death is in the log");
    serves_through_deaths(agent);
}

#[test]
fn s27_the_last_words_of_a_misused_command_are_written() {
    let output = Command::new(LINETENDER).args(["run", "--header", "A: b", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--header applies to a URL"));
}

/// A shim whose server says this on stderr, and where it goes. What the shim wrote to its stderr until it ended.
fn said(flags: &[&str], text: &str) -> String {
    let mut shim = Command::new(LINETENDER);
    shim.args(["run", "--no-memory", "--no-journal", "--name", "bad"]).args(flags);
    shim.args(["--", LINETENDER, "__badserver", "--era", "legacy", "--stderr", text]);
    let (from, to) = std::io::pipe().unwrap();
    let mut agent = Agent::with_stderr(&mut shim, to).greeted();
    // Our own copy of the pipe's end goes with the command.
    drop(shim);
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
    std::io::read_to_string(from).unwrap()
}

#[test]
fn a_servers_stderr_is_passed_on_under_its_name() {
    let said = said(&[], "listening\tnow\n\u{1b}[31mred");
    assert!(said.lines().any(|line| line == "[bad] listening\tnow"), "{said}");
    assert!(said.lines().any(|line| line == "[bad] \\u{1b}[31mred"), "{said}");
}

#[test]
fn a_servers_stderr_goes_into_the_log_or_nowhere_if_that_is_wanted() {
    let logged = said(&["--stderr", "log"], "a line of its own");
    assert!(logged.contains("stderr server=\"bad\" text=\"a line of its own\""), "{logged}");
    let off = said(&["--stderr", "off"], "a line of its own");
    assert!(!off.contains("a line of its own"), "{off}");
}

#[test]
fn a_server_that_floods_a_stderr_that_nobody_reads_is_not_held_up() {
    let (from, to) = full();
    let mut agent = shim(to, &[]);
    let served = agent.call(&json!(1), "flood_stderr", &json!({ "bytes": 20_000_000 }));
    assert!(served["result"]["isError"].is_null(), "{served}");
    serves_through_deaths(agent);
    drop(from);
}
