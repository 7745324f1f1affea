//! A client that hides nothing: bytes out, bytes in, and how it ended.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Manners, WebServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server and its book.
pub struct Web {
    pub server: WebServer,
    book: PathBuf,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    Fin,
    Reset,
}

/// All that came back on a connection.
#[derive(Debug)]
pub struct Heard {
    pub text: String,
    pub end: End,
}

pub fn web(change: impl FnOnce(&mut Manners)) -> Web {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let book = std::env::temp_dir().join(format!("linetender-web-{}-{number}", std::process::id()));
    let mut config = Config { book: Some(book.clone()), ..Config::default() };
    change(&mut config.manners);
    Web { server: WebServer::start(config).unwrap(), book }
}

/// A server whose tools can be called without a handshake.
pub fn plain() -> Web {
    web(|manners| manners.stateless = true)
}

pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

pub async fn eventually(mut look: impl FnMut() -> bool) {
    in_time(async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

pub fn call(tool: &str, mut arguments: Value) -> Value {
    arguments["nonce"] = "a".into();
    json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": tool, "arguments": arguments, "_meta": { "progressToken": "p" } },
    })
}

pub fn ask(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {} })
}

/// A modern request, and the headers that belong to it.
pub fn modern(method: &str, mut params: Value) -> (Value, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    let headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
    (json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }), headers)
}

/// The text of a POST. Without `connection: close` in its headers the connection stays.
pub fn post(headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub fn get(headers: &str) -> String {
    format!("GET /mcp HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n{headers}\r\n")
}

/// Sends, and hears everything until the connection ends.
pub async fn exchange(to: SocketAddr, text: &str) -> Heard {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    hear(&mut stream).await
}

pub async fn hear(stream: &mut TcpStream) -> Heard {
    let mut bytes = Vec::new();
    let end = match in_time(stream.read_to_end(&mut bytes)).await {
        Ok(_) => End::Fin,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => End::Reset,
        Err(error) => panic!("{error}"),
    };
    Heard { text: String::from_utf8_lossy(&bytes).into_owned(), end }
}

/// Reads until this was heard.
pub async fn hear_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut heard = String::new();
    let mut piece = [0; 4096];
    while !heard.contains(wanted) {
        let read = in_time(stream.read(&mut piece)).await.unwrap();
        assert!(read > 0, "it ended after {heard:?}");
        heard += &String::from_utf8_lossy(&piece[..read]);
    }
    heard
}

impl Web {
    pub fn addr(&self) -> SocketAddr {
        self.server.address()
    }

    /// One POST on a connection of its own.
    pub async fn post(&self, headers: &str, body: &Value) -> Heard {
        exchange(self.addr(), &post(&format!("connection: close\r\n{headers}"), body)).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Heard {
        self.post("", &call(tool, arguments)).await
    }

    pub async fn modern(&self, method: &str, params: Value) -> Heard {
        let (body, headers) = modern(method, params);
        self.post(&headers, &body).await
    }

    /// How often the call of [`call`] was run, by the book.
    pub fn runs(&self) -> u32 {
        Book::at(&self.book).runs().get("a").copied().unwrap_or(0)
    }

    pub fn reads(&self) -> usize {
        let text = std::fs::read_to_string(&self.book).unwrap();
        text.lines().filter(|line| line.starts_with("read a ")).count()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.book);
    }
}

impl Heard {
    pub fn status(&self) -> u16 {
        self.text.split(' ').nth(1).unwrap_or_else(|| panic!("{self:?}")).parse().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next()?;
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(self.body()).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The data of each event, in order.
    pub fn events(&self) -> Vec<&str> {
        self.body().lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }

    pub fn id_of_last_event(&self) -> Option<&str> {
        self.body().lines().filter_map(|line| line.strip_prefix("id: ")).next_back()
    }

    /// Whether a chunked body was ended as it should be.
    pub fn whole(&self) -> bool {
        self.text.ends_with("\r\n0\r\n\r\n")
    }
}
