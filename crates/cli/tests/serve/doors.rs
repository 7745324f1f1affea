//! Where `serve` listens: loopback and a Unix socket by default, anything else only if it was spelt out.

use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::kit::{Agent, Home, LINETENDER};

/// A home whose only server leaves a mark when it is started.
fn marked(name: &str) -> (Home, std::path::PathBuf) {
    let home = Home::new(name, "");
    let mark = home.path().join("started");
    home.write(&format!("[servers.a]\ncommand = \"touch\"\nargs = [\"{}\"]\n", mark.display()));
    (home, mark)
}

#[test]
fn g08_an_address_that_others_can_reach_starts_no_server() {
    let (home, mark) = marked("reach");
    for words in
        [&["--listen", "0.0.0.0:0"] as &[_], &["--listen", "[::]:0"], &["--check", "--listen", "0.0.0.0:0"]]
    {
        let ended = home.serve(words).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{told}");
        assert!(told.contains("refusing to listen on") && told.contains("--insecure"), "{told}");
        assert!(!mark.exists(), "a server was started in vain");
    }
}

#[test]
fn g08_insecure_serves_and_warns() {
    let home = Home::new("insecure", "[servers.a]\n{bad}\n");
    let mut serve = home.serve(&["--insecure", "--listen", "0.0.0.0:0", "--log"]);
    let serves = crate::kit::Serves(serve.arg(home.path().join("log")).stdin(Stdio::null()).spawn().unwrap());
    home.wait_for_log("serving address=http://");
    let warned = home.wait_for_log("insecure = true");
    assert!(warned.contains("WARN") && warned.contains("without authentication"), "{warned}");
    drop(serves);
}

#[test]
fn x04_an_agent_on_stdio_reaches_a_gateway_at_its_socket() {
    let home = Home::new("unix", "[servers.a]\n{bad}\n");
    let (mut serves, _) = home.listens();
    let socket = home.path().join("linetender/gateway.sock");
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().mode() & 0o7777, 0o600);
    let run = |path: &str| {
        let mut run = home.linetender(&["run", "--no-memory", &format!("unix:{}{path}", socket.display())]);
        Agent::of(run.stderr(Stdio::null()))
    };
    let mut agent = run("").greeted();
    agent.wait_for("a__echo", "{}");
    assert!(agent.leaves().success());
    let mut agent = run(":/mcp/a");
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert_ne!(agent.ask("initialize", &hello)["result"]["serverInfo"]["name"], "linetender");
    agent.wait_for("echo", "{}");
    // Another gateway of this user does without.
    let (_others, _) = home.listens_beside("other");
    assert!(home.log_of("other").contains("serving without a Unix socket"), "{}", home.log_of("other"));
    // One that was killed leaves its socket behind, and the next one takes its place; the agent goes on.
    serves.kill();
    assert!(socket.exists());
    let (mut again, _) = home.listens_beside("again");
    agent.wait_for("echo", "{}");
    again.signal("-TERM");
    assert!(again.ended().success());
    assert!(!socket.exists(), "it goes with its gateway");
}

#[test]
fn the_socket_alone_is_enough() {
    let home = Home::new("alone", "[gateway]\nlisten = 'off'\n[servers.a]\n{bad}\n");
    let mut serve = home.serve(&["--log"]);
    let _serves =
        crate::kit::Serves(serve.arg(home.path().join("log")).stdin(Stdio::null()).spawn().unwrap());
    home.wait_for_log("serving socket=");
    let socket = home.path().join("linetender/gateway.sock");
    let mut run = home.linetender(&["run", "--no-memory", &format!("unix:{}", socket.display())]);
    Agent::of(run.stderr(Stdio::null())).greeted().wait_for("a__echo", "{}");
    assert!(!home.log().contains("address=http"), "{}", home.log());
}

#[test]
fn x04_where_users_cannot_be_told_apart_nothing_is_served() {
    let (home, mark) = marked("namespace");
    // In a user namespace without a map everybody is `nobody`.
    let apart = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", LINETENDER, "serve", "--config"]).arg(home.config()).args(words);
        command.env("XDG_STATE_HOME", home.path()).env("XDG_RUNTIME_DIR", home.path()).stdin(Stdio::null());
        command.output()
    };
    match apart(&["--check"]) {
        Ok(checked) if checked.status.success() => {}
        other => return eprintln!("skipped: no user namespace can be had here: {other:?}"),
    }
    let ended = apart(&["--listen", "127.0.0.1:0"]).unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    for choice in ["cannot tell which user", "listen = \"off\"", "insecure = true"] {
        assert!(told.contains(choice), "{told}");
    }
    assert!(!mark.exists(), "a server was started in vain");
}
