//! An agent that speaks raw JSON, so that nothing between the test and the session has an opinion.

use std::collections::{HashMap, VecDeque};

use linetender::Era;
use linetender::session::Agent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::look::in_time;

pub const META: &str = "io.modelcontextprotocol/";

/// An agent, and what it heard that was no answer it waited for.
pub struct Raw {
    agent: Agent,
    /// The revision it speaks.
    pub version: &'static str,
    pub heard: VecDeque<Value>,
    last: u64,
}

impl Raw {
    pub fn new(agent: Agent, version: &'static str) -> Self {
        Self { agent, version, heard: VecDeque::new(), last: 0 }
    }

    pub fn era(&self) -> Era {
        if self.version < "2026" { Era::Legacy } else { Era::Modern }
    }

    pub async fn say(&self, text: impl Into<String>) {
        in_time(self.agent.to.send(text.into().into())).await.unwrap();
    }

    /// The next message, as it was spelt.
    pub async fn hear_text(&mut self) -> String {
        let text = in_time(self.agent.from.recv()).await.expect("the session lives");
        String::from_utf8(text.text().to_vec()).unwrap()
    }

    async fn hear(&mut self) -> Value {
        let text = self.hear_text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Params of this agent's era.
    pub fn params(&self, mut params: Value) -> Value {
        if self.era() == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = self.version.into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({ "roots": {} });
            params["_meta"][format!("{META}clientInfo")] = json!({ "name": "raw", "version": "1" });
        }
        params
    }

    /// Asks, and does not wait for the answer: the id.
    pub async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let (id, params) = (self.last, self.params(params));
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await;
        id
    }

    /// The answer to what was asked; what comes in between is kept.
    pub async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// A request that must be answered with a result.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The next message that is this, notification or question; what comes before it is kept.
    pub async fn next(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(at).unwrap();
        }
        loop {
            let message = self.hear().await;
            if message["method"] == method {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    /// How often it heard this so far.
    pub fn count(&self, method: &str) -> usize {
        self.heard.iter().filter(|message| message["method"] == method).count()
    }

    /// Says hello in its own era: what the server is, as it was answered.
    pub async fn greet(&mut self) -> Value {
        match self.era() {
            Era::Legacy => {
                let params = json!({
                    "protocolVersion": self.version,
                    "capabilities": { "roots": {} },
                    "clientInfo": { "name": "raw", "version": "1" },
                });
                let result = self.result("initialize", params).await;
                self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
                result
            }
            Era::Modern => self.result("server/discover", json!({})).await,
        }
    }

    pub async fn cancel(&self, id: u64) {
        let params = json!({ "requestId": id });
        self.say(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
        )
        .await;
    }
}

/// The members of an object, as they were spelt.
pub fn members(text: &str) -> HashMap<String, String> {
    let members: HashMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}
