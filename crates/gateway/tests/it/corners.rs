//! Agents of either era at either address, on servers of either era, on a pipe and over HTTP: one table, one story for
//! each row. What a server asks is in `questions`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use linetender::Era;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::kit::{Answer, House, in_time, names, text};
use crate::peer::{ERAS, Peer, WAYS, Way};

/// The server's name. At its own address nothing is changed; at the address of all everything has it in front.
const SERVER: &str = "it";
const DOORS: [Door; 2] = [Door::One, Door::All];
const META: &str = "io.modelcontextprotocol/";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Door {
    One,
    All,
}

impl Door {
    pub fn path(self) -> &'static str {
        if self == Self::One { "/mcp/it" } else { "/mcp" }
    }

    pub fn name(self, own: &str) -> String {
        if self == Self::One { own.to_owned() } else { format!("{SERVER}__{own}") }
    }

    fn uri(self, own: &str) -> String {
        if self == Self::One { own.to_owned() } else { format!("linetender://{SERVER}/{own}") }
    }
}

/// One row of the table.
struct Corner {
    house: House,
    peer: Peer,
    era: Era,
    door: Door,
    /// A legacy agent's session.
    session: String,
    /// The id of a legacy agent's last request. None is used twice: a request that was hung up on stays pending.
    last: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_is_served_in_its_own_era_at_every_door() {
    let mut rows = JoinSet::new();
    let mut called = std::collections::HashMap::new();
    for era in ERAS {
        for server in ERAS {
            for way in WAYS {
                for door in DOORS {
                    let row = rows.spawn(in_time(row(era, server, way, door)));
                    called.insert(row.id(), format!("{era:?} agent at {door:?}, {server:?} server, {way:?}"));
                }
            }
        }
    }
    let mut failed = Vec::new();
    while let Some(ended) = rows.join_next_with_id().await {
        if let Err(error) = ended {
            failed.push(format!("{}: {error}", called[&error.id()]));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn row(era: Era, server: Era, way: Way, door: Door) {
    let peer = Peer::start(way, server);
    let house = House::up(&peer.config(SERVER, "")).await;
    let session = match era {
        Era::Legacy => house.agent(door.path()).await.session,
        Era::Modern => String::new(),
    };
    let corner = Corner { house, peer, era, door, session, last: AtomicU64::new(0) };
    corner.is_greeted().await;
    corner.lists().await;
    corner.calls().await;
    corner.hears_progress().await;
    corner.cancels().await;
    corner.hears_of_changes().await;
    corner.hears_of_resources().await;
    corner.hears_log_messages().await;
    assert_eq!(corner.house.gateway.lines()[0].status().generation, 1, "nothing of this ended the line");
}

impl Corner {
    fn modern(&self) -> bool {
        self.era == Era::Modern
    }

    async fn request(&self, method: &str, params: Value) -> Answer {
        if self.modern() {
            return self.house.modern(self.door.path(), method, params).await;
        }
        let id = self.last.fetch_add(1, Relaxed) + 1;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let headers = [("mcp-session-id", self.session.as_str())];
        self.house.send(http::Method::POST, self.door.path(), &headers, body.to_string()).await
    }

    /// Everything that came on the stream of a request, its answer last.
    async fn story(&self, method: &str, params: Value) -> Vec<Value> {
        let mut answer = self.request(method, params).await;
        if !answer.is_stream() {
            return vec![answer.json().await];
        }
        let mut said = Vec::new();
        while let Some(event) = answer.event().await {
            said.extend(Some(event.data).filter(|data| !data.is_null()));
        }
        said
    }

    /// A result, which has what the agent's era demands.
    async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.story(method, params).await.pop().expect("an answer");
        let result = answer["result"].clone();
        assert!(result.is_object(), "{method}: {answer}");
        if self.modern() {
            let cached = method.ends_with("/list") || matches!(method, "resources/read" | "server/discover");
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
            assert_eq!(cached, result["ttlMs"].is_u64(), "{method}: {result}");
        }
        result
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": self.door.name(tool), "arguments": arguments })).await
    }

    async fn is_greeted(&self) {
        if self.modern() {
            let hello = self.result("server/discover", json!({})).await;
            assert_eq!(hello["supportedVersions"], json!(["2026-07-28"]), "{hello}");
            assert_eq!(hello["capabilities"]["tools"]["listChanged"], true, "{hello}");
        } else {
            assert_eq!(self.result("ping", json!({})).await, json!({}));
        }
    }

    async fn lists(&self) {
        for (method, member, first) in [
            ("tools/list", "tools", self.door.name("echo")),
            ("prompts/list", "prompts", self.door.name("greet")),
            ("resources/list", "resources", self.door.uri("note://a")),
            ("resources/templates/list", "resourceTemplates", self.door.uri("note://{name}")),
        ] {
            let result = self.result(method, json!({})).await;
            assert_eq!(names(&json!({ "result": result }), member)[0], first, "{method}");
        }
    }

    async fn calls(&self) {
        let result = self.call("echo", json!({ "nonce": "first" })).await;
        assert_eq!(result["content"][0]["text"], r#"{"nonce":"first"}"#);
        let greet = json!({ "name": self.door.name("greet"), "arguments": { "who": "world" } });
        let prompt = self.result("prompts/get", greet).await;
        assert_eq!(prompt["messages"][0]["content"]["text"], "hello world");
        let uri = self.door.uri("note://a");
        let read = self.result("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            (&read["contents"][0]["text"], &read["contents"][0]["uri"]),
            (&json!("a note"), &json!(uri))
        );
        let which = json!({
            "ref": { "type": "ref/prompt", "name": self.door.name("greet") },
            "argument": { "name": "who", "value": "w" },
        });
        let complete = self.result("completion/complete", which).await;
        assert_eq!(complete["completion"]["values"], json!(["world"]));
    }

    async fn hears_progress(&self) {
        let mut params =
            json!({ "name": self.door.name("progress"), "arguments": { "times": 2, "n": 2, "ms": 1 } });
        assert_eq!(
            self.story("tools/call", params.clone()).await.len(),
            1,
            "who did not ask for progress gets none"
        );
        params["_meta"]["progressToken"] = "own".into();
        let said = self.story("tools/call", params).await;
        for (step, progress) in (1..=2).zip(&said) {
            let heard = &progress["params"];
            assert_eq!(
                (&heard["progressToken"], &heard["progress"]),
                (&json!("own"), &json!(step)),
                "{said:?}"
            );
        }
        assert_eq!(said.len(), 3, "{said:?}");
    }

    async fn cancels(&self) {
        let params = json!({ "name": self.door.name("hang"), "arguments": { "nonce": "cancelled" } });
        let hangs = async { drop(self.request("tools/call", params).await) };
        let gives_up = async {
            in_time(async {
                while self.peer.runs("cancelled") == 0 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            if !self.modern() {
                let which = json!({ "requestId": self.last.load(Relaxed) });
                let cancelled =
                    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": which });
                let headers = [("mcp-session-id", self.session.as_str())];
                let told =
                    self.house.send(http::Method::POST, self.door.path(), &headers, cancelled.to_string());
                assert_eq!(told.await.status, 202);
            }
        };
        tokio::join!(hangs, gives_up);
        if self.peer.way == Way::Pipe {
            in_time(async {
                while self.peer.cancellations() == 0 {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        self.call("echo", json!({})).await;
    }

    /// Where this agent hears of what it wanted to hear of.
    async fn listens(&self, wanted: Value) -> Answer {
        if self.modern() {
            let listen = json!({ "notifications": wanted });
            let mut stream = self.house.modern(self.door.path(), "subscriptions/listen", listen).await;
            let first = stream.event().await.unwrap().data;
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
            return stream;
        }
        let headers = [("mcp-session-id", self.session.as_str())];
        self.house.send(http::Method::GET, self.door.path(), &headers, String::new()).await
    }

    /// The next of these on a stream, under the id of its request where there is one.
    async fn next(&self, stream: &mut Answer, method: &str) -> Value {
        loop {
            let heard = stream.event().await.expect("an open stream").data;
            if heard["method"] == method {
                let tag = heard["params"]["_meta"].get(format!("{META}subscriptionId"));
                assert_eq!(tag.is_some(), self.modern(), "{heard}");
                return heard;
            }
        }
    }

    async fn hears_of_changes(&self) {
        let count = async || self.result("tools/list", json!({})).await["tools"].as_array().unwrap().len();
        let before = count().await;
        let mut stream = self.listens(json!({ "toolsListChanged": true })).await;
        self.peer.will_change();
        self.call("list_change", json!({})).await;
        // An agent that came before the board knew the server has an older word of it on its stream. Whoever is told once
        // and then reads what was there before waits here for ever.
        loop {
            self.next(&mut stream, "notifications/tools/list_changed").await;
            let now = count().await;
            if now == before + 1 {
                return;
            }
            assert_eq!(now, before);
        }
    }

    async fn hears_of_resources(&self) {
        let uri = self.door.uri("note://a");
        let mut stream = self.listens(json!({ "resourceSubscriptions": [uri] })).await;
        if !self.modern() {
            self.result("resources/subscribe", json!({ "uri": uri })).await;
        }
        // That the server was told lies between the agent's wish and the first word of it: it is touched until it says so.
        let updated = self.next(&mut stream, "notifications/resources/updated");
        let mut updated = std::pin::pin!(updated);
        let heard = loop {
            tokio::select! {
                heard = &mut updated => break heard,
                _ = self.call("touch", json!({ "uri": "note://a" })) => {}
            }
        };
        assert_eq!(heard["params"]["uri"], uri);
    }

    /// A modern log message belongs to one call, and on a line that is shared nobody could say to whose. So those are heard
    /// that a legacy server says to all its legacy agents.
    async fn hears_log_messages(&self) {
        let mut params = json!({ "name": self.door.name("log"), "arguments": { "level": "warning" } });
        if self.modern() {
            params["_meta"][format!("{META}logLevel")] = "info".into();
        } else {
            self.result("logging/setLevel", json!({ "level": "info" })).await;
        }
        if self.modern() || self.peer.era == Era::Modern {
            assert_eq!(self.story("tools/call", params).await.len(), 1);
            return;
        }
        let mut own = self.listens(json!({})).await;
        let said = self.story("tools/call", params).await;
        let told = said.iter().find(|said| said["method"] == "notifications/message").cloned();
        let message = match told {
            Some(message) => message,
            None => self.next(&mut own, "notifications/message").await,
        };
        assert_eq!(message["params"]["data"], "a log message", "{message}");
        assert!(text(said.last().unwrap()).contains("warning"));
    }
}
