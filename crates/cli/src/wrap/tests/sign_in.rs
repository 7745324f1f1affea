//! Servers at an address: which may sign their user in, which are left alone, and what a list of processes shows.

use serde_json::{Value, json};

use super::super::entry;
use super::super::judge::{Decision, Why, judge};
use super::{Format, plan, wrapped};

fn config(entry: &Value) -> String {
    json!({ "mcpServers": { "a": entry } }).to_string()
}

/// Why it is left alone, if it is.
fn left(entry: &Value) -> Option<Why> {
    plan(Format::Json, &config(entry)).unwrap().left.pop().map(|(_, why)| why)
}

/// Whether the user is told how to log in.
fn may_sign_in(entry: &Value) -> bool {
    let plan = plan(Format::Json, &config(entry)).unwrap();
    assert!(plan.left.is_empty(), "{:?}", plan.left);
    !plan.logins.is_empty()
}

/// Each of these works with OAuth, and fails with 401 for good without.
#[test]
fn a_server_without_a_key_is_wrapped_and_may_want_a_login() {
    for url in [
        "https://mcp.supabase.com/mcp?project_ref=abc&read_only=true",
        "https://mcp.example.com/mcp?oauth=true&max_tokens=5&keyword=x#key=1",
        "https://server.smithery.ai/@me/thing/mcp",
        "https://localhost.example.com/mcp",
        "https://127.0.0.1.example.com/mcp",
    ] {
        assert!(may_sign_in(&json!({ "url": url })), "{url}");
    }
    for header in ["X-MCP-Readonly", "X-MCP-Toolsets", "X-Region", "User-Agent"] {
        let entry = json!({ "url": "https://api.githubcopilot.com/mcp/", "headers": { header: "true" } });
        assert!(may_sign_in(&entry), "{header}");
    }
}

#[test]
fn a_key_by_its_name_needs_no_sign_in() {
    for name in ["exaApiKey", "api_key", "apikey", "token", "access_token", "profile=x&secret"] {
        assert!(!may_sign_in(&json!({ "url": format!("https://a.example/mcp?{name}=abc") })), "{name}");
    }
    for header in ["Authorization", "X-API-Key", "CONTEXT7_API_KEY", "PRIVATE-TOKEN", "Cookie", "X-Auth"] {
        let entry = json!({ "url": "https://a.example/mcp", "headers": { "X-Region": "eu", header: "abc" } });
        assert!(!may_sign_in(&entry), "{header}");
    }
    for url in
        ["http://a.example/mcp", "https://localhost:8443/mcp", "https://127.0.0.9/mcp", "https://[::1]:1/mcp"]
    {
        assert!(!may_sign_in(&json!({ "url": url })), "{url}");
    }
    assert!(!may_sign_in(&json!({ "url": "https://a.example/mcp", "oauth": false })));
}

/// With settings of its own the agent may be another client than linetender would be.
#[test]
fn a_server_that_the_agent_signs_in_to_with_its_own_settings_is_left_alone() {
    let entry = json!({ "url": "https://a.example/mcp", "oauth": { "clientId": "c" } });
    assert_eq!(left(&entry), Some(Why::SignsIn("oauth")));
}

/// `run` would refuse it.
#[test]
fn a_password_in_the_address_is_left_alone_and_said() {
    let text = config(&json!({ "url": "https://me:hush@a.example/mcp?key=k", "headers": { "X-Key": "k" } }));
    let root = Format::Json.parse(&text).unwrap();
    let decision = judge(&entry::find(&root).unwrap()[0]);
    assert!(matches!(decision, Decision::Left(Why::Password)), "{decision:?}");
}

/// Some services put the key into the path, where it looks like any other word.
#[test]
fn no_secret_becomes_an_argument() {
    for url in [
        "https://a.example/s/hush/mcp",
        "https://a.example/mcp?key=hush",
        "http://a.example/hush",
        "http://[::1]/?k=hush",
    ] {
        let after = wrapped(Format::Json, &config(&json!({ "url": url, "headers": { "X-Key": "hush" } })));
        let entry: Value = serde_json::from_str(&after).unwrap();
        let entry = &entry["mcpServers"]["a"];
        assert!(!entry["args"].to_string().contains("hush"), "{entry}");
        assert_eq!(entry["env"]["LINETENDER_X_KEY"], "hush");
        assert_eq!(entry["env"]["LINETENDER_URL"], url);
    }
}
