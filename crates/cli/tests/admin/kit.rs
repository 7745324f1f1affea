//! A gateway with an admin address, and somebody who asks there byte by byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) const LINETENDER: &str = env!("CARGO_BIN_EXE_linetender");

pub(crate) const TOKEN: &str = "admin-token-0123456789";

/// Longer than anything here may take, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway in a folder of its own. Both are gone with it.
pub(crate) struct House {
    pub(crate) folder: PathBuf,
    serves: Child,
    /// Address and port for administrators.
    pub(crate) address: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl House {
    /// Serves these servers, in whose text `{bad}` stands for one that misbehaves.
    pub(crate) fn up(name: &str, servers: &str) -> Self {
        let folder = folder(name);
        std::fs::write(folder.join("token"), format!("{TOKEN}\n")).unwrap();
        let gateway = "[gateway]\nlisten = '127.0.0.1:0'\n[gateway.admin]\nlisten = '127.0.0.1:0'\ntoken = '${file:token}'\n";
        std::fs::write(folder.join("linetender.toml"), with_servers(&format!("{gateway}{servers}"))).unwrap();
        let serves = serve(&folder).args(["--log", "log"]).stdin(Stdio::null()).spawn().unwrap();
        let mut house = Self { folder, serves, address: String::new() };
        let said = house.until("an address", || {
            let log = house.log();
            let line = log.lines().find(|line| line.contains("serving the admin address"))?;
            Some(line.split("http://").nth(1)?.trim_end_matches('/').to_owned())
        });
        house.address = said;
        house
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// What this finds, as soon as it finds it.
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{}", self.log());
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Asks with these headers, as they are, and this body.
    pub(crate) fn ask_as(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request.extend([*name, ": ", *value, "\r\n"]);
        }
        self.ask_raw(format!("{request}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    /// Sends these bytes, and reads until the end.
    pub(crate) fn ask_raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may answer before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Asks with the token.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Answer {
        self.ask_with(method, path, "", &[])
    }

    pub(crate) fn ask_with(&self, method: &str, path: &str, body: &str, more: &[(&str, &str)]) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![("Host", &*self.address), ("Authorization", &*bearer)];
        headers.extend(more);
        self.ask_as(method, path, &headers, body)
    }

    /// The line of a server, from the status.
    pub(crate) fn line(&self, server: &str) -> Option<Value> {
        let status = self.ask("GET", "/api/v1/status").json();
        status["lines"].as_array()?.iter().find(|line| line["server"] == server).cloned()
    }

    pub(crate) fn wait_for_state(&self, server: &str, state: &str) -> Value {
        self.until(&format!("{server} {state}"), || self.line(server).filter(|line| line["state"] == state))
    }

    /// The status of a response to HEAD.
    pub(crate) fn ask_head(&self, path: &str) -> u16 {
        self.ask("HEAD", path).status
    }

    /// The lines of a stream of events, from after its greeting on.
    pub(crate) fn events(&self, query: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (host, path) = (&self.address, format!("/api/v1/events{query}"));
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n")
            .unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while !line.starts_with(": watching") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        lines
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("linetender-admin-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn with_servers(config: &str) -> String {
    config.replace("{bad}", &format!("command = '{LINETENDER}'\nargs = ['__badserver']"))
}

/// `linetender serve` in this folder.
pub(crate) fn serve(folder: &std::path::Path) -> Command {
    let mut command = Command::new(LINETENDER);
    command.current_dir(folder).args(["serve", "--config", "linetender.toml"]);
    for name in ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
        command.env(name, folder);
    }
    command
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.serves.kill();
        let _ = self.serves.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
