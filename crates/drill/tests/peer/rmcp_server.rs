//! A server on the official Rust SDK, as its users run one: what a client is to be measured with, and what is to be restarted.
//!
//! Not a binary of its own, because then the SDK would be a dependency of the crate and not only of its tests: whoever
//! needs this server becomes it in a second process.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};

/// `echo`, `nap` for so many seconds, and `big` with so many bytes.
const TOOLS: [&str; 3] = ["echo", "nap", "big"];

/// How it answers.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// The port; any, if 0.
    pub port: u16,
    /// Sends small packets at once. The SDK's own examples do not, which is what stalls a kept connection.
    pub nodelay: bool,
    /// Answers with JSON and without sessions, not with a stream.
    pub json: bool,
}

/// Serves until the process ends, and tells its port once it listens.
pub async fn serve(manner: Manner, listens: impl FnOnce(u16)) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, manner.port)))?;
    let listener = socket.listen(1024)?;
    listens(listener.local_addr()?.port());
    accept(&listener, manner).await
}

#[expect(clippy::disallowed_methods, reason = "this process is nothing but its connections")]
async fn accept(listener: &TcpListener, manner: Manner) -> std::io::Result<()> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(!manner.json)
        .with_json_response(manner.json);
    let service =
        StreamableHttpService::new(|| Ok(Tools), std::sync::Arc::<LocalSessionManager>::default(), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(manner.nodelay)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[derive(Clone, Copy)]
struct Tools;

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut schema = JsonObject::new();
        schema.insert("type".into(), "object".into());
        let tools = TOOLS.map(|name| Tool::new(name, "", schema.clone()));
        Ok(ListToolsResult { tools: tools.into(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = asked.arguments.unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64).unwrap_or(0);
        let text = match &*asked.name {
            "nap" => {
                tokio::time::sleep(Duration::from_secs(number("seconds"))).await;
                "awake".to_owned()
            }
            "big" => "x".repeat(usize::try_from(number("bytes")).unwrap_or(0)),
            _ => format!("Echo: {}", arguments.get("message").and_then(Value::as_str).unwrap_or_default()),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
