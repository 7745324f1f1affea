//! Tools with pages (MCP Apps), at the address of all servers and at their own.

use serde_json::{Value, json};

use crate::kit::{House, names, text};

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

const UI: &str = "io.modelcontextprotocol/ui";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_declared_at_an_address_works_there() {
    let house =
        House::up(&format!("{SHOPS}[servers.hidden]\n{{bad}}\nargs = ['--apps']\ntools.exclude = ['echo']"))
            .await;
    let discovered = async |path: &str| {
        let told = house.modern(path, "server/discover", json!({})).await.last().await;
        told["result"]["capabilities"].clone()
    };
    let initialized = async |path: &str| house.agent(path).await.hello["result"]["capabilities"].clone();
    for all in [discovered("/mcp").await, initialized("/mcp").await] {
        assert_eq!(all["extensions"], json!({ UI: {} }), "nobody could say whose an unknown extension is");
        assert!(all.get("experimental").is_none(), "{all}");
    }
    for path in ["/mcp/one", "/mcp/two", "/mcp/hidden"] {
        for one in [discovered(path).await, initialized(path).await] {
            assert_eq!(one["extensions"], json!({ UI: {}, "com.example/odd": { "x": 1 } }), "{path}");
            assert_eq!(one["experimental"], json!({ "com.example/odd": {} }), "{path}");
        }
    }
    assert!(initialized("/mcp/none").await.get("extensions").is_none());
    let plain = House::up("[servers.none]\n{bad}").await;
    assert!(plain.agent("/mcp").await.hello["result"]["capabilities"].get("extensions").is_none());
}

/// What a server is told that its agent can do: with its greeting, or with a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_declares_reaches_servers_that_can_tell_it_from_others() {
    let declares = json!({ "extensions": { UI: { "mimeTypes": ["text/html;profile=mcp-app"] } } });
    for (era, scope, knows) in [
        ("legacy", "session", true),
        ("modern", "session", true),
        ("modern", "shared", true),
        // One greeting is for all.
        ("legacy", "shared", false),
    ] {
        let config = format!("[servers.it]\n{{bad}}\nargs = ['--era', '{era}']\nscope = '{scope}'");
        let house = House::up(&config).await;
        for (path, tool) in [("/mcp", "it__declared"), ("/mcp/it", "declared")] {
            let agent = house.agent_with(path, &declares).await;
            let told = text(&agent.call(tool, json!({})).await).to_owned();
            let told: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"));
            let expected = if knows { &declares["extensions"] } else { &Value::Null };
            assert_eq!(&told["extensions"], expected, "legacy agent, {era} server, {scope}, {path}: {told}");
            let other = house.agent(path).await;
            let told = text(&other.call(tool, json!({})).await).to_owned();
            assert!(!told.contains(UI), "{era} {scope} {path}: {told}");
        }
    }
}
