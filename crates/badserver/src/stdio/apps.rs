//! A server whose tools have pages (MCP Apps): what it lists and reads besides its other things.

use serde_json::{Value, json};

/// The page of the tool `page`, and a page that only its tools lead to.
const PAGE: &str = "ui://shop/cart.html";

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Its tools: one that a model calls, and one that only the page does.
pub(super) fn tools() -> [Value; 2] {
    let schema = json!({ "type": "object" });
    [
        json!({
            "name": "page", "inputSchema": schema,
            "_meta": { "ui": { "resourceUri": PAGE, "visibility": ["model", "app"] }, "ui/resourceUri": PAGE },
        }),
        json!({
            "name": "page_only", "inputSchema": schema,
            "_meta": { "ui": { "resourceUri": PAGE, "visibility": ["app"] } },
        }),
    ]
}

/// The result of `page`: a link to the page, the page itself, and an address that is only text.
pub(super) fn called() -> Value {
    json!({
        "content": [
            { "type": "text", "text": PAGE },
            { "type": "resource_link", "uri": PAGE, "name": "cart" },
            { "type": "resource", "resource": page() },
        ],
        "structuredContent": { "uri": PAGE },
        "_meta": { "ui": { "resourceUri": PAGE } },
    })
}

/// The result of a request, if it is about pages.
pub(super) fn answer(method: &str, params: &Value) -> Option<Value> {
    Some(match method {
        "resources/list" => json!({
            "resources": [{ "uri": PAGE, "name": "cart", "mimeType": mime(), "_meta": { "ui": { "prefersBorder": true } } }],
        }),
        "resources/templates/list" => {
            json!({ "resourceTemplates": [{ "uriTemplate": "ui://shop/{item}", "name": "item", "mimeType": mime() }] })
        }
        "resources/read" if params["uri"] == PAGE => json!({ "contents": [page()] }),
        _ => return None,
    })
}

fn page() -> Value {
    json!({ "uri": PAGE, "mimeType": mime(), "text": "<!doctype html><title>cart</title>", "_meta": { "ui": { "csp": {} } } })
}

fn mime() -> &'static str {
    "text/html;profile=mcp-app"
}
