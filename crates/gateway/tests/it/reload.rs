//! A config that changes while agents are there.

use crate::kit::{House, config, in_time, names, text};
use serde_json::json;

const BEFORE: &str = "[servers.stays]\n{bad}\nargs = ['__badserver']\n[servers.goes]\n{bad}\nargs = ['__badserver']\n[servers.changes]\n{bad}\nargs = ['__badserver']";
const AFTER: &str = "[servers.stays]\n{bad}\nargs = ['__badserver']\n[servers.changes]\n{bad}\nargs = ['__badserver', '--noise']\n[servers.comes]\n{bad}\nargs = ['__badserver']";

#[tokio::test]
async fn what_is_unchanged_keeps_its_generation_and_agents_find_the_rest() {
    let house = House::up(BEFORE).await;
    let agent = house.agent("/mcp").await;
    let alone = house.agent("/mcp/changes").await;
    let stays = house.gateway.lines().into_iter().find(|line| line.name() == "stays").unwrap();
    let pid = stays.pid();
    for server in ["stays", "goes", "changes"] {
        agent.call(&format!("{server}__echo"), json!({})).await;
    }
    let mut own = agent.stream(None).await;
    let change = house.gateway.apply(config(AFTER));
    assert_eq!(
        (change.added.len(), change.replaced.len(), change.removed.len(), change.kept.len()),
        (1, 1, 1, 1)
    );
    for server in ["stays", "changes", "comes"] {
        assert_eq!(text(&agent.call(&format!("{server}__echo"), json!({})).await), "{}", "{server}");
    }
    assert!(
        text(&agent.call("goes__echo", json!({})).await).contains("the servers are: stays, changes, comes")
    );
    assert_eq!((stays.pid(), stays.status().generation), (pid, 1));
    in_time(async {
        while own.event().await.unwrap().data["method"] != "notifications/tools/list_changed" {}
        while !names(&agent.ask("tools/list", json!({})).await, "tools").contains(&"comes__echo".into()) {}
    })
    .await;
    assert_eq!(alone.request(1, "ping", json!({})).await.status, 404, "it begins anew with the new server");
}
