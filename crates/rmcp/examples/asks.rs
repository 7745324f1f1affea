//! An MCP server made with `rmcp` that cannot answer before its client does: a peer for the tests.

use std::process::ExitCode;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock, ElicitRequest,
    ElicitRequestParams, ElicitationSchema, ErrorData, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};

struct Asks;

impl ServerHandler for Asks {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        Ok(ListToolsResult::with_all_items(vec![Tool::new("ask", "answers with what the user says", schema)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let schema = ElicitationSchema::builder().required_string("colour").build();
        let question = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Which colour?".to_owned(),
            requested_schema: schema.map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
        };
        let told = context.peer.send_request(ElicitRequest::new(question).into()).await;
        let text = match told {
            Ok(ClientResult::ElicitResult(told)) => told.content.unwrap_or_default().to_string(),
            other => return Err(ErrorData::internal_error(format!("{other:?}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        match Asks.serve(rmcp::transport::stdio()).await {
            Ok(server) => drop(server.waiting().await),
            Err(error) => eprintln!("{error}"),
        }
    });
    ExitCode::SUCCESS
}
