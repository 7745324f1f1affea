//! The environment of a server process.

use http::Method;
use linetender::State;
use serde_json::json;

use crate::kit::{House, in_time};

#[tokio::test]
async fn a_server_that_inherits_our_environment_gets_its_own_variables_too() {
    let house =
        House::up("[servers.a]\n{bad}\ninherit_env = true\nenv = { TOKEN = 't0ken', HOME = '/explicit' }")
            .await;
    let lines = house.gateway.lines();
    let pid = lines[0].pid().expect("it is up");
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let values = |name: &str| -> Vec<String> {
        let prefix = format!("{name}=");
        let variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        variables.filter_map(|variable| Some(variable.strip_prefix(&prefix)?.to_owned())).collect()
    };
    assert_eq!(values("TOKEN"), ["t0ken"], "given by the config");
    assert_eq!(values("HOME"), ["/explicit"], "the config wins over what is inherited");
    assert_eq!(values("CARGO_MANIFEST_DIR"), [env!("CARGO_MANIFEST_DIR")], "inherited from the test runner");
}

#[tokio::test]
async fn x20_which_path_was_searched_for_a_misspelt_command_is_for_the_operator_alone() {
    let house = House::open("[servers.a]\ncommand = 'linetender-no-such-command'\n").await;
    let line = house.gateway.shared_line("a").unwrap();
    let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
    let known = &status.cause.expect("it failed").text;
    assert!(known.contains("(PATH searched: "), "status and log have it: {known}");
    let path = std::env::var("PATH").unwrap();
    let mut told = 0;
    let mut hears = |said: String| {
        assert!(!said.contains("PATH searched") && !said.contains(&path), "{said}");
        told += usize::from(said.contains("cannot run linetender-no-such-command: "));
    };
    for (at, name) in [("/mcp", "a__echo"), ("/mcp/a", "echo")] {
        for (method, params) in [
            ("tools/call", json!({ "name": name, "arguments": {} })),
            ("tools/list", json!({})),
            ("resources/read", json!({ "uri": "x:1" })),
            ("server/discover", json!({})),
        ] {
            hears(house.modern(at, method, params).await.last().await.to_string());
        }
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        }});
        let headers =
            [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        hears(house.send(Method::POST, at, &headers, hello.to_string()).await.last().await.to_string());
    }
    assert!(told > 2, "agents are told what failed: {told}");
}
