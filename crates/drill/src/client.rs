//! As much of an HTTP client as an agent needs. It keeps no connections, so that hanging up is one line.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What came back. Dropped, it hangs up.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    is_stream: bool,
    body: Incoming,
    read: Vec<u8>,
    _connection: JoinSet<()>,
}

/// Sends one request on a connection of its own.
pub(crate) async fn send(
    to: SocketAddr,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Result<Reply, String> {
    let text = |error: &dyn std::fmt::Display| format!("the gateway's HTTP broke: {error}");
    let stream = TcpStream::connect(to).await.map_err(|error| text(&error))?;
    let _ = stream.set_nodelay(true);
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| text(&error))?;
    let mut owner = JoinSet::new();
    owner.spawn(async move {
        let _ = connection.await;
    });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", to.to_string())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| text(&error))?;
    let (head, body) = sender.send_request(request).await.map_err(|error| text(&error))?.into_parts();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    Ok(Reply {
        status: head.status.as_u16(),
        session: header("mcp-session-id").map(str::to_owned),
        is_stream: header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")),
        body,
        read: Vec::new(),
        _connection: owner,
    })
}

impl Reply {
    /// The next message; `None` at the end. An event without data is none, nor is an empty body.
    pub(crate) async fn next(&mut self) -> Result<Option<Value>, String> {
        self.next_text().await?.map(|text| message(&text)).transpose()
    }

    /// The same, as it was spelt.
    pub(crate) async fn next_text(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            if self.is_stream
                && let Some(end) = self.read.windows(2).position(|two| two == b"\n\n")
            {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                match data(&event) {
                    Some(text) => return Ok(Some(text)),
                    None => continue,
                }
            }
            match self.body.frame().await {
                // Some end their lines with CR and LF; a message has neither.
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    self.read.extend(bytes.iter().filter(|byte| **byte != b'\r' || !self.is_stream));
                }
                Some(Err(error)) => return Err(format!("the gateway broke off: {error}")),
                None if self.is_stream || self.read.is_empty() => return Ok(None),
                None => return Ok(Some(std::mem::take(&mut self.read))),
            }
        }
    }
}

fn data(event: &[u8]) -> Option<Vec<u8>> {
    let data = event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data:"))?.trim_ascii();
    (!data.is_empty()).then(|| data.to_vec())
}

fn message(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text)
        .map_err(|error| format!("not a message ({error}): {}", String::from_utf8_lossy(text)))
}
