//! Agents of every revision on servers of either era, on a pipe and over HTTP: one table, one story for each row.

use linetender::{Era, Rig, session};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::agent::{META, Raw};
use crate::look::eventually;
use crate::peer::{ERAS, Peer, WAYS, Way};

const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

const CHANGED: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

/// One row of the table.
struct Corner {
    agent: Raw,
    peer: Peer,
    server: Era,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_is_served_in_its_own_era_whatever_the_servers_is() {
    let mut rows = JoinSet::new();
    let mut names = std::collections::HashMap::new();
    for version in VERSIONS {
        for server in ERAS {
            for way in WAYS {
                let row = rows.spawn(row(version, server, way));
                names.insert(row.id(), format!("{version} agent, {server:?} server, {way:?}"));
            }
        }
    }
    let mut failed = Vec::new();
    while let Some(ended) = rows.join_next_with_id().await {
        if let Err(error) = ended {
            failed.push(format!("{}: {error}", names[&error.id()]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn row(version: &'static str, server: Era, way: Way) {
    let peer = Peer::start(way, server);
    let agent = Raw::new(session::open(peer.server(), &Rig::new()), version);
    let mut corner = Corner { agent, peer, server };
    corner.is_greeted().await;
    corner.lists().await;
    corner.calls().await;
    corner.hears_progress().await;
    corner.cancels().await;
    corner.hears_of_changes().await;
    corner.hears_of_resources().await;
    corner.hears_log_messages().await;
    corner.is_asked().await;
    corner.outlives_its_server().await;
    corner.is_told_why_not().await;
    corner.heard_nothing_else();
}

impl Corner {
    fn modern(&self) -> bool {
        self.agent.era() == Era::Modern
    }

    /// A result has what the agent's era demands, and nothing that only the other one has.
    fn fits(&self, method: &str, result: &Value) {
        let cached = method.ends_with("/list") || matches!(method, "resources/read" | "server/discover");
        if self.modern() {
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
            assert_eq!(cached, result["ttlMs"].is_u64(), "{method}: {result}");
            assert_eq!(cached, result["cacheScope"].is_string(), "{method}: {result}");
        } else {
            assert_ne!(result["resultType"], "input_required", "{method}: {result}");
        }
    }

    async fn fitting(&mut self, method: &str, params: Value) -> Value {
        let result = self.agent.result(method, params).await;
        self.fits(method, &result);
        result
    }

    async fn is_greeted(&mut self) {
        let hello = self.agent.greet().await;
        if self.modern() {
            self.fits("server/discover", &hello);
            assert_eq!(hello["supportedVersions"], json!(["2026-07-28"]), "{hello}");
            assert_eq!(hello["_meta"][format!("{META}serverInfo")]["name"], "badserver", "{hello}");
        } else {
            assert_eq!(hello["protocolVersion"], self.agent.version);
            assert_eq!(hello["serverInfo"]["name"], "badserver");
            assert_eq!(self.agent.result("ping", json!({})).await, json!({}));
        }
        assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
        assert_eq!(hello["capabilities"]["resources"]["subscribe"], true);
    }

    async fn lists(&mut self) {
        for (method, member) in [
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let list = self.fitting(method, json!({})).await;
            assert!(list[member].as_array().is_some_and(|list| !list.is_empty()), "{method}: {list}");
        }
    }

    async fn calls(&mut self) {
        let echo = json!({ "name": "echo", "arguments": { "nonce": "first" } });
        let result = self.fitting("tools/call", echo).await;
        assert_eq!(result["content"][0]["text"], r#"{"nonce":"first"}"#);
        let greet = json!({ "name": "greet", "arguments": { "who": "world" } });
        let prompt = self.fitting("prompts/get", greet).await;
        assert_eq!(prompt["messages"][0]["content"]["text"], "hello world");
        let read = self.fitting("resources/read", json!({ "uri": "note://a" })).await;
        assert_eq!(read["contents"][0]["text"], "a note");
        let which = json!({
            "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "who", "value": "w" },
        });
        let complete = self.fitting("completion/complete", which).await;
        assert_eq!(complete["completion"]["values"], json!(["world"]));
        let unknown = self.agent.request("no/such/method", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "the server's own word: {unknown}");
    }

    async fn hears_progress(&mut self) {
        let token = json!("the agent's own");
        let arguments = json!({ "times": 2, "n": 2, "ms": 1 });
        let params =
            json!({ "name": "progress", "arguments": arguments, "_meta": { "progressToken": token } });
        self.fitting("tools/call", params).await;
        for step in 1..=2 {
            let progress = self.agent.next("notifications/progress").await;
            assert_eq!(
                (&progress["params"]["progressToken"], &progress["params"]["progress"]),
                (&token, &json!(step))
            );
        }
        // Who did not ask for progress gets none.
        self.agent.call("progress", json!({ "times": 2, "n": 2, "ms": 1 })).await;
        assert_eq!(self.agent.count("notifications/progress"), 0);
    }

    async fn cancels(&mut self) {
        let params = json!({ "name": "hang", "arguments": { "nonce": "cancelled" } });
        let id = self.agent.ask("tools/call", params).await;
        self.peer.runs("cancelled").await;
        let before = self.cancellations();
        self.agent.cancel(id).await;
        if self.peer.way == Way::Pipe {
            eventually(|| (self.cancellations() > before).then_some(())).await;
        }
        self.agent.call("echo", json!({})).await;
        assert!(self.agent.heard.iter().all(|heard| heard["id"] != id), "{:?}", self.agent.heard);
    }

    /// How often the server was told that somebody gave up.
    fn cancellations(&self) -> usize {
        self.peer.book.runs().keys().filter(|nonce| nonce.starts_with("cancelled:")).count()
    }

    /// A modern agent hears only what it listens for, and under the id of its own request.
    async fn listens(&mut self, wanted: Value) -> Option<u64> {
        if !self.modern() {
            return None;
        }
        let id = self.agent.ask("subscriptions/listen", json!({ "notifications": wanted })).await;
        let first = self.agent.next("notifications/subscriptions/acknowledged").await;
        assert!(self.agent.heard.is_empty(), "the acknowledgement comes first: {:?}", self.agent.heard);
        assert_eq!(first["params"]["_meta"][format!("{META}subscriptionId")], id, "{first}");
        assert_eq!(first["params"]["notifications"], wanted);
        Some(id)
    }

    async fn hears_of_changes(&mut self) {
        let before = self.fitting("tools/list", json!({})).await;
        let listen = self.listens(json!({ "toolsListChanged": true })).await;
        self.peer.will_change();
        self.agent.call("list_change", json!({})).await;
        let changed = self.agent.next(CHANGED).await;
        belongs_to(&changed, listen);
        let after = self.fitting("tools/list", json!({})).await;
        let tools = |list: &Value| list["tools"].as_array().unwrap().len();
        assert_eq!(tools(&after), tools(&before) + 1);
        // The same list again is no change, whatever the server says.
        if self.peer.way == Way::Pipe {
            self.agent.call("list_change", json!({})).await;
        }
        self.agent.call("echo", json!({})).await;
        if let Some(id) = listen {
            self.agent.cancel(id).await;
        }
    }

    async fn hears_of_resources(&mut self) {
        let uri = json!("note://a");
        let listen = self.listens(json!({ "resourceSubscriptions": [uri] })).await;
        if listen.is_none() {
            self.fitting("resources/subscribe", json!({ "uri": uri })).await;
        }
        // That the server was told lies between the agent's wish and the first word of it: it is touched until it says so.
        let updated = loop {
            self.agent.call("touch", json!({ "uri": uri })).await;
            if self.agent.count(UPDATED) > 0 {
                break self.agent.next(UPDATED).await;
            }
        };
        belongs_to(&updated, listen);
        assert_eq!(updated["params"]["uri"], uri);
        match listen {
            Some(id) => self.agent.cancel(id).await,
            None => drop(self.fitting("resources/unsubscribe", json!({ "uri": uri })).await),
        }
        // It may have been touched once too often.
        self.agent.call("echo", json!({})).await;
        self.agent.heard.retain(|heard| heard["method"] != UPDATED);
    }

    async fn hears_log_messages(&mut self) {
        let mut params = json!({ "name": "log", "arguments": { "level": "warning" } });
        if self.modern() {
            params["_meta"][format!("{META}logLevel")] = "info".into();
        } else {
            self.fitting("logging/setLevel", json!({ "level": "info" })).await;
        }
        self.fitting("tools/call", params).await;
        let message = self.agent.next("notifications/message").await;
        assert_eq!(message["params"]["data"], "a log message", "{message}");
    }

    /// What a server needs to know reaches the agent in the agent's way, and its answer reaches the server.
    async fn is_asked(&mut self) {
        let mut params = json!({ "name": "question", "arguments": { "nonce": "question" } });
        let roots = json!({ "roots": [{ "uri": "file:///here", "odd": 1.5 }] });
        let result = match (self.agent.era(), self.server) {
            (Era::Legacy, _) => {
                let id = self.agent.ask("tools/call", params).await;
                let question = self.agent.next("roots/list").await;
                let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots });
                self.agent.say(answer.to_string()).await;
                self.agent.answer(id).await["result"].clone()
            }
            (Era::Modern, Era::Modern) => {
                let needs = self.agent.result("tools/call", params.clone()).await;
                assert_eq!(needs["resultType"], "input_required", "{needs}");
                params["inputResponses"] = json!({ "roots": roots });
                params["requestState"] = needs["requestState"].clone();
                self.agent.result("tools/call", params).await
            }
            (Era::Modern, Era::Legacy) => {
                // It was told that nobody can be asked; if it asks all the same, it is told so again.
                let result = self.agent.result("tools/call", params).await;
                let text = result["content"][0]["text"].as_str().unwrap();
                assert!(text.contains("-32601"), "{text}");
                return;
            }
        };
        self.fits("tools/call", &result);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("file:///here"), "{result}");
        assert!(self.server == Era::Legacy || text.contains("so far"), "{result}");
    }

    async fn outlives_its_server(&mut self) {
        let params = json!({ "name": "hang", "arguments": { "nonce": "killed" } });
        let id = self.agent.ask("tools/call", params).await;
        self.peer.kill("killed").await;
        let answer = self.agent.answer(id).await;
        let result = &answer["result"];
        self.fits("tools/call", result);
        assert_eq!(result["isError"], true, "{answer}");
        let ours = &result["_meta"]["linetender"];
        for field in ["source", "server", "phase", "cause", "delivery", "nextTry"] {
            assert!(ours[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {answer}");
        }
        assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.contains("bad")));
        let echo = self.agent.call("echo", json!({ "nonce": "after" })).await;
        assert_eq!(echo["content"][0]["text"], r#"{"nonce":"after"}"#, "{echo}");
        assert_eq!(self.peer.book.runs().get("killed"), Some(&1));
        self.lists().await;
    }

    /// What cannot be passed on is answered, and not with silence.
    async fn is_told_why_not(&mut self) {
        let (open, close) = ("[".repeat(200), "]".repeat(200));
        let text = format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"x","params":{{"a":{open}{close}}}}}"#);
        self.agent.say(text).await;
        self.agent.call("echo", json!({})).await;
        let told = self.agent.heard.iter().position(|heard| heard["id"] == "deep");
        let told = told.and_then(|at| self.agent.heard.remove(at)).expect("an answer");
        assert_eq!(told["error"]["code"], -32600, "{told}");
        // Only one revision has batches; whoever sends one is understood.
        let batch = ["a", "b"].map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        self.agent.say(json!(batch).to_string()).await;
        self.agent.call("echo", json!({})).await;
        for id in ["a", "b"] {
            let at = self.agent.heard.iter().position(|heard| heard["id"] == id);
            assert!(at.and_then(|at| self.agent.heard.remove(at)).is_some(), "{:?}", self.agent.heard);
        }
    }

    fn heard_nothing_else(&self) {
        assert!(self.agent.heard.is_empty(), "{:#?}", self.agent.heard);
    }
}

/// A modern agent's notifications carry the id of its own request; a legacy agent's carry none.
fn belongs_to(heard: &Value, listen: Option<u64>) {
    let tag = heard["params"]["_meta"].get(format!("{META}subscriptionId"));
    assert_eq!(tag, listen.map(Value::from).as_ref(), "{heard}");
}
