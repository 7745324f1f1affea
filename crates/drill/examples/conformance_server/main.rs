//! A server on the official Rust SDK with everything that the official conformance suite asks a server for, so that the
//! suite can be run through linetender: on stdin and stdout, or over HTTP with `--http PORT`.
//!
//! Not a binary, because then the SDK would be a dependency of the crate and not only of its tests.

#![allow(clippy::disallowed_methods, reason = "this process is nothing but its connections")]
#![allow(deprecated, reason = "legacy agents still use what the modern era has no more")]

mod rounds;
mod things;
mod tools;

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::broadcast;

/// What changed.
#[derive(Clone, Copy)]
enum Changed {
    Tools,
    Prompts,
}

/// One server for all who connect.
#[derive(Clone)]
struct Fixture(Arc<House>);

struct House {
    /// Whether there is one more tool, and one more prompt, than usual.
    tool: AtomicBool,
    prompt: AtomicBool,
    changes: broadcast::Sender<Changed>,
    /// States of calls that wait for input: what was handed out, and nothing else, is taken back.
    states: Mutex<Vec<String>>,
}

fn main() -> ExitCode {
    if let Some(done) = linetender::reaper::run_if_asked() {
        return done;
    }
    let port = match std::env::args().skip_while(|word| word != "--http").nth(1).map(|port| port.parse()) {
        None => None,
        Some(Ok(port)) => Some(port),
        Some(Err(_)) => return ExitCode::FAILURE,
    };
    let fixture = Fixture(Arc::new(House {
        tool: AtomicBool::new(false),
        prompt: AtomicBool::new(false),
        changes: broadcast::channel(16).0,
        states: Mutex::default(),
    }));
    match serve(fixture, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve(fixture: Fixture, port: Option<u16>) -> Result<(), Box<dyn std::error::Error>> {
    let Some(port) = port else {
        fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
