//! The way back from a file that somebody changed after it was wrapped.

use serde_json::{Value, json};

use super::super::judge::Why;
use super::{Format, undone, wrapped};

const CURSOR: &str = include_str!("configs/cursor.json");
const CLAUDE: &str = include_str!("configs/claude-code.json");
const CODEX: &str = include_str!("configs/codex.toml");

#[test]
fn what_the_user_added_since_stays() {
    let added = |text: &str| text.replace("// my servers", "// ours now");
    let after = added(&wrapped(Format::Json, CURSOR));
    assert_eq!(undone(Format::Json, &after, Some(CURSOR)).text, added(CURSOR));

    let added = |text: &str| {
        format!("{text}\n[mcp_servers.mine]\ncommand = \"linetender\"\nargs = [\"run\", \"--\", \"x\"]\n")
    };
    let undone = undone(Format::Toml, &added(&wrapped(Format::Toml, CODEX)), Some(CODEX));
    assert_eq!(undone.text, format!("{CODEX}\n[mcp_servers.mine]\ncommand = \"x\"\nargs = []\n"));
}

/// Claude Code writes its whole file anew, in its own layout.
#[test]
fn a_file_that_the_agent_wrote_anew_comes_back_with_the_same_meaning() {
    let before: Value = serde_json::from_str(CLAUDE).unwrap();
    let after: Value = serde_json::from_str(&wrapped(Format::Json, CLAUDE)).unwrap();
    let rewritten = serde_json::to_string_pretty(&after).unwrap();
    for backup in [Some(CLAUDE), None] {
        let undone = undone(Format::Json, &rewritten, backup);
        assert!(undone.left.is_empty(), "{:?}", undone.left);
        assert_eq!(serde_json::from_str::<Value>(&undone.text).unwrap(), before, "{}", undone.text);
    }
}

#[test]
fn an_address_comes_back_under_the_name_that_its_agent_uses() {
    let before = r#"{"mcpServers":{"a":{"type":"streamableHttp","serverUrl":"http://a/mcp?k=1","headers":{"X":"y"},"z":1}}}"#;
    let after: Value = serde_json::from_str(&wrapped(Format::Json, before)).unwrap();
    let undone = undone(Format::Json, &after.to_string(), Some(before)).text;
    assert_eq!(
        serde_json::from_str::<Value>(&undone).unwrap(),
        serde_json::from_str::<Value>(before).unwrap()
    );
}

/// Nothing says what such an entry was: better wrapped and working than broken.
#[test]
fn an_entry_that_no_longer_says_what_it_was_is_left_and_named() {
    let text = json!({ "mcpServers": {
        "odd": { "command": "linetender", "args": ["run", "--header", "X: $Y", "http://a/mcp"], "env": { "MINE": "1" } },
        "fine": { "command": "linetender", "args": ["run", "--", "x", "y"] },
    } });
    let undone = undone(Format::Json, &text.to_string(), None);
    assert_eq!(undone.left, [("odd".to_owned(), Why::Changed)]);
    let now: Value = serde_json::from_str(&undone.text).unwrap();
    assert_eq!(now["mcpServers"]["odd"], text["mcpServers"]["odd"]);
    assert_eq!(now["mcpServers"]["fine"], json!({ "command": "x", "args": ["y"] }));
}

#[test]
fn what_was_wrapped_by_hand_before_stays_wrapped() {
    let before = r#"{ "mcpServers": { "hand": { "command": "linetender", "args": ["run", "--", "x"] }, "b": { "command": "y" } } }"#;
    let after = wrapped(Format::Json, before);
    assert_eq!(undone(Format::Json, &after, Some(before)).text, before);
    let changed = after.replace("{ \"mcpServers\"", "{  \"mcpServers\"");
    assert_eq!(undone(Format::Json, &changed, Some(before)).text, before.replace("{ \"mcp", "{  \"mcp"));
}

#[test]
fn an_array_that_ends_in_a_comma_is_still_one_afterwards() {
    let text = r#"{ "servers": { "a": { "command": "linetender", "args": ["run", "--", "x", ], } } }"#;
    let undone = undone(Format::Json, text, None).text;
    assert_eq!(undone, r#"{ "servers": { "a": { "command": "x", "args": [], } } }"#);
}
