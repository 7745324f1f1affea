//! As much of HTTP/1.1 as a simulated host needs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::net::End;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// Reads one; `None` if the connection ends.
pub(super) async fn request(end: &mut End, buffer: &mut Vec<u8>) -> Option<Request> {
    let head = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break buffer.drain(..at + 4).collect::<Vec<u8>>();
        }
        more(end, buffer).await?;
    };
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (first.next()?, first.next()?);
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    while buffer.len() < length {
        more(end, buffer).await?;
    }
    Some(Request { method, path, headers, body: buffer.drain(..length).collect() })
}

async fn more(end: &mut End, buffer: &mut Vec<u8>) -> Option<()> {
    let read = end.read_buf(buffer).await;
    matches!(read, Ok(1..)).then_some(())
}

/// A whole response.
pub(super) async fn respond(end: &mut End, status: u16, headers: &[(&str, &str)], body: &str) -> bool {
    let mut text = format!("HTTP/1.1 {status} Simulated\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(body);
    end.write_all(text.as_bytes()).await.is_ok()
}

/// The beginning of a stream of events.
pub(super) async fn events(end: &mut End) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    end.write_all(head.as_bytes()).await.is_ok()
}

/// One event.
pub(super) async fn event(end: &mut End, id: Option<&str>, data: &str) -> bool {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let event = format!("{id}data: {data}\n\n");
    end.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await.is_ok()
}

/// The end of a stream.
pub(super) async fn over(end: &mut End) -> bool {
    end.write_all(b"0\r\n\r\n").await.is_ok()
}
