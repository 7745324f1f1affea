//! Real servers over HTTP, killed under traffic and started again on their port.
//!
//! What the bare SDKs make of that differs from server to server, and server-everything is the worst: it answers a session
//! that it does not know with 400 and no id, after which the official client waits for ever. So each of them is killed
//! here while callers are at work, and what counts is that the next call works, that no call hangs, that each that
//! failed says why, and that nothing ran twice.
//!
//! Needs `tools/real-servers`; without it only the servers that are built here are tested, and each test says so.

#![allow(clippy::disallowed_methods, reason = "a test owns its tasks, and measures with a real clock")]
#![allow(unreachable_pub, reason = "nobody can reach into a test")]
#![allow(dead_code, reason = "what several tests share is not all used by each")]

#[path = "../../line/tests/it/look.rs"]
mod look;
#[path = "peer/process.rs"]
mod process;
#[path = "peer/rmcp_server.rs"]
mod rmcp_server;
#[path = "peer/traffic.rs"]
mod traffic;

use std::path::{Path, PathBuf};
use std::time::Duration;

use linetender::{Era, Eras, Line, Raw, Server, ServerState};
use linetender_badserver::Book;
use look::{in_time, policy, speaks};
use process::Process;
use traffic::Traffic;

/// How often each is killed.
const KILLS: u32 = 2;

/// A variable that makes the test below the server.
const RMCP_PORT: &str = "LINETENDER_DRILL_RMCP_PORT";

/// A server, and what is asked of it.
struct Drill {
    process: Process,
    eras: Eras,
    quick: &'static str,
    /// A call that is under way whenever the server is killed.
    slow: (&'static str, &'static str),
    book: Option<Book>,
}

impl Drill {
    async fn run(mut self) {
        self.process.start().await;
        let patient = policy(|settings| {
            settings.state = ServerState::None;
            settings.call.limit = Duration::from_secs(25);
        });
        let server = Server::http("bad", &self.process.url()).eras(self.eras).policy(patient);
        let line = Line::open(server);
        in_time(line.ready()).await.unwrap();
        let traffic = Traffic::start(&line, self.quick);
        for _ in 0..KILLS {
            let slow = {
                let (line, (tool, arguments)) = (line.clone(), self.slow);
                tokio::spawn(async move { line.call_tool(tool, Raw(arguments)).await })
            };
            traffic.flows().await;
            self.process.kill();
            self.process.start().await;
            let next = in_time(line.call_tool(self.quick, Raw(r#"{"message":"next"}"#))).await;
            next.unwrap_or_else(|error| panic!("{error}"));
            let lost = in_time(slow).await.unwrap().unwrap_err();
            speaks(&lost);
            assert_eq!(lost.delivery.name(), "unknown", "{lost}");
            traffic.flows().await;
        }
        let outcomes = traffic.stop().await;
        in_time(line.close()).await;
        let (answered, not_executed, unknown) = outcomes.count();
        println!("{answered} answered, {not_executed} not executed, {unknown} unknown");
        if let Some(book) = &self.book {
            outcomes.agree_with(book);
            let _ = std::fs::remove_file(book.path());
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Where the real servers are.
fn real() -> Option<PathBuf> {
    let real = root().join("target/real");
    if real.join("node/.done").exists() {
        return Some(real);
    }
    println!("no real servers here: run tools/real-servers");
    None
}

fn book(name: &str) -> Book {
    Book::at(std::env::temp_dir().join(format!("linetender-drill-{}-{name}.book", std::process::id())))
}

fn badserver(name: &str, era: Era, flags: &[&str]) -> Drill {
    let book = book(name);
    let mut argv = vec![look::badserver(), "--http", "{port}", "--book", book.path().to_str().unwrap()];
    argv.extend(flags);
    let process = Process::new(&argv, &[]);
    Drill { process, eras: Eras::Only(era), quick: "write", slow: ("hang", "{}"), book: Some(book) }
}

fn python(name: &str, venv: &str, script: &str, eras: Eras) -> Option<Drill> {
    let (python, book) = (real()?.join(venv).join("bin/python"), book(name));
    let script = root().join("crates/drill/real").join(script);
    let argv = [&python, &script].map(|path| path.to_str().unwrap());
    let process = Process::new(&[argv[0], argv[1], "--http", "{port}", book.path().to_str().unwrap()], &[]);
    Some(Drill { process, eras, quick: "echo", slow: ("doze", r#"{"seconds":60}"#), book: Some(book) })
}

fn everything() -> Option<Drill> {
    let server = real()?.join("node/node_modules/.bin/mcp-server-everything");
    let process = Process::new(&[server.to_str().unwrap(), "streamableHttp"], &[("PORT", "{port}")]);
    let slow = ("trigger-long-running-operation", r#"{"duration":60,"steps":2}"#);
    Some(Drill { process, eras: Eras::Auto, quick: "echo", slow, book: None })
}

fn rmcp(eras: Eras) -> Drill {
    let ours = std::env::current_exe().unwrap();
    let argv = [ours.to_str().unwrap(), "be_the_rmcp_server", "--exact", "--ignored", "--nocapture"];
    let process = Process::new(&argv, &[(RMCP_PORT, "{port}")]);
    Drill { process, eras, quick: "echo", slow: ("nap", r#"{"seconds":60}"#), book: None }
}

/// Not a test: what is killed is this binary, asked to be a server.
#[test]
#[ignore = "a server, and no test"]
fn be_the_rmcp_server() {
    let Ok(port) = std::env::var(RMCP_PORT) else { return };
    let manner = rmcp_server::Manner { port: port.parse().unwrap(), ..Default::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(rmcp_server::serve(manner, |_| {})).unwrap();
}

#[tokio::test]
async fn h09_badserver_legacy_is_back_after_a_kill() {
    badserver("legacy", Era::Legacy, &["--era", "legacy"]).run().await;
}

#[tokio::test]
async fn h09_badserver_legacy_with_streams_is_back_after_a_kill() {
    badserver("streams", Era::Legacy, &["--era", "legacy", "--primed", "--unknown-session", "400"])
        .run()
        .await;
}

#[tokio::test]
async fn h09_badserver_modern_is_back_after_a_kill() {
    badserver("modern", Era::Modern, &["--era", "modern"]).run().await;
}

#[tokio::test]
async fn h09_rmcp_legacy_is_back_after_a_kill() {
    rmcp(Eras::Only(Era::Legacy)).run().await;
}

#[tokio::test]
async fn h09_rmcp_modern_is_back_after_a_kill() {
    rmcp(Eras::Only(Era::Modern)).run().await;
}

#[tokio::test]
async fn h09_everything_is_back_after_a_kill() {
    if let Some(drill) = everything() {
        drill.run().await;
    }
}

#[tokio::test]
async fn h09_python_mcp_1_is_back_after_a_kill() {
    if let Some(drill) = python("mcp1", "py1", "server_mcp.py", Eras::Auto) {
        drill.run().await;
    }
}

#[tokio::test]
async fn h09_python_mcp_2_legacy_is_back_after_a_kill() {
    if let Some(drill) = python("mcp2-legacy", "py2", "server_mcp.py", Eras::Only(Era::Legacy)) {
        drill.run().await;
    }
}

#[tokio::test]
async fn h09_python_mcp_2_modern_is_back_after_a_kill() {
    if let Some(drill) = python("mcp2-modern", "py2", "server_mcp.py", Eras::Auto) {
        drill.run().await;
    }
}

#[tokio::test]
async fn h09_fastmcp_is_back_after_a_kill() {
    if let Some(drill) = python("fastmcp", "py2", "server_fastmcp.py", Eras::Auto) {
        drill.run().await;
    }
}
