//! A gateway on the bare official Rust SDK, as somebody writes it in an hour: its server in front, its client behind, and each
//! request handed from one to the other. What ours has to be cheaper than.
//!
//! `sdk_gateway legacy|modern URL`, or a command and its words in place of the URL; it prints its own address. Where the SDK
//! lets one choose, the faster way is chosen: connections behind are kept, sockets send at once, and a modern answer is JSON.
//!
//! Not a binary, because then the SDK would be a dependency of the crate and not only of its tests.

#![allow(clippy::disallowed_methods, reason = "this process is nothing but its connections")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleServer, ServerHandler};
use tokio::net::TcpListener;
use tokio::process::Command;

/// Hands on what it is asked.
#[derive(Clone)]
struct Through(Peer<RoleClient>);

impl ServerHandler for Through {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(asked).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call_tool_once(asked).await.map_err(failed)
    }
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

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
    let behind = words.next().ok_or("which server?")?;
    let client = if behind.starts_with("http") {
        let config = StreamableHttpClientTransportConfig::with_uri(behind);
        let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
        ().serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let mut command = Command::new(behind);
        command.args(words);
        ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    serve(Through(client.peer().clone())).await
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
