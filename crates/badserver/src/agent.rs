//! Agents on a socket that do everything by hand: [`Caller`] for tests, which panics where it is not answered, and what it
//! stands on ([`send`], [`post`]) for whoever has to go on.

#![allow(clippy::missing_panics_doc, reason = "what a test does not find, or not in time, is a panic")]

mod reply;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

pub use reply::{Asks, Reply, post, post_with, send, send_on};

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever talks to this address.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The address.
    pub address: SocketAddr,
    /// How much its sockets take before it reads, if not as much as the system likes.
    window: Option<u32>,
    /// What it shows for itself.
    authorization: Option<&'static str>,
}

impl Caller {
    /// Somebody who talks to this address.
    pub const fn at(address: SocketAddr) -> Self {
        Self { address, window: None, authorization: None }
    }

    /// One whose sockets take little before it reads.
    #[must_use]
    pub const fn narrow(self) -> Self {
        Self { window: Some(64 * 1024), ..self }
    }

    /// The same, as whoever has this token. It is kept for as long as the program runs.
    #[must_use]
    pub fn bearing(self, token: &str) -> Self {
        Self { authorization: Some(Box::leak(format!("Bearer {token}").into_boxed_str())), ..self }
    }

    async fn connect(&self) -> std::io::Result<TcpStream> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(window) = self.window {
            socket.set_recv_buffer_size(window)?;
        }
        in_time(socket.connect(self.address)).await
    }

    /// One request on a connection of its own.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        self.try_send(method, path, headers, body).await.unwrap()
    }

    /// The same, where nobody may be there.
    ///
    /// # Errors
    /// If nobody is there, or the connection breaks before there is a reply.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, String> {
        let stream = self.connect().await.map_err(|error| error.to_string())?;
        let own = self.authorization.map(|shown| ("authorization", shown));
        let headers: Vec<_> = headers.iter().copied().chain(own).collect();
        in_time(reply::send_on(stream, method, path, &headers, body)).await.map(Answer)
    }

    /// A legacy agent.
    pub async fn agent(&self, path: &str) -> Agent<'_> {
        self.agent_with(path, &json!({})).await
    }

    /// One that can do something.
    pub async fn agent_with(&self, path: &str, capabilities: &Value) -> Agent<'_> {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": { "name": "t", "version": "1" } },
        });
        let answer = self.send(Method::POST, path, &[], hello.to_string()).await;
        let session = answer.headers.get("mcp-session-id").expect("a session").to_str().unwrap().to_owned();
        let hello = answer.json().await;
        Agent { web: self, path: path.to_owned(), session, hello }
    }

    /// A modern request.
    pub async fn modern(&self, path: &str, method: &str, mut params: Value) -> Answer {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        if params["_meta"]["io.modelcontextprotocol/clientCapabilities"].is_null() {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str).unwrap_or("-").to_owned();
        let headers =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name.as_str())];
        let named = matches!(method, "tools/call" | "prompts/get" | "resources/read");
        let headers = if named { &headers[..] } else { &headers[..2] };
        let body = json!({ "jsonrpc": "2.0", "id": "m", "method": method, "params": params });
        self.send(Method::POST, path, headers, body.to_string()).await
    }
}

/// A legacy agent that was greeted.
#[derive(Debug)]
pub struct Agent<'a> {
    web: &'a Caller,
    path: String,
    /// Its session.
    pub session: String,
    /// The answer to its greeting.
    pub hello: Value,
}

impl Agent<'_> {
    /// The same agent in the same session, at another address and path.
    #[must_use]
    pub fn also<'b>(&self, web: &'b Caller, path: &str) -> Agent<'b> {
        Agent { web, path: path.to_owned(), session: self.session.clone(), hello: self.hello.clone() }
    }

    /// Posts a message in its session.
    pub async fn post(&self, message: &Value) -> Answer {
        self.post_text(message.to_string()).await
    }

    /// Posts a text in its session, spelt as it is.
    pub async fn post_text(&self, text: String) -> Answer {
        self.web.send(Method::POST, &self.path, &[("mcp-session-id", &self.session)], text).await
    }

    /// Asks, with this id.
    pub async fn request(&self, id: u64, method: &str, params: Value) -> Answer {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
    }

    /// Asks; the answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        // No other request of its session has this id.
        static LAST: AtomicU64 = AtomicU64::new(1_000_000);
        self.request(LAST.fetch_add(1, Ordering::Relaxed), method, params).await.last().await
    }

    /// Calls a tool; the answer.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The session's own stream.
    pub async fn stream(&self, last: Option<&str>) -> Answer {
        let mut headers = vec![("mcp-session-id", self.session.as_str())];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.web.send(Method::GET, &self.path, &headers, String::new()).await
    }

    /// Ends its session.
    pub async fn delete(&self) -> StatusCode {
        self.web
            .send(Method::DELETE, &self.path, &[("mcp-session-id", &self.session)], String::new())
            .await
            .status
    }
}

/// What came back; whatever is missing of it is a panic.
#[derive(Debug)]
pub struct Answer(Reply);

/// An event of a stream.
#[derive(Debug)]
pub struct Event {
    /// Its id.
    pub id: Option<String>,
    /// Its message; null, if it has none.
    pub data: Value,
}

impl Deref for Answer {
    type Target = Reply;

    fn deref(&self) -> &Reply {
        &self.0
    }
}

impl Answer {
    /// The whole body, if it came.
    ///
    /// # Errors
    /// If it is cut off.
    pub async fn body(self) -> Result<Bytes, hyper::Error> {
        in_time(self.0.collect()).await
    }

    /// The whole body.
    pub async fn json(self) -> Value {
        let body = self.body().await.unwrap();
        serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
    }

    /// The next event; `None` when the stream is over. Comments say nothing.
    pub async fn event(&mut self) -> Option<Event> {
        let (id, data) = in_time(self.0.next_event()).await.unwrap()?;
        Some(Event { id, data: serde_json::from_slice(&data).unwrap_or_default() })
    }

    /// Every message, however they came: in an array, or on a stream.
    pub async fn all(mut self) -> Vec<Value> {
        if !self.is_stream() {
            return match self.json().await {
                Value::Array(all) => all,
                one => vec![one],
            };
        }
        let mut all = Vec::new();
        while let Some(event) = self.event().await {
            all.extend((!event.data.is_null()).then_some(event.data));
        }
        all
    }

    /// The last message, however it came.
    pub async fn last(mut self) -> Value {
        if !self.is_stream() {
            return self.json().await;
        }
        let mut last = Value::Null;
        while let Some(event) = self.event().await {
            last = event.data;
        }
        last
    }
}

/// Whether a tool has answered. An error of any kind is no answer.
pub fn is_answered(answer: &Value) -> bool {
    answer["result"]["content"].is_array() && answer["result"].get("isError").is_none()
}

/// The text of a tool's answer.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// What a list names.
pub fn names(answer: &Value, list: &str) -> Vec<String> {
    let of = |one: &Value| {
        ["name", "uri", "uriTemplate"].iter().rev().find_map(|name| one[name].as_str()).unwrap().to_owned()
    };
    answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(of).collect()
}

/// What comes of it, in time.
pub async fn in_time<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("it should not take so long")
}
