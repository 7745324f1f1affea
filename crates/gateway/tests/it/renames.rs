//! Tools under other names than their server's.

use crate::kit::{House, config, in_time, is_answered, names, text};
use serde_json::{Value, json};

/// A legacy server and a modern one, over pipes; both lists have `echo`, `kill` and `write`.
const TWO: &str = r#"
[servers.zoo]
{bad}
args = ["--era", "legacy"]
tools.exclude = ["kill"]
tools.rename = { echo = "say", sleep = "wait.a-while" }
tools.describe = { echo = "Says it again.", write = "Writes." }
[servers.ark]
{bad}
tools.rename = { echo = "kill", kill = "echo" }
"#;

fn described<'a>(listed: &'a Value, name: &str) -> &'a Value {
    let tools = listed["result"]["tools"].as_array().unwrap();
    &tools.iter().find(|tool| tool["name"] == name).unwrap()["description"]
}

#[tokio::test]
async fn a_renamed_tool_is_listed_and_called_by_its_new_name_alone() {
    let house = House::up(TWO).await;
    for (path, prefix) in [("/mcp", "zoo__"), ("/mcp/zoo", "")] {
        let [say, echo, kill] = ["say", "echo", "kill"].map(|tool| format!("{prefix}{tool}"));
        let agent = house.agent(path).await;
        let lists = [
            agent.ask("tools/list", json!({})).await,
            house.modern(path, "tools/list", json!({})).await.json().await,
        ];
        for listed in lists {
            let tools = names(&listed, "tools");
            assert!(tools.contains(&say) && tools.contains(&format!("{prefix}wait.a-while")), "{tools:?}");
            assert!(!tools.contains(&echo) && !tools.contains(&kill), "{tools:?}");
            assert_eq!(described(&listed, &say), "Says it again.");
            assert_eq!(described(&listed, &format!("{prefix}write")), "Writes.");
            assert_ne!(
                described(&listed, &format!("{prefix}wait.a-while")),
                &Value::Null,
                "the server's own"
            );
        }
        let arguments = json!({ "name": "echo", "n": 1 });
        assert_eq!(text(&agent.call(&say, arguments.clone()).await), arguments.to_string());
        let asked = json!({ "name": say, "arguments": arguments });
        // The header Mcp-Name has the name that the agent knows.
        assert!(is_answered(&house.modern(path, "tools/call", asked).await.json().await));
        for hidden in [&echo, &kill] {
            let answer = agent.call(hidden, json!({})).await;
            assert!(text(&answer).contains(&format!("no tool named `{hidden}`")), "{answer}");
            let asked = json!({ "name": hidden, "arguments": {} });
            let answer = house.modern(path, "tools/call", asked).await.json().await;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
    }
}

#[tokio::test]
async fn two_tools_that_swap_their_names_are_not_mistaken() {
    let house = House::up(TWO).await;
    let agent = house.agent("/mcp/ark").await;
    assert_eq!(text(&agent.call("kill", json!({ "still": "there" })).await), r#"{"still":"there"}"#);
    let line = house.gateway.lines().into_iter().find(|line| line.name() == "ark").unwrap();
    assert_eq!(line.status().generation, 1);
    assert!(!is_answered(&agent.call("echo", json!({})).await), "that is the one that kills");
}

#[tokio::test]
async fn rules_are_for_the_servers_own_names() {
    let rules = "[servers.a]\n{bad}\ntools.rename = { echo = 'say', write = 'look' }\nsafe_tools = ['write']\n\
                 [servers.a.access]\n'*' = { tools.include = ['echo', 'look'] }";
    let house = House::up_but_unseen(rules).await;
    in_time(async {
        while names(&house.modern("/mcp", "tools/list", json!({})).await.json().await, "tools") != ["a__say"]
        {
        }
    })
    .await;
    let agent = house.agent("/mcp/a").await;
    assert!(is_answered(&agent.call("say", json!({})).await));
    for hidden in ["echo", "look", "write"] {
        assert!(text(&agent.call(hidden, json!({})).await).contains("no tool named"), "{hidden}");
    }
}

#[tokio::test]
async fn a_name_that_was_given_away_is_never_its_first_owners() {
    // `gone` is no tool of the server: its name is taken all the same, whatever the server lists today.
    let house = House::up("[servers.a]\n{bad}\ntools.rename = { gone = 'kill' }").await;
    let agent = house.agent("/mcp").await;
    assert!(!names(&agent.ask("tools/list", json!({})).await, "tools").contains(&"a__kill".into()));
    // The server answers a tool that it does not know as it likes: what it must not do is kill itself.
    agent.call("a__kill", json!({})).await;
    assert!(is_answered(&agent.call("a__echo", json!({})).await));
    assert_eq!(house.gateway.lines()[0].status().generation, 1, "nobody was killed");
}

#[tokio::test]
async fn names_that_come_with_a_reload_hold_for_agents_that_are_there() {
    let before = "[servers.a]\n{bad}\nargs = ['--era', 'legacy']";
    let house = House::up(before).await;
    let (straight, all) = (house.agent("/mcp/a").await, house.agent("/mcp").await);
    let mut own = straight.stream(None).await;
    assert!(is_answered(&straight.call("echo", json!({})).await));
    house.gateway.apply(config(&format!("{before}\ntools.rename = {{ echo = 'say' }}")));
    in_time(async {
        while own.event().await.unwrap().data["method"] != "notifications/tools/list_changed" {}
        while !names(&all.ask("tools/list", json!({})).await, "tools").contains(&"a__say".into()) {}
    })
    .await;
    assert!(names(&straight.ask("tools/list", json!({})).await, "tools").contains(&"say".into()));
    for (agent, prefix) in [(&straight, ""), (&all, "a__")] {
        assert_eq!(text(&agent.call(&format!("{prefix}say"), json!({ "n": 1 })).await), r#"{"n":1}"#);
        assert!(text(&agent.call(&format!("{prefix}echo"), json!({})).await).contains("no tool named"));
    }
    assert_eq!(house.gateway.lines()[0].status().generation, 1, "a name is no reason to restart");
}
