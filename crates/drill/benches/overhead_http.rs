//! What a line costs over the bare SDK, over HTTP: one server in a process of its own, called alternately through both.
//!
//! `cargo bench -p linetender-drill --bench overhead_http`, or `… -- 40` for that many alternations. The server is the
//! SDK's own (`tests/peer/rmcp_server.rs`), and this binary is also that server: neither side is measured against a peer
//! that one of us wrote. The bare client is the SDK's with its defaults, which opens a connection for every request; with
//! `… -- pooled` it keeps them, except where a delayed ACK stalls it: `… -- pooled stalls 1` shows that, in its time.
//!
//! Large results are measured by the processor time of this process, in which the server has no part.

#![allow(unreachable_pub, reason = "nobody can reach into a bench")]
#![allow(clippy::disallowed_methods, reason = "a drill adopts no orphans")]

#[path = "overhead/figures.rs"]
mod figures;
#[path = "../tests/peer/rmcp_server.rs"]
mod rmcp_server;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use figures::{Figures, each};
use linetender::{Era, Eras, Line, Policy, Raw, Server, Settings};
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp_server::Manner;

/// Calls of one measurement.
const CALLS: usize = 1000;

/// How often a large result is fetched in one measurement.
const FETCHES: usize = 4;

/// The word that makes this binary the server.
const SERVE: &str = "serve";

type Bare = Arc<RunningService<RoleClient, ()>>;

/// The two ways to one server.
struct Pair {
    line: Line,
    bare: Bare,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let served = words.iter().any(|word| word == SERVE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    if served {
        let manner = Manner {
            nodelay: words.iter().any(|word| word == "nodelay"),
            json: words.iter().any(|word| word == "json"),
            ..Manner::default()
        };
        runtime.block_on(rmcp_server::serve(manner, |port| println!("{port}"))).expect("a server");
        return ExitCode::SUCCESS;
    }
    let alternations = words.iter().find_map(|word| word.parse().ok()).unwrap_or(24);
    runtime.block_on(run(alternations, &words));
    ExitCode::SUCCESS
}

async fn run(alternations: usize, words: &[String]) {
    let pooled = words.iter().any(|word| word == "pooled");
    println!("{alternations} alternations; a ratio below 1 is in our favour");
    for manner in [&[][..], &["nodelay"], &["json"]] {
        let name = manner.first().copied().unwrap_or("as the SDK's examples");
        if words.iter().any(|word| word.starts_with("only-") && word[5..] != *name) {
            continue;
        }
        let mut served = Served::start(manner);
        for era in [Era::Legacy, Era::Modern] {
            let stalls = era == Era::Legacy && manner.is_empty();
            if pooled && stalls != words.iter().any(|word| word == "stalls") {
                continue;
            }
            println!("\nserver: {name}; {era:?}");
            let pair = Pair::open(&served.url, era, pooled).await;
            small(&pair, alternations).await;
            if manner.is_empty() && !pooled {
                large(&pair, alternations).await;
            }
            pair.line.close().await;
        }
        served.stop();
    }
}

async fn small(pair: &Pair, alternations: usize) {
    println!("{:>10} {}", "in flight", Figures::head("p50 µs"));
    for in_flight in [1, 16, 64] {
        let mut figures = Figures::default();
        // The first measurement of each warms up and is thrown away.
        for round in 0..=alternations {
            let ours = || each(CALLS, in_flight, || by_line(pair.line.clone()));
            let theirs = || each(CALLS, in_flight, || by_rmcp(Arc::clone(&pair.bare)));
            let (mine, other) = if round % 2 == 0 {
                let mine = ours().await;
                (mine, theirs().await)
            } else {
                let other = theirs().await;
                (ours().await, other)
            };
            if round > 0 {
                figures.push(mine, other);
            }
        }
        println!("{in_flight:>10} {figures}");
    }
}

async fn large(pair: &Pair, alternations: usize) {
    println!("{:>10} {}", "bytes", Figures::head("CPU ms"));
    for bytes in [1 << 20, 10 << 20] {
        let mut figures = Figures::default();
        for round in 0..=alternations {
            let (mine, other) = if round % 2 == 0 {
                let mine = fetches_by_line(pair, bytes).await;
                (mine, fetches_by_rmcp(pair, bytes).await)
            } else {
                let other = fetches_by_rmcp(pair, bytes).await;
                (fetches_by_line(pair, bytes).await, other)
            };
            if round > 0 {
                figures.push(mine, other);
            }
        }
        println!("{bytes:>10} {figures}");
    }
}

async fn fetches_by_line(pair: &Pair, bytes: usize) -> f64 {
    let arguments = format!(r#"{{"bytes":{bytes}}}"#);
    let before = processor_time();
    for _ in 0..FETCHES {
        let answer = pair.line.call_tool("big", Raw(&arguments)).await.expect("an answer");
        assert!(answer.raw().len() > bytes);
    }
    per_fetch(processor_time().saturating_sub(before))
}

async fn fetches_by_rmcp(pair: &Pair, bytes: usize) -> f64 {
    let before = processor_time();
    for _ in 0..FETCHES {
        let mut arguments = serde_json::Map::new();
        arguments.insert("bytes".into(), bytes.into());
        let asked = CallToolRequestParams::new("big").with_arguments(arguments);
        let answer = pair.bare.peer().call_tool(asked).await.expect("an answer");
        assert!(!answer.content.is_empty());
    }
    per_fetch(processor_time().saturating_sub(before))
}

/// What this process has spent so far, in user and in kernel mode.
fn processor_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(spent).expect("time that was spent")
}

fn per_fetch(spent: Duration) -> f64 {
    spent.as_secs_f64() * 1e3 / f64::from(u32::try_from(FETCHES).unwrap_or(1))
}

async fn by_line(line: Line) {
    line.call_tool("echo", Raw(r#"{"message":"hello"}"#)).await.expect("an answer");
}

async fn by_rmcp(bare: Bare) {
    let mut arguments = serde_json::Map::new();
    arguments.insert("message".into(), "hello".into());
    let params = CallToolRequestParams::new("echo").with_arguments(arguments);
    bare.peer().call_tool(params).await.expect("an answer");
}

impl Pair {
    async fn open(url: &str, era: Era, pooled: bool) -> Self {
        let mut settings = Settings::default();
        settings.limits.message = 64 << 20;
        let policy = Policy::new(settings).expect("a policy");
        let line = Line::open(Server::http("rmcp", url).eras(Eras::Only(era)).policy(policy));
        line.ready().await.expect("a line");
        let lifecycle = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        };
        let transport = if pooled {
            let config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
            StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
        } else {
            StreamableHttpClientTransport::from_uri(url.to_owned())
        };
        let bare = ().serve_with_lifecycle(transport, lifecycle).await.expect("a client");
        Self { line, bare: Arc::new(bare) }
    }
}

/// This binary, as the server.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(manner: &[&str]) -> Self {
        let ours = std::env::current_exe().expect("a path");
        let mut child =
            Command::new(ours).arg(SERVE).args(manner).stdout(Stdio::piped()).spawn().expect("a server");
        let mut port = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut port).expect("a port");
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
