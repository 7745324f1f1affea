//! Tools with pages (MCP Apps), at the address of all servers and at their own.

use serde_json::{Value, json};

use crate::kit::{House, names};

const SHOPS: &str = r#"
[servers.one]
{bad}
args = ["--era", "legacy", "--apps"]
[servers.two]
{bad}
args = ["--era", "modern", "--apps"]
[servers.none]
{bad}
"#;

/// The page of a server's tool, as everybody calls it at this address.
fn page(tools: &Value, name: &str) -> Value {
    let tools = tools["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"))["_meta"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_a_tool_is_found_at_the_address_of_all_servers() {
    let house = House::up(SHOPS).await;
    let agent = house.agent("/mcp").await;
    for modern in [false, true] {
        let ask = async |method: &str, params: Value| {
            if modern {
                house.modern("/mcp", method, params).await.last().await
            } else {
                agent.ask(method, params).await
            }
        };
        let tools = ask("tools/list", json!({})).await;
        let resources = names(&ask("resources/list", json!({})).await, "resources");
        assert_eq!(resources, ["ui://one/shop/cart.html", "ui://two/shop/cart.html"]);
        let templates = ask("resources/templates/list", json!({})).await;
        assert_eq!(names(&templates, "resourceTemplates"), ["ui://one/shop/{item}", "ui://two/shop/{item}"]);
        for server in ["one", "two"] {
            let uri = format!("ui://{server}/shop/cart.html");
            let meta = page(&tools, &format!("{server}__page"));
            let ui = json!({ "resourceUri": uri, "visibility": ["model", "app"] });
            assert_eq!(meta, json!({ "ui": ui, "ui/resourceUri": uri }));
            assert_eq!(page(&tools, &format!("{server}__page_only"))["ui"]["visibility"], json!(["app"]));

            let read = ask("resources/read", json!({ "uri": meta["ui"]["resourceUri"] })).await;
            let contents = &read["result"]["contents"][0];
            assert_eq!(
                (&contents["uri"], &contents["mimeType"]),
                (&json!(uri), &json!("text/html;profile=mcp-app"))
            );
            assert!(contents["text"].as_str().unwrap().contains("cart"), "{read}");

            let called =
                ask("tools/call", json!({ "name": format!("{server}__page"), "arguments": {} })).await;
            let result = &called["result"];
            assert_eq!(result["content"][1]["uri"], uri, "a link");
            assert_eq!(result["content"][2]["resource"]["uri"], uri, "embedded");
            assert_eq!(result["_meta"]["ui"]["resourceUri"], uri);
            assert_eq!(result["content"][0]["text"], "ui://shop/cart.html", "text is text");
            assert_eq!(result["structuredContent"]["uri"], "ui://shop/cart.html");
        }
        for nobodys in ["ui://shop/cart.html", "ui://none/shop/cart.html", "ui://three/x"] {
            let read = ask("resources/read", json!({ "uri": nobodys })).await;
            assert!(read.get("error").is_some(), "{read}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_its_own_address_a_page_is_what_its_server_calls_it() {
    let house = House::up(SHOPS).await;
    for path in ["/mcp/one", "/mcp/two"] {
        let agent = house.agent(path).await;
        let tools = agent.ask("tools/list", json!({})).await;
        assert_eq!(page(&tools, "page")["ui"]["resourceUri"], "ui://shop/cart.html");
        let read = agent.ask("resources/read", json!({ "uri": "ui://shop/cart.html" })).await;
        assert_eq!(read["result"]["contents"][0]["uri"], "ui://shop/cart.html");
    }
}

#[tokio::test]
async fn a_page_that_a_filter_hides_cannot_be_read() {
    let text = "[servers.one]\n{bad}\nargs = ['--apps']\nresources.exclude = ['ui://shop/*']";
    let house = House::up(text).await;
    let agent = house.agent("/mcp").await;
    assert_eq!(agent.ask("resources/list", json!({})).await["result"]["resources"], json!([]));
    let read = agent.ask("resources/read", json!({ "uri": "ui://one/shop/cart.html" })).await;
    assert_eq!(read["error"]["code"], 7009, "{read}");
}
