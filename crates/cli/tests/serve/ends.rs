//! Told to stop, killed, and left by its agent.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::{Home, until};

#[test]
fn told_to_stop_it_ends_well() {
    let home = Home::new("stop", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.signal("-TERM");
    let status = agent.ended();
    assert!(status.success(), "{status}");
}

/// Processes with this word in their command line.
fn processes(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|words| words.contains(word))
    })
    .count()
}

#[test]
fn killed_it_leaves_no_server_behind() {
    let home = Home::new("killed", "");
    let mark = home.path().join("nothing").display().to_string();
    home.write(&format!("[servers.a]\n{{bad}} --changing {mark}\n"));
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    assert!(processes(&mark) > 0);
    agent.serves.kill().unwrap();
    agent.serves.wait().unwrap();
    let killed = Instant::now();
    until("an end of its server", || (processes(&mark) == 0).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
}

#[test]
fn an_agent_that_stops_asking_still_hears_its_answers() {
    let home = Home::new("eof", "[servers.a]\n{bad}\n");
    let mut serve = home.serve(&["--stdio"]);
    let mut serves =
        serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut to = serves.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {} } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "a__sleep", "arguments": { "ms": 300 } } });
    writeln!(to, "{hello}").unwrap();
    // Without its line break, as some pipes end.
    write!(to, "{call}").unwrap();
    drop(to);
    let output = serves.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().any(|line| line.contains("\"id\":1") && line.contains("\"result\"")), "{said}");
    assert!(output.status.success());
}
