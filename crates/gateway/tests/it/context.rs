//! S53: agents of one gateway are told each of what it had used, also when the configuration changes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{House, config, in_time, text};

const BEFORE: &str = "[servers.a]\n{bad}\nstate = 'unknown'\n";
const AFTER: &str = "[servers.a]\n{bad}\nargs = ['--noise']\nstate = 'unknown'\n";

fn is_notice(result: &Value) {
    let ours = &result["result"]["_meta"]["linetender"];
    assert_eq!(ours["reason"], "context-replaced", "{result}");
    assert_eq!(ours["delivery"], "not executed", "{result}");
}

async fn replaced(house: &House) {
    let line = house.gateway.lines().into_iter().next().unwrap();
    in_time(line.redial()).await.unwrap();
}

#[tokio::test]
async fn s53_agents_of_one_server_are_told_each_of_what_it_used() {
    let house = House::up(BEFORE).await;
    let (one, other, third) =
        (house.agent("/mcp").await, house.agent("/mcp").await, house.agent("/mcp").await);
    for agent in [&one, &other] {
        agent.call("a__use", json!({ "what": "test" })).await;
    }
    replaced(&house).await;
    is_notice(&one.call("a__drop_all", json!({})).await);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(text(&one.call("a__drop_all", json!({})).await), "dropped prod");
    is_notice(&other.call("a__drop_all", json!({})).await);
    assert_eq!(text(&third.call("a__drop_all", json!({})).await), "dropped prod", "it used nothing");
}

#[tokio::test]
async fn s53_a_changed_server_is_a_new_context() {
    let house = House::up(BEFORE).await;
    let agent = house.agent("/mcp").await;
    agent.call("a__use", json!({ "what": "test" })).await;
    house.gateway.apply(config(AFTER));
    is_notice(&agent.call("a__drop_all", json!({})).await);
}
