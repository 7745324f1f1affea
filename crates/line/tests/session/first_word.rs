//! In which era a server is spoken to first, and what that costs servers that know one of them.

use std::time::Duration;

use linetender::{Era, Line, Policy, Rig, Server, Settings, session};
use serde_json::json;

use crate::agent::Raw;
use crate::look::{badserver, eventually, in_time};
use crate::peer::Dir;

/// Writes down what it hears. On `server/discover` it dies, falls silent for good, or does nothing; or it knows that too.
const SERVER: &str = r#"
import json, os, sys, time
mode, folder = sys.argv[1:]
def note(text):
    with open(folder + "/log", "a") as log: log.write(text + "\n")
def say(**message): os.write(1, (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
note("start")
era = None
info = {"name": "e", "version": "1"}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    note(method or "answer")
    if method == "server/discover" and mode != "both":
        if mode == "dies": sys.exit(1)
        while mode == "falls silent": time.sleep(1)
        continue
    if method == "server/discover":
        era = era or "modern"
        found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
        say(id=id, result={**found, "_meta": {"io.modelcontextprotocol/serverInfo": info}})
    elif method == "initialize" and era == "modern":
        say(id=id, error={"code": -32022, "message": "modern by now", "data": {"supported": ["2026-07-28"]}})
    elif method == "initialize":
        era = "legacy"
        version = message["params"]["protocolVersion"]
        say(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}}, "serverInfo": info})
    elif method == "tools/list":
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if era == "modern" else {}
        say(id=id, result={"tools": [{"name": "t", "inputSchema": {"type": "object"}}], **more})
    elif method == "tools/call":
        if era == "legacy": say(method="notifications/message", params={"level": "info", "data": "worked"})
        say(id=id, result={"content": [], **({"resultType": "complete"} if era == "modern" else {})})
    elif id is not None: say(id=id, result={})
"#;

struct Folder(Dir);

impl Folder {
    fn new() -> Self {
        Self(Dir::new())
    }

    fn server(&self, mode: &str) -> Server {
        let argv = ["python3", "-c", SERVER, mode, &self.0.text("")];
        Server::stdio("words", argv).reaper(badserver()).into()
    }

    /// What each start heard.
    fn starts(&self) -> Vec<Vec<String>> {
        let log = std::fs::read_to_string(self.0.file("log")).unwrap_or_default();
        log.split("start\n").skip(1).map(|start| start.lines().map(str::to_owned).collect()).collect()
    }
}

/// What a probe may take, and a start.
fn quick(start: u64) -> Policy {
    let mut settings = Settings::default();
    settings.dial.probe_wait = Duration::from_millis(200);
    settings.dial.start = Duration::from_millis(start);
    Policy::new(settings).unwrap()
}

/// The published mcp-server-sqlite, and all servers on the Python SDK before 1.9.4: they were started twice, or never came up.
#[tokio::test]
async fn e01_a_shared_server_that_server_discover_kills_is_started_once() {
    for mode in ["dies", "falls silent", "ignores", "both"] {
        let folder = Folder::new();
        let line = Line::open(folder.server(mode));
        let mut agents = [0, 1].map(|_| Raw::new(session::join(&line), "2025-11-25"));
        for agent in &mut agents {
            agent.greet().await;
            agent.call("t", json!({})).await;
        }
        let starts = folder.starts();
        assert_eq!((starts.len(), &*starts[0][0]), (1, "initialize"), "{mode}: {starts:?}");
        in_time(line.close()).await;
    }
}

/// Log messages have no way to an agent of the other era, and results get members there that it does not know.
#[tokio::test]
async fn e03_an_agent_with_a_session_gets_one_from_a_server_that_speaks_both() {
    let folder = Folder::new();
    let line = Line::open(folder.server("both"));
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    assert_eq!(agent.result("tools/call", json!({ "name": "t" })).await, json!({ "content": [] }));
    assert_eq!(agent.next("notifications/message").await["params"]["data"], "worked");
    in_time(line.close()).await;
}

/// An agent of the other era is the one case in which that question comes first.
#[tokio::test]
async fn e01_what_a_modern_agents_server_does_on_server_discover_is_remembered() {
    for (mode, generation) in [("both", 1), ("dies", 2), ("ignores", 1)] {
        let folder = Folder::new();
        let line = Line::open(folder.server(mode).prefer(Era::Modern).policy(quick(30_000)));
        let mut agent = Raw::new(session::join(&line), "2026-07-28");
        assert_eq!(agent.result("tools/call", json!({ "name": "t" })).await["content"], json!([]), "{mode}");
        assert_eq!(line.status().budget, 5000, "{mode}");
        let starts = folder.starts();
        assert_eq!((starts.len(), &*starts[0][0]), (generation, "server/discover"), "{mode}: {starts:?}");
        assert!(starts[1..].iter().all(|start| start[0] == "initialize"), "{mode}: {starts:?}");
        in_time(line.close()).await;
    }
}

/// A start that takes longer than the probe waits hears both questions at once, and has answered the first.
#[tokio::test]
async fn e01_a_server_of_both_eras_that_starts_slowly_stays_in_its_modern_agents_era() {
    let folder = Folder::new();
    let slow = format!("import time; time.sleep(1)\n{SERVER}");
    let argv = ["python3", "-c", &slow, "both", &folder.0.text("")];
    let server = Server::stdio("words", argv).reaper(badserver()).policy(quick(30_000));
    let mut agent = Raw::new(session::open(server, &Rig::new()), "2026-07-28");
    assert_eq!(agent.result("tools/call", json!({ "name": "t" })).await["resultType"], "complete");
    eventually(|| folder.starts().first()?.iter().any(|word| word == "tools/list").then_some(())).await;
    let starts = folder.starts();
    assert_eq!(starts.len(), 1, "{starts:?}");
    assert_eq!(starts[0][..2], ["server/discover", "initialize"], "{starts:?}");
}
