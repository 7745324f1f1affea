//! Servers that speak HTTP+SSE of 2024-11-05, through `linetender run` and `linetender serve`: killed, and started again at the
//! same port. Ours always, and the official Python SDK's where `tools/real-servers` has installed it.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

mod agent;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agent::{Agent, LINETENDER, PATIENCE};
use serde_json::{Value, json};

/// How a server is started, and what it is called by.
struct Kind {
    name: &'static str,
    argv: Vec<String>,
    /// Whether its tools are those of the official SDK's server.
    python: bool,
}

/// A server at a port that is its own, and a book of what it ran.
struct Server {
    kind: Kind,
    port: u16,
    book: PathBuf,
    process: Child,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn kinds() -> Vec<Kind> {
    let ours = ["__badserver", "--http"].map(str::to_owned);
    let mut kinds = vec![Kind {
        name: "badserver",
        argv: std::iter::once(LINETENDER.to_owned()).chain(ours).collect(),
        python: false,
    }];
    for (name, venv) in [("mcp 1.30", "py1"), ("mcp 2.3", "py2")] {
        let python = root().join("target/real").join(venv).join("bin/python");
        if python.exists() {
            let script = root().join("crates/drill/real/server_mcp.py");
            let words = [python.as_os_str(), script.as_os_str(), "--sse".as_ref()];
            let argv = words.map(|word| word.to_str().unwrap().to_owned()).to_vec();
            kinds.push(Kind { name, argv, python: true });
        } else {
            println!("no {name} here: run tools/real-servers");
        }
    }
    kinds
}

impl Server {
    fn start(kind: Kind, test: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = format!("linetender-sse-{}-{test}-{port}", std::process::id());
        let book = std::env::temp_dir().join(file);
        let process = Self::process(&kind, port, &book);
        Self { kind, port, book, process }
    }

    fn process(kind: &Kind, port: u16, book: &Path) -> Child {
        let mut command = Command::new(&kind.argv[0]);
        command.args(&kind.argv[1..]).arg(port.to_string());
        if !kind.python {
            command.arg("--book");
        }
        let process =
            command.arg(book).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.unwrap();
        until(kind.name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        process
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sse", self.port)
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn restart(&mut self) {
        self.kill();
        self.process = Self::process(&self.kind, self.port, &self.book);
    }

    /// How often it ran what has this nonce.
    fn runs(&self, nonce: &str) -> usize {
        let text = std::fs::read_to_string(&self.book).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(&format!("run {nonce} "))).count()
    }

    /// A call that takes its time.
    fn slow(&self, nonce: &str, prefix: &str) -> Value {
        if self.kind.python {
            json!({ "name": format!("{prefix}doze"), "arguments": { "seconds": 60, "nonce": nonce } })
        } else {
            json!({ "name": format!("{prefix}sleep"), "arguments": { "ms": 60_000, "nonce": nonce } })
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.book);
    }
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn works(agent: &mut Agent, id: &str, prefix: &str, name: &str) {
    let answer = agent.call(&json!(id), &format!("{prefix}echo"), &json!({ "message": "hello" }));
    assert!(answer["result"]["isError"] != true, "{name}: {answer}");
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hello"), "{name}: {answer}");
}

/// Killed idle and in the middle of a call; what the agent is told, and what ran.
fn killed_and_restarted(agent: &mut Agent, server: &mut Server, prefix: &str) {
    let name = server.kind.name;
    let tools = agent.ask(&json!("l"), "tools/list", &json!({}))["result"]["tools"].clone();
    assert!(tools.as_array().is_some_and(|tools| tools.len() > 2), "{name}: {tools}");
    works(agent, "a", prefix, name);
    for round in 0..2 {
        server.restart();
        works(agent, &format!("idle-{round}"), prefix, name);
        let (id, nonce) = (json!(format!("lost-{round}")), format!("n{round}"));
        agent.send(&id, "tools/call", &server.slow(&nonce, prefix));
        until("it runs", || server.runs(&nonce) == 1);
        server.kill();
        let answer = loop {
            let heard = agent.hear();
            if heard["id"] == id {
                break heard;
            }
        };
        let told = &answer["result"];
        assert_eq!(told["isError"], true, "{name}: {answer}");
        assert_eq!(told["_meta"]["linetender"]["delivery"], "unknown", "{name}: {answer}");
        server.restart();
        works(agent, &format!("back-{round}"), prefix, name);
        assert_eq!(server.runs(&nonce), 1, "{name}: never twice");
    }
    let again = agent.ask(&json!("again"), "tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(again, tools, "{name}: the list is steady");
}

#[test]
fn through_run() {
    for flags in [&["--stateless", "--transport", "sse"] as &[&str], &["--stateless"]] {
        for kind in kinds() {
            let mut server = Server::start(kind, "run");
            let url = server.url();
            let words: Vec<&str> = flags.iter().copied().chain([url.as_str()]).collect();
            let mut agent = Agent::run(LINETENDER, words.iter()).begun();
            killed_and_restarted(&mut agent, &mut server, "");
        }
    }
}

#[test]
fn through_serve() {
    for kind in kinds() {
        let mut server = Server::start(kind, "serve");
        let home = server.book.with_extension("home");
        std::fs::create_dir_all(&home).unwrap();
        let config = home.join("linetender.toml");
        let text = format!("[servers.old]\nurl = '{}'\ntransport = 'sse'\nstate = 'none'\n", server.url());
        std::fs::write(&config, text).unwrap();
        let mut serve = Command::new(LINETENDER);
        serve
            .env("XDG_STATE_HOME", &home)
            .env("XDG_RUNTIME_DIR", &home)
            .args(["serve", "--stdio", "--config"]);
        let mut agent = Agent::of_command(serve.arg(&config)).begun();
        let listed = |agent: &mut Agent| {
            let tools = agent.ask(&json!("wait"), "tools/list", &json!({}))["result"]["tools"].clone();
            tools.to_string().contains("old__echo")
        };
        until("its tools", || listed(&mut agent));
        killed_and_restarted(&mut agent, &mut server, "old__");
        drop(agent);
        std::fs::remove_dir_all(home).unwrap();
    }
}

#[test]
fn a_transport_is_for_a_url() {
    let output = Command::new(LINETENDER).args(["run", "--transport", "sse", "--", "cat"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--transport applies to a URL, not to a command"), "{said}");
}
