//! From an HTTP request to what it asks for.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde_json::Value;

use super::body::{Gone, Out};
use super::calls::Call;
use super::house::House;
use super::manners::{Manners, Speaks, SseDoor};
use super::reply::{self, Answer};
use super::tap::Tap;
use super::{faults, legacy, methods, modern, sse_door, streams};
use crate::exact;

/// Where MCP is served. The second is where the tool `redirect` points to.
const PATHS: [&str; 2] = ["/mcp", "/moved"];

/// A path at which everybody is told to come back later.
const TOO_MUCH: &str = "/too-much";
/// The largest request that is read.
const LARGEST: usize = 64 << 20;

/// The era that a request is served in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// A request and where it came from.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) house: Arc<House>,
    pub(super) tap: Arc<Tap>,
    pub(super) head: Arc<Parts>,
    pub(super) message: Arc<Value>,
}

/// Serves one request.
pub(super) async fn serve(
    house: Arc<House>,
    tap: Arc<Tap>,
    request: Request<Incoming>,
) -> Result<Answer, Gone> {
    let _counted = house.tally.request(request.method());
    let (head, body) = request.into_parts();
    let read = Limited::new(body, LARGEST).collect().await.map_err(|_| Gone::cut())?.to_bytes();
    if let Some(text) = std::str::from_utf8(&read).ok().and_then(exact::answer) {
        return Ok(reply::answer(200, "application/json", Out::whole(text)));
    }
    let message = if head.method == Method::POST { serde_json::from_slice(&read) } else { Ok(Value::Null) };
    house.tally.saw(&head.method, head.uri.path(), &head.headers, message.as_ref().unwrap_or(&Value::Null));
    if head.uri.path() == TOO_MUCH {
        return Ok(reply::text(429, "too much"));
    }
    if !PATHS.contains(&head.uri.path()) && !sse_door::PATHS.contains(&head.uri.path()) {
        return Ok(reply::text(404, "nothing here"));
    }
    let Ok(message) = message else {
        return Ok(reply::json(400, &reply::error(&Value::Null, -32700, "not JSON")));
    };
    if message.is_array() {
        return Ok(reply::json(400, &reply::error(&Value::Null, -32600, "no batches")));
    }
    let asked = Asked { house: Arc::clone(&house), tap, head: Arc::new(head), message: Arc::new(message) };
    asked.answer().await
}

impl Asked {
    async fn answer(self) -> Result<Answer, Gone> {
        let kind = if self.head.method == Method::POST { self.method() } else { self.head.method.as_str() };
        if let Some(refused) = self.house.manners().wants.and_then(|wants| wants.refuse(&self, kind)) {
            self.house.tally.refused();
            self.reads();
            self.refused_by_rule(Some("auth"));
            return Ok(refused);
        }
        self.reads();
        match self.house.meet(kind) {
            Some((tool, arguments)) if tool == "sleep" => {
                tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0))).await;
            }
            Some((tool, _)) if tool == "hang" => std::future::pending().await,
            Some((tool, arguments)) => {
                let call = Call::new(self.clone(), Era::Legacy, tool, arguments);
                if let Some(answer) = faults::run(&call).await {
                    return answer;
                }
            }
            None => {}
        }
        let manners = self.house.manners();
        if sse_door::PATHS.contains(&self.head.uri.path()) && manners.sse != SseDoor::Streamable {
            return sse_door::serve(self, &manners).await;
        }
        match self.head.method {
            Method::POST => self.post(&manners).await,
            Method::GET => Ok(streams::get(&self, &manners)),
            Method::DELETE => Ok(legacy::delete(&self, &manners)),
            _ => Ok(reply::text(405, "no such thing")),
        }
    }

    async fn post(self, manners: &Manners) -> Result<Answer, Gone> {
        if !self.accepts("application/json") || !self.accepts("text/event-stream") {
            let refused =
                reply::error(&Value::Null, -32000, "both JSON and event streams have to be accepted");
            return Ok(reply::json(406, &refused));
        }
        let era = self.era(manners.speaks);
        let admitted = match era {
            Era::Legacy => legacy::admit(&self, manners),
            Era::Modern => modern::admit(&self, manners),
        };
        if let Err(refused) = admitted {
            self.refused_by_rule(match (era, refused.status().as_u16()) {
                (Era::Legacy, 400 | 404) => Some("session-lost"),
                (Era::Modern, 400) => Some("protocol"),
                _ => None,
            });
            return Ok(*refused);
        }
        if self.message.get("method").is_none() {
            self.house.told(&self.message);
        }
        // Notifications, and answers to requests of this server's.
        if self.message.get("id").is_none() || self.message.get("method").is_none() {
            return Ok(reply::accepted());
        }
        methods::answer(self, era, manners).await
    }

    /// Writes down that a call has come.
    fn reads(&self) {
        if self.method() == "tools/call" {
            self.house.write("read", self.nonce());
        }
    }

    /// Writes down that a call is refused by the rules of MCP, and whether it was run before.
    fn refused_by_rule(&self, reason: Option<&str>) {
        if self.method() != "tools/call" {
            return;
        }
        if self.house.manners().runs_what_it_refuses {
            self.runs();
        }
        if let Some(reason) = reason {
            self.house.refuses(reason, self.nonce());
        }
    }

    /// Writes down that the call is executed, and in which session if the server keeps anything there.
    pub(super) fn runs(&self) {
        match self.header(legacy::SESSION) {
            Some(session) => self.house.runs_in(session, self.nonce()),
            None => self.house.write("run", self.nonce()),
        }
    }

    fn era(&self, speaks: Speaks) -> Era {
        let newer = |version: &str| version >= "2026";
        let modern = self.meta(modern::VERSION).as_str().is_some_and(newer)
            || self.header("mcp-protocol-version").is_some_and(newer)
            || self.method() == "server/discover";
        match speaks {
            Speaks::Legacy => Era::Legacy,
            Speaks::Modern => Era::Modern,
            Speaks::Both if modern => Era::Modern,
            Speaks::Both => Era::Legacy,
        }
    }

    pub(super) fn id(&self) -> &Value {
        &self.message["id"]
    }

    pub(super) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(super) fn params(&self) -> &Value {
        &self.message["params"]
    }

    pub(super) fn meta(&self, key: &str) -> &Value {
        &self.message["params"]["_meta"][key]
    }

    pub(super) fn nonce(&self) -> &str {
        self.params()["arguments"]["nonce"].as_str().unwrap_or("-")
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn accepts(&self, kind: &str) -> bool {
        self.header("accept").is_some_and(|accept| accept.contains(kind) || accept.contains("*/*"))
    }
}
