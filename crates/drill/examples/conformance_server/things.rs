//! Everything but tools: prompts, resources, completion, and what changes.

use std::sync::atomic::Ordering;

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::model::{
    CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Changed, Fixture, rounds, tools};

/// The smallest picture there is.
pub(crate) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// What the suite describes in JSON, as the SDK wants it.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The same of a result, which says that it is complete.
pub(crate) fn result<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    read(value)
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": { "listChanged": true }, "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true }, "logging": {}, "completions": {},
        });
        ServerConfig::new(serde_json::from_value(capabilities).unwrap_or_default())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        result(
            json!({ "tools": tools::list(self.0.tool.load(Ordering::Relaxed)), "ttlMs": 0, "cacheScope": "private" }),
        )
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, asked, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({ "name": name, "description": name, "required": true });
        let mut prompts = vec![
            json!({ "name": "test_simple_prompt" }),
            json!({ "name": "test_prompt_with_arguments", "arguments": [argument("arg1"), argument("arg2")] }),
            json!({ "name": "test_prompt_with_embedded_resource", "arguments": [argument("resourceUri")] }),
            json!({ "name": "test_prompt_with_image" }),
            json!({ "name": "test_input_required_result_prompt" }),
        ];
        if self.0.prompt.load(Ordering::Relaxed) {
            prompts.push(json!({ "name": "one_more" }));
        }
        for prompt in &mut prompts {
            prompt["description"] = "a prompt of the suite's".into();
        }
        result(json!({ "prompts": prompts, "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let says = |content: Value| json!({ "role": "user", "content": content });
        let text = |text: &str| says(json!({ "type": "text", "text": text }));
        let arguments = serde_json::to_value(&asked.arguments).unwrap_or_default();
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let messages = match &*asked.name {
            "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => {
                let (one, other) = (argument("arg1"), argument("arg2"));
                json!([text(&format!("Prompt with arguments: arg1='{one}', arg2='{other}'"))])
            }
            "test_prompt_with_embedded_resource" => json!([
                says(json!({ "type": "resource", "resource": {
                    "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                } })),
                text("Please process the embedded resource above."),
            ]),
            "test_prompt_with_image" => json!([
                says(json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })),
                text("Please analyze the image above."),
            ]),
            "test_input_required_result_prompt" => {
                let answers = serde_json::to_value(&asked.input_responses).unwrap_or_default();
                match answers["user_context"]["content"]["context"].as_str() {
                    Some(context) => json!([text(&format!("In the context of {context}."))]),
                    None => return rounds::prompt().map(Into::into),
                }
            }
            other => return Err(ErrorData::invalid_params(format!("no such prompt: {other}"), None)),
        };
        result::<rmcp::model::GetPromptResult>(json!({ "messages": messages })).map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, kind: &str| json!({ "uri": format!("test://{name}"), "name": name, "description": name, "mimeType": kind });
        let resources = [
            resource("static-text", "text/plain"),
            resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain"),
        ];
        result(json!({ "resources": resources, "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({
            "uriTemplate": "test://template/{id}/data", "name": "template", "description": "with an id",
            "mimeType": "application/json",
        });
        result(json!({ "resourceTemplates": [template], "ttlMs": 0, "cacheScope": "private" }))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &asked.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (&**uri, id) {
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PICTURE }),
            ("test://watched-resource", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "watched" })
            }
            (_, Some(id)) => {
                let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": text.to_string() })
            }
            (_, None) => {
                return Err(ErrorData::invalid_params("Resource not found", Some(json!({ "uri": uri }))));
            }
        };
        let contents = json!({ "contents": [contents], "ttlMs": 0, "cacheScope": "private" });
        result::<rmcp::model::ReadResourceResult>(contents).map(Into::into)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(
            json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
        )
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = context.cancelled() => return Ok(()),
            };
            // Whoever did not ask for it refuses it, and that is that.
            let _ = match change {
                Ok(Changed::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Changed::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}
