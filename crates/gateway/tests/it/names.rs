//! Many servers at one address.

use crate::kit::{House, names, text};
use serde_json::json;

const TWO: &str = r#"
[servers.zoo]
{bad}
args = ["--era", "legacy", "--full"]
tools.exclude = ["kill*"]
[servers.ark]
{bad}
args = ["--full"]
"#;

#[tokio::test]
async fn all_servers_are_at_one_address_in_the_files_order() {
    let house = House::up(TWO).await;
    let agent = house.agent("/mcp").await;
    assert_eq!(agent.hello["result"]["serverInfo"]["name"], "linetender");
    let tools = names(&agent.ask("tools/list", json!({})).await, "tools");
    assert_eq!(tools[0], "zoo__echo");
    let first_of_ark = tools.iter().position(|name| name == "ark__echo").unwrap();
    assert!(tools[..first_of_ark].iter().all(|name| name.starts_with("zoo__")), "{tools:?}");
    assert!(tools.contains(&"ark__kill".into()) && !tools.contains(&"zoo__kill".into()));
    for server in ["zoo", "ark"] {
        let answer = agent.call(&format!("{server}__echo"), json!({ "of": server })).await;
        assert_eq!(text(&answer), format!(r#"{{"of":"{server}"}}"#));
    }
    assert_eq!(names(&agent.ask("prompts/list", json!({})).await, "prompts"), ["zoo__greet", "ark__greet"]);
    let prompt =
        agent.ask("prompts/get", json!({ "name": "ark__greet", "arguments": { "who": "you" } })).await;
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "hello you");
}

#[tokio::test]
async fn what_servers_say_about_their_use_is_passed_on_under_their_names() {
    let text = "[servers.a]\n{bad}\nargs = ['--era', 'legacy', '--instructions', 'be kind']\n[servers.b]\n{bad}\n[servers.c]\n{bad}\nargs = ['--instructions', 'be quick']";
    let house = House::up(text).await;
    let agent = house.agent("/mcp").await;
    let told = "Instructions of the MCP server a, each line after \"a> \":\na> be kind\n\n\
                Instructions of the MCP server c, each line after \"c> \":\nc> be quick";
    assert_eq!(agent.hello["result"]["instructions"], told);
    let discovered = house.modern("/mcp", "server/discover", json!({})).await.json().await;
    assert_eq!(discovered["result"]["instructions"], told);
    assert_eq!(house.agent("/mcp/c").await.hello["result"]["instructions"], "be quick");
    assert!(house.agent("/mcp/b").await.hello["result"].get("instructions").is_none());
}

#[tokio::test]
async fn what_is_not_shown_cannot_be_called_at_any_address() {
    let house = House::up(TWO).await;
    let agent = house.agent("/mcp").await;
    for tool in ["zoo__kill", "nobody__echo", "echo"] {
        let answer = agent.call(tool, json!({})).await;
        assert_eq!(answer["result"]["isError"], true);
        assert!(text(&answer).contains("configured servers: zoo, ark"), "{answer}");
    }
    let alone = house.agent("/mcp/zoo").await;
    assert!(!names(&alone.ask("tools/list", json!({})).await, "tools").contains(&"kill".into()));
    assert_eq!(alone.call("kill", json!({})).await["result"]["isError"], true);
    assert_eq!(text(&alone.call("echo", json!({ "n": 1 })).await), r#"{"n":1}"#);
    assert_eq!(house.gateway.lines()[1].status().generation, 1, "nobody was killed");
}

#[tokio::test]
async fn two_servers_with_the_same_resource_do_not_clash() {
    let house = House::up(TWO).await;
    let agent = house.agent("/mcp").await;
    let resources = names(&agent.ask("resources/list", json!({})).await, "resources");
    assert_eq!(resources, ["linetender://zoo/note://a", "linetender://ark/note://a"]);
    let templates = agent.ask("resources/templates/list", json!({})).await;
    assert_eq!(names(&templates, "resourceTemplates")[1], "linetender://ark/note://{name}");
    let read = agent.ask("resources/read", json!({ "uri": resources[1] })).await;
    assert_eq!(
        read["result"]["contents"][0]["uri"], "linetender://ark/note://a",
        "it can be asked for again"
    );
    let about = json!({ "ref": { "type": "ref/prompt", "name": "zoo__greet" }, "argument": { "name": "who", "value": "w" } });
    assert_eq!(agent.ask("completion/complete", about).await["result"]["completion"]["values"][0], "world");
    let unknown = agent.ask("resources/read", json!({ "uri": "note://a" })).await;
    assert_eq!(unknown["error"]["code"], 7009, "{unknown}");
}

#[tokio::test]
async fn an_address_that_leads_nowhere_names_those_that_do_not() {
    let house = House::open(TWO).await;
    let answer = house.modern("/mcp/nobody", "tools/list", json!({})).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json().await["error"]["data"]["servers"], json!(["zoo", "ark"]));
}
