//! The bare official Rust SDK between an agent and a server: its server on our pipes, its client behind, and each request
//! handed from one to the other. What an agent has that holds the SDK itself, with nobody who supervises.
//!
//! `bare URL`, or a command and its words in place of the URL; it is what the board calls the bare SDK.
//!
//! Not a binary, because then the SDK would be a dependency of the crate and not only of its tests.

use std::error::Error;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RoleClient, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, stdio};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleServer, ServerHandler, ServiceExt as _,
};
use tokio::process::Command;

/// Hands on what it is asked.
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
    let behind = words.next().ok_or("which server?")?;
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = if behind.starts_with("http") {
        let config = StreamableHttpClientTransportConfig::with_uri(behind);
        let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
        ().serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let mut command = Command::new(behind);
        command.args(words);
        ().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    Through(client.peer().clone()).serve(stdio()).await?.waiting().await?;
    Ok(())
}
