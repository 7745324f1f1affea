//! The drill's agent: it asks, writes down what it is told, and never tries again by itself.
//!
//! It is the same agent at every door, in front of our library, on a target's pipes, at its address or at its routes, so that
//! what is judged is the door.

mod pipe;
mod routes;
mod told;
mod web;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linetender::{CallError, Line, Tool};
use linetender_badserver::Failure;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(crate) use pipe::Pipe;
pub(crate) use routes::Routes;
pub(crate) use told::Outcome;
pub(crate) use web::{Heard, Web};

use super::memory::{Memory, Notice};
use crate::scenario::Era;

/// No call may take longer: whoever is told nothing until then hung.
pub(crate) const HUNG: Duration = Duration::from_secs(15);

const META: &str = "io.modelcontextprotocol/";

/// Where it stands.
pub(crate) enum Door {
    Line(Line),
    Pipe(Pipe),
    Web(Web),
    Routes(Routes),
}

/// An agent.
pub(crate) struct Agent {
    pub(crate) door: Door,
    era: Era,
    prefix: String,
    last: AtomicU64,
    /// The same one for all agents that follow each other.
    memory: Arc<Memory>,
}

/// A call to be made.
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) nonce: String,
    /// All but the nonce.
    pub(crate) args: Map<String, Value>,
    /// Words by which an error of the server's own is known.
    pub(crate) own: Arc<[String]>,
}

/// What is written down about calls, whichever agent made them.
pub(crate) struct Notes {
    start: Instant,
    calls: Mutex<BTreeMap<String, Made>>,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) at: Duration,
    pub(crate) tool: String,
    pub(crate) told: Option<(Duration, Outcome)>,
}

impl Agent {
    pub(crate) fn new(door: Door, era: Era, prefix: String, memory: Arc<Memory>) -> Self {
        Self { door, era, prefix, last: AtomicU64::new(0), memory }
    }

    /// Says hello in its own era. Whether it was greeted: a server that is down need not be.
    pub(crate) async fn greet(&self) -> bool {
        let info = json!({ "name": "drill", "version": "1" });
        let (id, hello) = match self.era {
            Era::Legacy => self.request(
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }),
            ),
            Era::Modern => self.request("server/discover", json!({})),
        };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let heard = match &self.door {
            Door::Line(_) => return true,
            Door::Routes(routes) => return routes.list().await.is_some(),
            Door::Pipe(pipe) => {
                let heard = pipe.ask(&id, &hello).await;
                if self.era == Era::Legacy && heard.is_some() {
                    pipe.say(&initialized).await;
                }
                heard
            }
            Door::Web(web) => match web.begin(&hello, &initialized).await {
                Heard::Message(text) => Some(text),
                Heard::Status(_) | Heard::NoSession | Heard::Closed => None,
            },
        };
        heard.is_some_and(|text| matches!(Outcome::of_message(text, &[]), Outcome::Answered(_)))
    }

    /// A call of a tool, with its nonce in the arguments.
    pub(crate) async fn call(&self, call: &Call) -> Outcome {
        self.memory.asks(&call.nonce, &call.tool);
        let mut waits = Waits { memory: &self.memory, nonce: &call.nonce, is_over: false };
        let (outcome, notice) = self.exchange(call).await;
        waits.is_over = true;
        let answer = if let Outcome::Answered(text) = &outcome { Some(&**text) } else { None };
        self.memory.hears(&call.nonce, notice, answer);
        outcome
    }

    async fn exchange(&self, call: &Call) -> (Outcome, Notice) {
        let Call { tool, nonce, args, own } = call;
        let read = |text: String| {
            let notice = Notice::in_message(&text);
            (Outcome::of_message(text, own), notice)
        };
        let silent = |outcome| (outcome, Notice::default());
        let mut args = args.clone();
        args.insert("nonce".to_owned(), nonce.as_str().into());
        match &self.door {
            Door::Line(line) => match line.call_tool(tool, args).await {
                Ok(answer) => silent(Outcome::Answered(answer.raw().to_owned())),
                Err(CallError { answered: Some(error), .. }) => {
                    silent(Outcome::of_message(format!(r#"{{"error":{}}}"#, error.raw()), own))
                }
                Err(error) => {
                    (Outcome::Failed(Failure::of_fields(&error.fields())), Notice::in_error(&error))
                }
            },
            Door::Pipe(pipe) => {
                let message = self.tool_call(tool, nonce, &args);
                let _forget = Forget(pipe, nonce);
                match pipe.ask(nonce, &message).await {
                    Some(text) => read(text),
                    None => silent(Outcome::Closed),
                }
            }
            Door::Web(web) => {
                let message = self.tool_call(tool, nonce, &args);
                let mut heard = web.ask(&message).await;
                if matches!(heard, Heard::NoSession) {
                    web.reconnected();
                    self.memory.begins();
                    self.greet().await;
                    heard = web.ask(&message).await;
                }
                match heard {
                    Heard::Message(text) => read(text),
                    Heard::Status(status) => silent(Outcome::Error(format!("HTTP {status}"))),
                    Heard::NoSession => silent(Outcome::Error("HTTP 404".to_owned())),
                    Heard::Closed => silent(Outcome::Closed),
                }
            }
            Door::Routes(routes) => silent(routes.call(&format!("{}{tool}", self.prefix), &args, own).await),
        }
    }

    /// Its id is its nonce.
    fn tool_call(&self, tool: &str, nonce: &str, args: &Map<String, Value>) -> Value {
        let (_, mut message) = self
            .request("tools/call", json!({ "name": format!("{}{tool}", self.prefix), "arguments": args }));
        message["id"] = nonce.into();
        message
    }

    /// Takes a call back. At our library, and where a request has a connection of its own, hanging up is that.
    pub(crate) async fn takes_back(&self, nonce: &str) {
        let params = json!({ "requestId": nonce });
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        match &self.door {
            Door::Pipe(pipe) => pipe.say(&cancelled).await,
            Door::Web(web) if self.era == Era::Legacy => web.tell(&cancelled).await,
            Door::Web(_) | Door::Line(_) | Door::Routes(_) => {}
        }
    }

    /// The list of tools, as it was spelt; nothing if there is none.
    pub(crate) async fn list(&self) -> Option<String> {
        let (id, message) = self.request("tools/list", json!({}));
        let text = match &self.door {
            Door::Line(line) => {
                return line
                    .list_tools()
                    .await
                    .ok()
                    .map(|tools| tools.iter().map(Tool::raw).collect::<Vec<_>>().join("\n"));
            }
            Door::Routes(routes) => return routes.list().await,
            Door::Pipe(pipe) => pipe.ask(&id, &message).await?,
            Door::Web(web) => match web.ask(&message).await {
                Heard::Message(text) => text,
                Heard::Status(_) | Heard::NoSession | Heard::Closed => return None,
            },
        };
        let message: BTreeMap<String, &RawValue> = serde_json::from_str(&text).ok()?;
        message.get("result").map(|result| result.get().to_owned())
    }

    fn request(&self, method: &str, mut params: Value) -> (String, Value) {
        let id = format!("d{}", self.last.fetch_add(1, Ordering::Relaxed));
        if self.era == Era::Modern {
            params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
            params["_meta"][format!("{META}clientCapabilities")] = json!({});
            params["_meta"][format!("{META}clientInfo")] = json!({ "name": "drill", "version": "1" });
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (id, message)
    }

    /// Whether a gateway cannot tell one call of it from a call of another agent.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.era == Era::Modern && matches!(self.door, Door::Web(_) | Door::Routes(_))
    }

    /// How often it had to begin anew.
    pub(crate) fn reconnects(&self) -> u32 {
        match &self.door {
            Door::Web(web) => web.reconnects.load(Ordering::Relaxed),
            Door::Line(_) | Door::Pipe(_) | Door::Routes(_) => 0,
        }
    }
}

/// An agent that waits for a reply, and remembers if it gives up.
struct Waits<'a> {
    memory: &'a Memory,
    nonce: &'a str,
    is_over: bool,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.memory.gives_up(self.nonce);
        }
    }
}

/// A call that nobody waits for any more is not waited for; an agent says so.
struct Forget<'a>(&'a Pipe, &'a str);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

impl Notes {
    #[expect(clippy::disallowed_methods, reason = "histories have times")]
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), calls: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, Made>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asks(&self, nonce: &str, tool: &str) {
        let made = Made { at: self.now(), tool: tool.to_owned(), told: None };
        self.calls().insert(nonce.to_owned(), made);
    }

    pub(crate) fn told(&self, nonce: &str, outcome: Outcome) {
        let at = self.now();
        if let Some(made) = self.calls().get_mut(nonce) {
            made.told = Some((at, outcome));
        }
    }

    /// Nobody waits for this call any more; it must still not run twice.
    pub(crate) fn abandons(&self, nonce: &str) {
        self.calls().remove(nonce);
    }

    pub(crate) fn of(&self, nonce: &str) -> Option<Made> {
        self.calls().get(nonce).cloned()
    }

    /// Everything that was written down.
    pub(crate) fn take(&self) -> BTreeMap<String, Made> {
        std::mem::take(&mut *self.calls())
    }
}
