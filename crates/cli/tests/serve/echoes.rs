//! A hostile HTTP server: the first part of a request's path says what is wrong with its answer, and the answer repeats
//! everything that it was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// What can be wrong.
pub(crate) const FAULTS: [&str; 8] = ["500", "401", "html", "error", "junk", "away", "busy", "drop"];

/// It listens until the process ends.
pub(crate) struct Echoes {
    pub(crate) at: SocketAddr,
    heard: Arc<Mutex<String>>,
}

/// What a server of its own choosing answers at `/tools`.
pub(crate) type Tools = fn() -> Value;

impl Echoes {
    pub(crate) fn listen(tools: Tools) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, heard) = (listener.local_addr().unwrap(), Arc::<Mutex<String>>::default());
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hears = Arc::clone(&hears);
                std::thread::spawn(move || answer(stream, tools, &hears));
            }
        });
        Self { at, heard }
    }

    /// Everything that it was sent so far.
    pub(crate) fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }
}

/// One request of a connection, and an answer to it.
fn answer(mut stream: TcpStream, tools: Tools, heard: &Mutex<String>) -> Option<()> {
    let mut from = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let whole = format!("{head}{asked}\n");
    heard.lock().ok()?.push_str(&whole);
    let fault = head.split(['/', '?', ' ']).nth(2).unwrap_or_default().to_owned();
    let one_line = head.replace("\r\n", " | ");
    let echo =
        format!("you said: {one_line}\n{head}\u{1b}[31m\u{202e}1999-12-31T23:59:59.000Z  1  bank #1 up\n");
    if fault == "tools" && asked["method"] == "subscriptions/listen" {
        return restless(&mut stream, &asked["id"]);
    }
    let json = "Content-Type: application/json\r\n";
    let (status, headers, body) = match fault.as_str() {
        "500" => ("500 Oh", String::new(), echo),
        "401" => ("401 Who", format!("WWW-Authenticate: Bearer realm=\"{one_line}\"\r\n"), echo),
        "html" => ("200 OK", "Content-Type: text/html\r\n".to_owned(), echo),
        "error" => {
            let error =
                json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -1, "message": echo } });
            ("200 OK", json.to_owned(), error.to_string())
        }
        "junk" => ("200 OK", json.to_owned(), echo),
        "away" => ("307 Away", format!("Location: http://elsewhere.invalid/{}\r\n", spelt(&one_line)), echo),
        "busy" => ("503 Later", "Retry-After: 1\r\n".to_owned(), echo),
        "tools" => ("200 OK", json.to_owned(), listed(&asked, tools)),
        _ => return None,
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// Says again and again that its tools changed.
fn restless(stream: &mut TcpStream, id: &Value) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let mut say = |method: &str, params: &Value| {
        let event = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        stream.write_all(format!("data: {event}\n\n").as_bytes()).ok()
    };
    let wants = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
    say("notifications/subscriptions/acknowledged", &wants)?;
    loop {
        std::thread::park_timeout(Duration::from_millis(20));
        say("notifications/tools/list_changed", &json!({ "_meta": meta }))?;
    }
}

/// A modern server whose tools are of its own choosing.
fn listed(asked: &Value, tools: Tools) -> String {
    let reply = match asked["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({ "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "x", "version": "1" }, "ttlMs": 0, "cacheScope": "private",
        } }),
        "tools/list" => json!({ "result": {
            "resultType": "complete", "tools": tools(), "ttlMs": 0, "cacheScope": "private",
        } }),
        _ => json!({ "error": { "code": -32601, "message": "no" } }),
    };
    let mut whole = json!({ "jsonrpc": "2.0", "id": asked["id"] });
    whole.as_object_mut().unwrap().extend(reply.as_object().unwrap().clone());
    whole.to_string()
}

/// As a part of an address.
fn spelt(text: &str) -> String {
    text.replace('%', "%25").replace(' ', "%20").replace('|', "%7C").replace('"', "%22")
}
