//! Agents on a socket that do everything by hand.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever talks to this address.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub address: SocketAddr,
    /// How much its sockets take before it reads, if not as much as the system likes.
    window: Option<u32>,
}

impl Caller {
    pub const fn at(address: SocketAddr) -> Self {
        Self { address, window: None }
    }

    /// One whose sockets take little before it reads.
    pub const fn narrow(self) -> Self {
        Self { window: Some(64 * 1024), ..self }
    }

    async fn connect(&self) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
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
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = self.connect().await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let (head, body) = in_time(sender.send_request(request)).await?.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body, read: String::new() })
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
pub struct Agent<'a> {
    web: &'a Caller,
    path: String,
    pub session: String,
    pub hello: Value,
}

impl Agent<'_> {
    pub async fn post(&self, message: &Value) -> Answer {
        self.web
            .send(Method::POST, &self.path, &[("mcp-session-id", &self.session)], message.to_string())
            .await
    }

    pub async fn request(&self, id: u64, method: &str, params: Value) -> Answer {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.request(7, method, params).await.last().await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The session's own stream.
    pub async fn stream(&self, last: Option<&str>) -> Answer {
        let mut headers = vec![("mcp-session-id", self.session.as_str())];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.web.send(Method::GET, &self.path, &headers, String::new()).await
    }

    pub async fn delete(&self) -> StatusCode {
        self.web
            .send(Method::DELETE, &self.path, &[("mcp-session-id", &self.session)], String::new())
            .await
            .status
    }
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    read: String,
}

/// An event of a stream.
#[derive(Debug)]
pub struct Event {
    pub id: Option<String>,
    pub data: Value,
}

impl Answer {
    pub fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    /// The whole body, if it came.
    pub async fn body(self) -> Result<Bytes, hyper::Error> {
        Ok(in_time(self.body.collect()).await?.to_bytes())
    }

    pub async fn json(self) -> Value {
        let body = self.body().await.unwrap();
        serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
    }

    /// The next event; `None` when the stream is over. Comments say nothing.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(|value| value.trim().to_owned())
                };
                let found = field("data:").map(|data| Event {
                    id: field("id:"),
                    data: serde_json::from_str(&data).unwrap_or_default(),
                });
                self.read = self.read.split_off(self.read.len() - rest.len());
                match found {
                    Some(found) => return Some(found),
                    None => continue,
                }
            }
            let frame = in_time(self.body.frame()).await?.unwrap();
            self.read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
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

pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

pub fn names(answer: &Value, list: &str) -> Vec<String> {
    let of = |one: &Value| {
        ["name", "uri", "uriTemplate"].iter().rev().find_map(|name| one[name].as_str()).unwrap().to_owned()
    };
    answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(of).collect()
}

pub async fn in_time<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("it should not take so long")
}
