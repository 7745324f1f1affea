//! What `linetender run` inherits from whoever starts it, and where it has to run: S29, S30, S33.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

mod agent;

use std::process::Command;

use agent::{Agent, LINETENDER};
use serde_json::{Value, json};

/// The shim of a badserver, started by `before`, a program that runs what follows it.
fn started_by(before: &[&str], server: &[&str]) -> Agent {
    let elsewhere = std::env::temp_dir().join("linetender-tests");
    let mut command = Command::new(before[0]);
    command.env("XDG_STATE_HOME", &elsewhere).env("XDG_RUNTIME_DIR", &elsewhere).args(&before[1..]);
    command.args([LINETENDER, "run", "--no-memory", "--name", "bad"]).args(server);
    Agent::of_command(&mut command)
}

const BAD: [&str; 5] = ["--", LINETENDER, "__badserver", "--era", "legacy"];

/// Killed in a call, and back: the status is told, and the next call works.
fn dies_and_is_back(agent: &mut Agent) {
    for round in 0..3 {
        let killed = agent.call(&json!(format!("k{round}")), "kill", &json!({}));
        let text = killed["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("SIGKILL"), "{killed}");
        let answer = agent.call(&json!(format!("e{round}")), "echo", &json!({}));
        assert!(answer["result"]["isError"].is_null(), "{answer}");
    }
}

#[test]
fn s29_ignored_signals_and_a_limit_on_files_are_not_ours() {
    let careless = r#"trap '' HUP INT QUIT USR1 USR2 TERM CHLD; ulimit -f 0; exec "$@""#;
    let mut agent = started_by(&["bash", "-c", careless, "careless"], &BAD).greeted();
    dies_and_is_back(&mut agent);
}

/// Makes the kernel refuse a system call, by number, with an error number, and runs what follows.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const REFUSES: &str = r#"
import ctypes, os, struct, sys
number, error = int(sys.argv[1]), int(sys.argv[2])
code = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7FFF0000)])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, code))) == 0
os.execv(sys.argv[3], sys.argv[3:])
"#;

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn s30_without_pidfds_or_subreapers_servers_run_all_the_same() {
    // pidfd_open as seccomp and as an old kernel refuse it, and prctl.
    for (number, error) in [("434", "1"), ("434", "38"), ("157", "1")] {
        let mut agent = started_by(&["python3", "-c", REFUSES, number, error], &BAD).greeted();
        dies_and_is_back(&mut agent);
    }
}

fn cause(agent: &mut Agent) -> String {
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = agent.ask(&json!("hello"), "initialize", &hello);
    answer["error"]["data"]["cause"].as_str().map_or_else(|| Value::to_string(&answer), ToOwned::to_owned)
}

#[test]
fn s33_a_folder_that_is_not_there_and_a_program_that_is_no_server_are_named() {
    let mut agent = started_by(&["env"], &["--dir", "/nowhere/at/all", "--", "cat"]);
    let said = cause(&mut agent);
    assert!(
        said.contains("cannot enter the working directory /nowhere/at/all: no such file or directory"),
        "{said}"
    );
    let mut agent = started_by(&["env"], &["--", "cat"]);
    let said = cause(&mut agent);
    assert!(said.contains("not an MCP server: it echoes its input"), "{said}");
}
