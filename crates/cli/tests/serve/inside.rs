//! `linetender inside` behind a gateway, where other agents call too.

use serde_json::json;

use crate::kit::{Home, LINETENDER};

fn house(name: &str) -> Home {
    let home = Home::new(name, "");
    let runtime = home.path().display();
    home.write(&format!(
        "[servers.self]\ncommand = '{LINETENDER}'\nargs = ['inside']\nenv = {{ XDG_RUNTIME_DIR = '{runtime}' }}\n\
         [servers.other]\ncommand = '{LINETENDER}'\nargs = ['__badserver']\n"
    ));
    home
}

#[test]
fn an_agent_does_not_bring_back_what_an_operator_took_out_of_service() {
    let home = house("inside-parked");
    let mut agent = home.agent();
    agent.wait_for("self__server_status", "other: up");
    let order = |word: &str| {
        let output = home.linetender(&[word, "other"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let redial = json!({ "name": "self__server_redial", "arguments": { "server": "other" } });
    order("park");
    let refused = agent.ask("tools/call", &redial);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains("an operator took this server out of service"), "{refused}");
    order("wake");
    agent.wait_for("other__echo", "{}");
    let done = agent.ask("tools/call", &redial);
    assert_eq!(done["result"]["isError"], false, "{done}");
}

#[test]
fn an_agent_is_not_told_what_others_call_or_who_they_are() {
    let home = house("inside");
    let mut agent = home.agent();
    agent.wait_for("self__server_status", "self: up");
    let calls = agent.ask("tools/call", &json!({ "name": "self__calls_in_progress", "arguments": {} }));
    let text = calls["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{calls}"));
    // This call itself is one of them; that it is this agent's, the server cannot know.
    assert!(text.contains(r#""server":"self""#) && text.contains(r#""method":"tools/call""#), "{text}");
    assert!(!text.contains("calls_in_progress") && !text.contains("principal"), "{text}");
}
