//! What servers say before their handshake is over, and what they are asked meanwhile; and what agents that share one say and ask that
//! is not about themselves.

use std::path::PathBuf;

use linetender::{Era, Eras, Event, Line, Policy, Raw as Json, Rig, Server, Settings, State, session};
use serde_json::json;

use crate::agent::Raw;
use crate::look::{badserver, eventually, in_time, kill};
use crate::peer::Dir;

/// Writes down what it hears. Its first argument says what it does early, its second is a folder. Once there is a file `slow`, a start
/// waits for a file `go` before it reads.
const SERVER: &str = r#"
import json, os, sys, time
mode, folder = sys.argv[1:]
def note(text):
    with open(folder + "/log", "a") as log: log.write(text + "\n")
def say(**message): os.write(1, (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
def ask():
    say(method="notifications/message", params={"level": "info", "data": "starting"})
    say(id="q", method="roots/list")
def heard():
    message = json.loads(sys.stdin.readline() or sys.exit(0))
    note(message.get("method") or "answered " + ("result" if "result" in message else "error"))
    return message
note("start %d" % os.getpid())
if mode == "changes":
    say(method="notifications/tools/list_changed")
    say(id="p", method="ping")
    # The ping is answered: linetender has heard that the lists changed.
    while "method" in (first := heard()): pass_on = first
if os.path.exists(folder + "/slow"):
    while not os.path.exists(folder + "/go"): time.sleep(0.001)
early = [pass_on] if mode == "changes" else []
while True:
    message = early.pop() if early else heard()
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        if mode == "before": ask()
        if mode == "blocks":
            ask()
            while "method" in heard(): pass
        version = message["params"]["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        if mode != "bare": capabilities |= {"logging": {}, "resources": {"subscribe": True}}
        say(id=id, result={"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "e", "version": "1"}})
        if mode == "with": ask()
    elif method == "notifications/initialized":
        if mode == "after": ask()
    elif method == "tools/list": say(id=id, result={"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
    elif method == "resources/list": say(id=id, result={"resources": []})
    elif method == "resources/templates/list": say(id=id, result={"resourceTemplates": []})
    elif mode == "bare" and method in ("resources/subscribe", "logging/setLevel"): say(id=id, error={"code": -32601, "message": "own words"})
    elif method == "logging/setLevel" and message["params"]["level"] == "loud": say(id=id, error={"code": -32602, "message": "own words"})
    elif method == "notifications/custom":
        say(method="notifications/back", params=message["params"])
        say(method="notifications/message", params={"level": "debug", "data": "unasked"})
    elif method == "tools/call": say(id=id, result={"content": []})
    elif id is not None and method is not None: say(id=id, result={})
"#;

struct Folder(Dir);

impl Folder {
    fn new() -> Self {
        Self(Dir::new())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    fn server(&self, mode: &str) -> Server {
        let folder = self.0.text("");
        let argv = ["python3", "-c", SERVER, mode, &folder];
        Server::stdio("early", argv).reaper(badserver()).eras(Eras::Only(Era::Legacy)).into()
    }

    /// What its starts heard so far, each from its first word on.
    fn starts(&self) -> Vec<Vec<String>> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        let starts = log.split("start ").skip(1);
        starts.map(|start| start.lines().skip(1).map(str::to_owned).collect()).collect()
    }

    /// Whether its last start, the one of this number, heard this.
    fn heard(&self, start: usize, what: &str) -> Option<()> {
        self.starts().get(start)?.iter().any(|heard| heard == what).then_some(())
    }
}

/// S41: servers of the TypeScript SDK that register their tools after they connected.
#[tokio::test]
async fn s41_tools_stay_listed_while_a_server_that_says_early_that_they_changed_starts_again() {
    let folder = Folder::new();
    let line = Line::open(folder.server("changes"));
    assert_eq!(in_time(line.list_tools()).await.unwrap().len(), 1);
    let mut events = line.events();
    std::fs::write(folder.file("slow"), "").unwrap();
    kill("-9", line.pid().unwrap());
    // It has said that its lists changed, and linetender has heard it.
    eventually(|| folder.heard(1, "answered result")).await;
    std::fs::write(folder.file("go"), "").unwrap();
    eventually(|| folder.heard(1, "tools/list")).await;
    assert_eq!(in_time(line.list_tools()).await.unwrap().len(), 1);
    in_time(line.call_tool("t", Json("{}"))).await.unwrap();
    in_time(line.close()).await;
    let mut changes = Vec::new();
    while let Some(event) = in_time(events.next()).await {
        match event {
            Event::Changed(kind, change) => changes.push((kind, change)),
            Event::State(status) if status.state == State::Closed => break,
            _ => {}
        }
    }
    assert!(changes.is_empty(), "its lists never changed: {changes:?}");
}

/// S43. MCP 2025-11-25, "Initialization": nothing but pings before `initialize` is answered.
#[tokio::test]
async fn s43_a_server_that_starts_is_asked_for_nothing_before_it_has_answered_initialize() {
    let folder = Folder::new();
    let line = Line::open(folder.server("plain"));
    in_time(line.ready()).await.unwrap();
    let mut agent = Raw::new(session::join(&line), "2025-11-25");
    agent.greet().await;
    std::fs::write(folder.file("slow"), "").unwrap();
    kill("-9", line.pid().unwrap());
    eventually(|| folder.starts().get(1).map(|_| ())).await;
    let subscribed = agent.ask("resources/subscribe", json!({ "uri": "file:///x" })).await;
    let levelled = agent.ask("logging/setLevel", json!({ "level": "info" })).await;
    // A ping is answered when what came before it was handled.
    agent.result("ping", json!({})).await;
    std::fs::write(folder.file("go"), "").unwrap();
    for asked in [subscribed, levelled] {
        if !agent.heard.iter().any(|heard| heard["id"] == asked) {
            agent.answer(asked).await;
        }
    }
    for wanted in ["resources/subscribe", "logging/setLevel"] {
        eventually(|| folder.heard(1, wanted)).await;
    }
    let heard = &folder.starts()[1];
    assert_eq!(heard[..2], ["initialize", "notifications/initialized"], "{heard:?}");
    in_time(line.close()).await;
}

/// S42: with and before the answer to `initialize`, and as soon as it may.
#[tokio::test]
async fn s42_what_a_server_asks_and_logs_first_reaches_its_agent_in_order_and_is_answered() {
    for round in 0..10 {
        for mode in ["before", "with", "after"] {
            let folder = Folder::new();
            let mut agent = Raw::new(session::open(folder.server(mode), &Rig::new()), "2025-11-25");
            agent.greet().await;
            assert!(agent.heard.is_empty(), "{mode} {round}: before it was greeted: {:?}", agent.heard);
            let question = agent.next("roots/list").await;
            let before: Vec<_> = agent.heard.drain(..).collect();
            assert!(
                matches!(&*before, [log] if log["params"]["data"] == "starting"),
                "{mode} {round}: {before:?}"
            );
            let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
            agent.say(answer.to_string()).await;
            eventually(|| folder.heard(0, "answered result")).await;
        }
    }
}

/// S42: nobody could answer before, so it would never start.
#[tokio::test]
async fn s42_a_server_that_waits_for_an_answer_before_it_answers_initialize_gets_an_error_and_starts() {
    let folder = Folder::new();
    let mut settings = Settings::default();
    settings.dial.probe_wait = std::time::Duration::from_millis(50);
    let server = folder.server("blocks").policy(Policy::new(settings).unwrap());
    let mut agent = Raw::new(session::open(server, &Rig::new()), "2025-11-25");
    agent.greet().await;
    agent.call("t", json!({})).await;
    assert!(folder.heard(0, "answered error").is_some(), "{:?}", folder.starts());
    assert_eq!(agent.next("notifications/message").await["params"]["data"], "starting");
}

/// E07. MCP 2025-11-25, "Initialization": a server should not ask before `initialized`.
#[tokio::test]
async fn e07_an_agent_is_asked_nothing_before_it_says_that_it_is_initialized() {
    let folder = Folder::new();
    let mut agent = Raw::new(session::open(folder.server("after"), &Rig::new()), "2025-11-25");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
    agent.result("initialize", params).await;
    eventually(|| folder.heard(0, "tools/list")).await;
    agent.result("ping", json!({})).await;
    assert!(agent.heard.is_empty(), "{:?}", agent.heard);
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    agent.next("roots/list").await;
}

/// E05: in either direction, and log messages that nobody asked for.
#[tokio::test]
async fn e05_notifications_that_linetender_does_not_know_pass_on_a_shared_line() {
    let folder = Folder::new();
    let line = Line::open(folder.server("plain"));
    let mut agents = [0, 1].map(|_| Raw::new(session::join(&line), "2025-11-25"));
    for agent in &mut agents {
        agent.greet().await;
    }
    for said in ["notifications/roots/list_changed", "tools/call", "notifications/custom"] {
        let said = json!({ "jsonrpc": "2.0", "method": said, "params": { "n": 7 } });
        agents[0].say(said.to_string()).await;
    }
    for agent in &mut agents {
        assert_eq!(agent.next("notifications/back").await["params"], json!({ "n": 7 }));
        assert_eq!(agent.next("notifications/message").await["params"]["data"], "unasked");
    }
    let heard = &folder.starts()[0];
    let others = ["notifications/roots/list_changed", "tools/call"];
    assert!(
        !heard.iter().any(|heard| others.contains(&&**heard)),
        "they are one agent's, or no notification: {heard:?}"
    );
    in_time(line.close()).await;
}

/// E06: what the server refuses is refused in its own words, and wanted by nobody.
#[tokio::test]
async fn e06_a_server_that_takes_no_subscription_or_level_says_so_itself_on_a_shared_line() {
    for (mode, level, code) in [("bare", "info", -32601), ("plain", "loud", -32602)] {
        let folder = Folder::new();
        let line = Line::open(folder.server(mode));
        let mut agents = [0, 1].map(|_| Raw::new(session::join(&line), "2025-11-25"));
        for agent in &mut agents {
            agent.greet().await;
            let refused = agent.request("logging/setLevel", json!({ "level": level })).await;
            assert_eq!(
                (&refused["error"]["code"], &refused["error"]["message"]),
                (&json!(code), &json!("own words"))
            );
            let answer = agent.request("resources/subscribe", json!({ "uri": "file:///x" })).await;
            match mode {
                "bare" => assert_eq!(answer["error"]["code"], -32601, "{answer}"),
                _ => assert!(answer["result"].is_object(), "{answer}"),
            }
        }
        std::fs::write(folder.file("go"), "").unwrap();
        kill("-9", line.pid().unwrap());
        eventually(|| folder.heard(1, "tools/list")).await;
        agents[0].call("t", json!({})).await;
        let asked_again = folder.heard(1, "resources/subscribe").is_some();
        assert_eq!(asked_again, mode == "plain", "{:?}", folder.starts());
        in_time(line.close()).await;
    }
}
