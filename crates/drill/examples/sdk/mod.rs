//! The official Rust SDK on both sides of a process: a client of the server behind, and a handler that hands it what is asked.

use std::error::Error;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::{RequestContext, RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleServer, ServerHandler};
use tokio::process::Command;

/// Hands on what it is asked.
#[derive(Clone)]
pub(crate) struct Through(Arc<RunningService<RoleClient, ()>>);

impl Through {
    /// To the server that `words` tell of: an address, or a command and its words.
    pub(crate) async fn to(
        mut words: impl Iterator<Item = String>,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, Box<dyn Error>> {
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
        Ok(Self(Arc::new(client)))
    }
}

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
