//! A gateway on the bare official Rust SDK, as somebody writes it in an hour: its server in front, its client behind, and each
//! request handed from one to the other. What ours has to be cheaper than.
//!
//! `sdk_gateway legacy|modern URL`, or a command and its words in place of the URL; it prints its own address. Where the SDK
//! lets one choose, the faster way is chosen: connections behind are kept, sockets send at once, and a modern answer is JSON.
//!
//! Not a binary, because then the SDK would be a dependency of the crate and not only of its tests.

#![allow(clippy::disallowed_methods, reason = "this process is nothing but its connections")]

mod sdk;

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::ClientLifecycleMode;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use sdk::Through;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let lifecycle = match words.next().as_deref() {
        Some("legacy") => ClientLifecycleMode::Initialize,
        Some("modern") => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        _ => return Err("which era: legacy or modern?".into()),
    };
    serve(Through::to(words, lifecycle).await?).await
}

async fn serve(through: Through) -> Result<(), Box<dyn Error>> {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(move || Ok(through.clone()), sessions, config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
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
