//! As much of an HTTP client as an agent needs. It keeps no connections, so that hanging up is one line.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What came back. Dropped, it hangs up.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: Incoming,
    read: Vec<u8>,
    /// How much of that was searched for the end of an event, and has none.
    searched: usize,
    connection: JoinSet<()>,
}

/// Who asks: what its requests say of themselves differs.
#[derive(Clone, Copy, Debug)]
pub enum Asks<'a> {
    /// A legacy agent, in its session if it has one.
    Legacy(Option<&'a str>),
    /// A modern agent.
    Modern,
}

/// Posts a message, as an agent of its era does, on a connection of its own.
///
/// # Errors
/// If the connection breaks before there is a reply.
pub async fn post(to: SocketAddr, path: &str, asks: Asks<'_>, message: &Value) -> Result<Reply, String> {
    post_with(to, path, asks, &[], message).await
}

/// The same with headers of its own.
///
/// # Errors
/// If the connection breaks before there is a reply.
pub async fn post_with(
    to: SocketAddr,
    path: &str,
    asks: Asks<'_>,
    own: &[(&str, &str)],
    message: &Value,
) -> Result<Reply, String> {
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (method, name) = (of(&message["method"]), of(&message["params"]["name"]));
    let mut headers = own.to_vec();
    match asks {
        Asks::Legacy(session) => headers.extend(session.map(|id| ("mcp-session-id", id))),
        Asks::Modern => {
            headers.extend([("mcp-protocol-version", "2026-07-28"), ("mcp-method", method.as_str())]);
            headers.extend((method == "tools/call").then_some(("mcp-name", name.as_str())));
        }
    }
    send(to, Method::POST, path, &headers, message.to_string()).await
}

/// Sends one request on a connection of its own.
///
/// # Errors
/// If the connection breaks before there is a reply.
pub async fn send(
    to: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Reply, String> {
    let stream = TcpStream::connect(to).await.map_err(|error| broke(&error))?;
    send_on(stream, method, path, headers, body).await
}

/// The same on a connection that is open, and ends with the reply.
///
/// # Errors
/// If it breaks before there is a reply.
pub async fn send_on(
    stream: TcpStream,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Reply, String> {
    let to = stream.peer_addr().map_err(|error| broke(&error))?;
    let _ = stream.set_nodelay(true);
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| broke(&error))?;
    let mut owner = JoinSet::new();
    owner.spawn(async move {
        let _ = connection.await;
    });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", to.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| broke(&error))?;
    let (head, body) = sender.send_request(request).await.map_err(|error| broke(&error))?.into_parts();
    Ok(Reply {
        status: head.status,
        headers: head.headers,
        body,
        read: Vec::new(),
        searched: 0,
        connection: owner,
    })
}

fn broke(error: &dyn std::fmt::Display) -> String {
    format!("the gateway's HTTP broke: {error}")
}

impl Reply {
    /// The session that it gave.
    pub fn session(&self) -> Option<&str> {
        self.headers.get("mcp-session-id").and_then(|value| value.to_str().ok())
    }

    /// Whether it is a stream of events.
    pub fn is_stream(&self) -> bool {
        let kind = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The next message; `None` at the end. An event without data is none, nor is an empty body.
    ///
    /// # Errors
    /// If it is cut off, or is no message.
    pub async fn next(&mut self) -> Result<Option<Value>, String> {
        self.next_text().await?.map(|text| message(&text)).transpose()
    }

    /// The same, as it was spelt.
    ///
    /// # Errors
    /// If it is cut off.
    pub async fn next_text(&mut self) -> Result<Option<Vec<u8>>, String> {
        if self.is_stream() {
            while let Some((_, data)) = self.next_event().await? {
                if !data.is_empty() {
                    return Ok(Some(data));
                }
            }
            return Ok(None);
        }
        while self.read_on().await? {}
        Ok((!self.read.is_empty()).then(|| std::mem::take(&mut self.read)))
    }

    /// The id and the data of the next event that has a field for data; `None` at the end of the stream.
    ///
    /// # Errors
    /// If it is cut off.
    pub async fn next_event(&mut self) -> Result<Option<(Option<String>, Vec<u8>)>, String> {
        loop {
            let found = self.read[self.searched..].windows(2).position(|two| two == b"\n\n");
            if let Some(end) = found {
                let event: Vec<u8> = self.read.drain(..self.searched + end + 2).collect();
                self.searched = 0;
                let field = |name: &[u8]| {
                    let mut lines = event.split(|byte| *byte == b'\n');
                    lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii)
                };
                if let Some(data) = field(b"data:") {
                    let id = field(b"id:").map(|id| String::from_utf8_lossy(id).into_owned());
                    return Ok(Some((id, data.to_vec())));
                }
            } else {
                self.searched = self.read.len().saturating_sub(1);
                if !self.read_on().await? {
                    return Ok(None);
                }
            }
        }
    }

    /// The whole body, if it came.
    ///
    /// # Errors
    /// If it is cut off.
    pub async fn collect(self) -> Result<Bytes, hyper::Error> {
        let Self { body, connection, .. } = self;
        let body = body.collect().await;
        drop(connection);
        Ok(body?.to_bytes())
    }

    /// Reads on; whether there was anything.
    async fn read_on(&mut self) -> Result<bool, String> {
        match self.body.frame().await {
            // Some end their lines with CR and LF; a message has neither.
            Some(Ok(frame)) => {
                let (bytes, is_stream) = (frame.into_data().unwrap_or_default(), self.is_stream());
                self.read.extend(bytes.iter().filter(|byte| **byte != b'\r' || !is_stream));
                Ok(true)
            }
            Some(Err(error)) => Err(format!("the gateway broke off: {error}")),
            None => Ok(false),
        }
    }
}

fn message(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text)
        .map_err(|error| format!("not a message ({error}): {}", String::from_utf8_lossy(text)))
}
