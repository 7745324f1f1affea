//! Clients of badservers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linetender::{Era, Eras, Policy, Server, ServerState};
use linetender_badserver::Book;
use linetender_badserver::webserver::{Config, Manners, Speaks, WebServer};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{Peer, RoleClient, RunningService, ServiceError};
use serde_json::Value;

/// Longer than anything here may take, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with a book of its own.
pub struct Bad {
    pub server: Server,
    pub book: Book,
}

impl Drop for Bad {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.book.path());
    }
}

/// An example: it is built with the tests and lies beside them.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "{} is missing: build the examples", path.display());
    path
}

/// A badserver with these flags, of the era that they name.
pub fn bad(flags: &[&str]) -> Bad {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let book =
        Book::at(std::env::temp_dir().join(format!("linetender-rmcp-{}-{number}", std::process::id())));
    let program = linetender_badserver::program();
    let argv = [program.to_str().unwrap(), "--book", book.path().to_str().unwrap()];
    let server = Server::stdio("bad", argv.iter().chain(flags)).reaper(program).policy(stateless());
    Bad { server: server.into(), book }
}

/// These servers keep nothing in memory.
fn stateless() -> Policy {
    Policy::default().with_state(ServerState::None)
}

/// One over HTTP, which ends when the first of the pair is dropped.
pub fn web(speaks: Speaks) -> (WebServer, Bad) {
    let mut bad = bad(&[]);
    let manners = Manners { speaks, ..Manners::default() };
    let config = Config { manners, book: Some(bad.book.path().to_owned()), ..Config::default() };
    let web = WebServer::start(config).unwrap();
    bad.server = Server::http("bad", &web.url()).policy(stateless()).into();
    (web, bad)
}

/// A legacy one.
pub fn legacy(flags: &[&str]) -> Bad {
    let mut bad = bad(&[&["--era", "legacy"], flags].concat());
    bad.server = bad.server.clone().eras(Eras::Only(Era::Legacy));
    bad
}

impl Bad {
    pub async fn client(&self) -> RunningService<RoleClient, ()> {
        in_time(().serve(linetender_rmcp::transport(self.server.clone()))).await.unwrap()
    }

    /// The process that ran this call.
    pub fn ran(&self, nonce: &str) -> i32 {
        self.book.runs_by()[nonce][0]
    }

    pub fn ran_nothing_twice(&self) {
        for (nonce, runs) in self.book.runs() {
            assert!(runs == 1 || nonce == "-", "{nonce} ran {runs} times");
        }
    }
}

pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

pub async fn call(
    peer: &Peer<RoleClient>,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    in_time(peer.call_tool(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments))).await
}

/// A call that must work, and what it said.
pub async fn says(peer: &Peer<RoleClient>, tool: &str, arguments: Value) -> String {
    let result = call(peer, tool, arguments).await.unwrap();
    assert_ne!(result.is_error, Some(true), "{result:?}");
    text(&result)
}

pub fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

/// A failed call says what happened to a model, and to a program; its delivery is told.
pub fn our_words(result: &CallToolResult) -> String {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    assert!(text(result).contains("The call to the MCP server \"bad\" failed: "), "{result:?}");
    let fields = serde_json::to_value(result).unwrap()["_meta"]["linetender"].clone();
    for field in ["source", "server", "phase", "cause", "delivery", "reason", "nextTry"] {
        assert!(fields[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {fields}");
    }
    fields["delivery"].as_str().unwrap().to_owned()
}

pub fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Whether a process lives. A zombie does not.
pub fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
