//! What a gateway writes to its audit file.

use serde_json::Value;

use crate::kit::Home;

#[test]
fn whoever_called_is_named_whether_the_server_is_shared_or_the_agents_own() {
    let home = Home::new(
        "audit-names",
        "[servers.a]\n{bad}\n[servers.b]\nscope = \"identity\"\n{bad}\n[servers.c]\nscope = \"session\"\n{bad}\n",
    );
    let audit = home.path().join("audit/audit.jsonl");
    let config = std::fs::read_to_string(home.config()).unwrap();
    home.write(&format!("[gateway.audit]\npath = '{}'\n{config}", audit.display()));
    let mut agent = home.agent();
    for server in ["a", "b", "c"] {
        agent.wait_for(&format!("{server}__echo"), "{}");
    }
    assert!(agent.leaves().success());
    let text = std::fs::read_to_string(audit).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let principal = |server: &str| -> &Value {
        let is_call = |line: &&Value| line["server"] == server && line["tool"] == "echo";
        &lines.iter().find(is_call).unwrap_or_else(|| panic!("{text}"))["principal"]
    };
    assert!(principal("a").is_string(), "{text}");
    assert_eq!(["b", "c"].map(principal), [principal("a"); 2], "{text}");
}
