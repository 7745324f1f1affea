//! One of many agents: it calls, listens, goes in the middle of a call and comes back, and knows what is its own.

use std::collections::BTreeMap;
use std::time::Instant;

use linetender::Era;
use serde_json::{Value, json};

use super::super::HUNG;
use super::ends::Ends;

/// Rounds of calls before it goes and comes back.
const ROUNDS: u64 = 20;

const META: &str = "io.modelcontextprotocol/";

/// What a call was told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::soak) enum Told {
    Answer,
    NotExecuted,
    Unknown,
    /// Its agent went before.
    Nothing,
}

/// What an agent did and heard, over all its sessions.
#[derive(Debug, Default)]
pub(in crate::soak) struct Life {
    pub(in crate::soak) sessions: u64,
    /// By nonce.
    pub(in crate::soak) calls: Vec<(String, Told)>,
    pub(in crate::soak) notifications: u64,
    pub(in crate::soak) questions: u64,
}

/// One session of an agent.
struct One {
    ends: Ends,
    era: Era,
    server: Era,
    /// Its name, which is in everything that is its own.
    name: String,
    /// The calls that are open, by id: tool and nonce.
    open: BTreeMap<u64, (&'static str, String)>,
    last: u64,
}

/// Comes and goes until the time is over. An error is a finding.
pub(in crate::soak) async fn live(
    open: impl Fn() -> Result<Ends, String>,
    server: Era,
    number: u64,
    end: Instant,
) -> Result<Life, String> {
    live_as(open, server, number, end, 0).await
}

/// The same for an agent that was here `before`, in so many sessions.
#[expect(clippy::disallowed_methods, reason = "it takes so long, by the clock")]
pub(in crate::soak) async fn live_as(
    open: impl Fn() -> Result<Ends, String>,
    server: Era,
    number: u64,
    end: Instant,
    before: u64,
) -> Result<Life, String> {
    let mut life = Life::default();
    let era = if number.is_multiple_of(2) { Era::Legacy } else { Era::Modern };
    while Instant::now() < end {
        let name = format!("a{number}s{}", before + life.sessions);
        life.sessions += 1;
        let mut one = One { ends: open()?, era, server, name, open: BTreeMap::new(), last: 0 };
        one.begin().await?;
        for round in 0..ROUNDS {
            if Instant::now() >= end {
                break;
            }
            one.call("write").await?;
            let tools = ["progress", "sleep", "touch", "question"];
            one.call(tools[usize::try_from((round + number) % 4).unwrap_or(0)]).await?;
            while !one.open.is_empty() {
                one.hear(&mut life).await?;
            }
        }
        // It goes in the middle of its calls.
        for tool in ["sleep", "progress"] {
            one.call(tool).await?;
        }
        life.calls.extend(one.open.into_values().map(|(_, nonce)| (nonce, Told::Nothing)));
    }
    Ok(life)
}

impl One {
    fn uri(&self) -> String {
        format!("note://{}", self.name)
    }

    async fn say(&mut self, message: Value) -> Result<(), String> {
        let sent = self.ends.say(message.to_string()).await;
        sent.ok_or_else(|| format!("{}: the session is gone", self.name))
    }

    async fn ask(&mut self, method: &str, mut params: Value) -> Result<u64, String> {
        self.last += 1;
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({});
        }
        let id = self.last;
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        Ok(id)
    }

    /// Says hello, and what it wants to hear of: a resource of its own.
    async fn begin(&mut self) -> Result<(), String> {
        let uri = self.uri();
        let client = json!({ "name": self.name, "version": "1" });
        let hello = match self.era {
            Era::Legacy => {
                let hello =
                    json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
                self.ask("initialize", hello).await?
            }
            Era::Modern => self.ask("server/discover", json!({})).await?,
        };
        let answer = self.next().await?;
        // A server that is down for as long as that is no finding here.
        if answer["id"] != hello || answer.get("result").is_none() && answer["error"]["data"].is_null() {
            return Err(format!("{}: greeted with {answer}", self.name));
        }
        match self.era {
            Era::Legacy => {
                self.ask("resources/subscribe", json!({ "uri": uri })).await?;
                let answer = self.next().await?;
                // One that was lost with the keeper was told so, like any call.
                if answer["result"] != json!({}) && answer["error"]["data"].is_null() {
                    return Err(format!("{}: subscribed, and was told {answer}", self.name));
                }
            }
            Era::Modern => {
                let wanted = json!({ "resourceSubscriptions": [uri] });
                let id = self.ask("subscriptions/listen", json!({ "notifications": wanted })).await?;
                let first = self.next().await?;
                if first["params"]["_meta"][format!("{META}subscriptionId")] != id {
                    return Err(format!("{}: listens, and was told {first}", self.name));
                }
            }
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Value, String> {
        match tokio::time::timeout(HUNG, self.ends.hear()).await {
            Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Ok(None) => Err(format!("{}: the session ended", self.name)),
            Err(_) => {
                Err(format!("{}: hung after request {}, with {:?} open", self.name, self.last, self.open))
            }
        }
    }

    async fn call(&mut self, tool: &'static str) -> Result<(), String> {
        // A legacy server cannot tell whose answer it gets, so it may only be asked by one at a time.
        let tool = if tool == "question" && self.server == Era::Legacy { "write" } else { tool };
        let nonce = format!("{}n{}", self.name, self.last);
        let arguments = json!({ "nonce": nonce, "ms": 1, "times": 2, "uri": self.uri() });
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": self.last + 1 },
        });
        let id = self.ask("tools/call", params).await?;
        self.open.insert(id, (tool, nonce));
        Ok(())
    }

    /// One message, which has to be its own.
    async fn hear(&mut self, life: &mut Life) -> Result<(), String> {
        let message = self.next().await?;
        let not_mine =
            || format!("{} heard what is not its own, with {:?} open: {message}", self.name, self.open);
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/progress") => {
                let open = params["progressToken"].as_u64().and_then(|token| self.open.get(&token));
                if open.is_none_or(|(_, nonce)| params["message"] != **nonce) {
                    return Err(not_mine());
                }
                life.notifications += 1;
            }
            Some("notifications/resources/updated") if params["uri"] == self.uri() => life.notifications += 1,
            Some("roots/list") if self.open.values().any(|(tool, _)| *tool == "question") => {
                life.questions += 1;
                let roots = json!({ "roots": [{ "uri": self.uri() }] });
                self.say(json!({ "jsonrpc": "2.0", "id": message["id"], "result": roots })).await?;
            }
            // A question that it was asked, and that nobody wants the answer to any more.
            Some("notifications/cancelled") if params["requestId"].is_u64() => {}
            Some(_) => return Err(not_mine()),
            None => {
                let open = message["id"].as_u64().and_then(|id| self.open.get(&id)).ok_or_else(not_mine)?;
                let told = self.told(open, &message["result"]).ok_or_else(not_mine)?;
                // What a question came to is not in the book: a modern one is asked twice.
                if open.0 != "question" {
                    life.calls.push((open.1.clone(), told));
                }
                self.open.remove(&message["id"].as_u64().unwrap_or_default());
            }
        }
        Ok(())
    }

    /// What a call was told, if it is its own answer.
    fn told(&self, (tool, nonce): &(&'static str, String), result: &Value) -> Option<Told> {
        let text = result["content"][0]["text"].as_str();
        if result["isError"] == true {
            return match result["_meta"]["linetender"]["delivery"].as_str()? {
                "not executed" => Some(Told::NotExecuted),
                _ => Some(Told::Unknown),
            };
        }
        let mine = match (*tool, self.era) {
            ("question", Era::Modern) => result["resultType"] == "input_required",
            ("question", Era::Legacy) => text?.contains(&format!("{}\"", self.uri())),
            _ => serde_json::from_str::<Value>(text?).ok()?["nonce"] == **nonce,
        };
        mine.then_some(Told::Answer)
    }
}
