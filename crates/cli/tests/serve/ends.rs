//! Told to stop, killed, and left by its agent.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::kit::{Home, until};

#[test]
fn told_to_stop_it_ends_well() {
    let home = Home::new("stop", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.serves.signal("-TERM");
    let status = agent.serves.ended();
    assert!(status.success(), "{status}");
    assert_eq!(home.journal().last().unwrap()["why"], "stopped by a signal");
}

#[test]
fn a_port_that_is_taken_starts_no_server() {
    let home = Home::new("taken", "");
    let mark = home.path().join("started");
    home.write(&format!("[servers.a]\ncommand = \"touch\"\nargs = [\"{}\"]\n", mark.display()));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = home.serve(&["--listen", &address]).stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && told.contains(&format!("cannot listen on {address}")), "{told}");
    assert!(told.contains("starting config="), "it says which file it has read: {told}");
    assert!(!mark.exists(), "a server was started in vain");
}

/// A server that stays when it is told to go, for longer than anybody waits for it.
const STUBBORN: &str = "{bad} --ignore-eof --changing {mark}\npolicy.close = { stdin = 8000, term = 2000 }\n";

/// Far less than servers may take to end, or calls.
const AT_ONCE: Duration = Duration::from_secs(5);

#[test]
fn told_twice_it_does_not_wait_for_its_servers() {
    let home = Home::new("twice", "");
    let mark = home.path().join("nothing").display().to_string();
    home.write(&format!("[servers.a]\n{}", STUBBORN.replace("{mark}", &mark)));
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    agent.serves.signal("-TERM");
    // Its agent has been told; now it waits for the server.
    home.wait_for_log("session ended reason=\"stopped by a signal\"");
    assert!(processes(&mark) > 0);
    let told = Instant::now();
    agent.serves.signal("-TERM");
    let status = agent.serves.ended();
    assert!(!status.success(), "{status}");
    assert!(told.elapsed() < AT_ONCE, "{:?}", told.elapsed());
    assert_eq!(home.journal().last().unwrap()["why"], "stopped by a second signal");
    until("an end of its server", || (processes(&mark) == 0).then_some(()));
}

#[test]
fn told_twice_it_does_not_wait_for_what_is_under_way() {
    let home = Home::new("drains", "");
    let mark = home.path().join("nothing").display().to_string();
    let server = STUBBORN.replace("{mark}", &mark);
    home.write(&format!("[gateway]\ndrain = 60000\n[servers.a]\n{server}"));
    let (mut serves, at) = home.listens();
    until("a server", || (processes(&mark) > 0).then_some(()));
    // A request that has begun, and never ends.
    let mut under_way = TcpStream::connect(at).unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Accept: application/json, text/event-stream\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    under_way.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    under_way.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    serves.signal("-INT");
    home.wait_for_log("stopping on a signal");
    let told = Instant::now();
    serves.signal("-TERM");
    let status = serves.ended();
    assert!(!status.success(), "{status}");
    assert!(told.elapsed() < AT_ONCE, "{:?}", told.elapsed());
    until("an end of its server", || (processes(&mark) == 0).then_some(()));
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
    agent.serves.kill();
    let killed = Instant::now();
    until("an end of its server", || (processes(&mark) == 0).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
}

#[test]
fn an_agent_that_is_gone_is_not_waited_for() {
    let home = Home::new("gone", "[servers.a]\n{bad}\n");
    let mut agent = home.agent();
    agent.wait_for("a__echo", "{}");
    let hang = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "a__hang", "arguments": {} } });
    writeln!(agent.to.as_mut().unwrap(), "{hang}").unwrap();
    agent.wait_for("a__echo", "{}");
    let begun = Instant::now();
    let ended = agent.vanishes();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(ended.success(), "{ended}");
    assert_eq!(home.journal().last().unwrap()["why"], "the agent disconnected");
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
