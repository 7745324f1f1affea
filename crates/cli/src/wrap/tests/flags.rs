//! The way back from an entry to which its owner has added flags of `linetender run`, or whose program has another name.

use serde_json::{Value, json};

use super::{Format, Start, count, undone, wrapped, wrapped_by};
use crate::wrap::agents::Reader;
use crate::wrap::args::Via;

const CODEX: &str = include_str!("configs/codex.toml");

/// Flags with a value and without, one with its value in the same word.
const FLAGS: &str =
    r#""--call-timeout", "2m", "--no-journal", "--no-memory", "--tool-errors=error", "--safe-tool", "--", "#;

fn before() -> Value {
    json!({ "mcpServers": {
        "a": { "command": "npx", "args": ["-y", "x", "--name", "--"] },
        "b": { "type": "http", "url": "https://b.example/mcp", "headers": { "Authorization": "k" }, "timeout": 5 },
        "c": { "url": "http://localhost:1/mcp" },
    } })
}

#[test]
fn flags_that_the_user_added_do_not_stand_in_the_way_back() {
    let before = before().to_string();
    let after = wrapped(Format::Json, &before);
    for place in [r#""--name""#, r#""npx""#, r#""$LINETENDER_URL""#, r#""http://localhost"#] {
        let flagged = after.replacen(place, &format!("{FLAGS}{place}"), 1);
        assert_ne!(flagged, after, "{place}");
        for backup in [Some(before.as_str()), None] {
            let undone = undone(Format::Json, &flagged, backup);
            assert!(undone.left.is_empty(), "{place}: {:?}", undone.left);
            let now: Value = serde_json::from_str(&undone.text).unwrap();
            assert_eq!(now, self::before(), "{place}");
        }
    }
}

#[test]
fn flags_in_toml_do_not_either() {
    let after = wrapped(Format::Toml, CODEX);
    for name in ["docs", "bare", "figma", "both", "sub", "inl", "inl2", "dot2"] {
        let place = format!(r#""--name", "{name}""#);
        let flagged = after.replacen(&place, &format!("{FLAGS}{place}"), 1);
        assert_ne!(flagged, after, "{name}");
        let undone = undone(Format::Toml, &flagged, Some(CODEX));
        assert!(undone.left.is_empty(), "{:?}", undone.left);
        assert_eq!(undone.text.replace("\nargs = []", ""), CODEX.replace("\nargs = []", ""), "{name}");
    }
}

/// A file that was downloaded, or kept beside a newer one.
#[test]
fn an_entry_is_ours_whatever_the_program_is_called() {
    let before = before().to_string();
    let after = wrapped_by("/opt/tender-0.1", Format::Json, &before);
    assert_eq!(count(Format::Json, &after), 3);
    assert_eq!(wrapped(Format::Json, &after), after, "wrapping twice changes nothing");
    assert_eq!(undone(Format::Json, &after, Some(&before)).text, before);
}

/// With what its owner may add to the runner's own words.
#[test]
fn an_entry_that_a_package_runner_starts_is_ours() {
    let before = before().to_string();
    for (via, program, words) in
        [(Via::Uvx, "uvx", json!(["linetender"])), (Via::Npx, "npx", json!(["-y", "linetender"]))]
    {
        let after = wrapped_by(Start::via(via, Reader::Shell), Format::Json, &before);
        let entry = &serde_json::from_str::<Value>(&after).unwrap()["mcpServers"]["a"];
        let args = entry["args"].as_array().unwrap();
        let (first, rest) = args.split_at(words.as_array().unwrap().len());
        assert_eq!((&entry["command"], &json!(first)), (&json!(program), &words));
        assert_eq!(json!(rest), json!(["run", "--name", "a", "npx", "-y", "x", "--name", "--"]));
        assert_eq!(count(Format::Json, &after), 3);
        assert_eq!(wrapped(Format::Json, &after), after, "wrapping twice changes nothing");
        assert_eq!(undone(Format::Json, &after, Some(&before)).text, before);
        for pinned in
            [r#""linetender@0.1.0""#, r#""linetender==0.1.0""#, r#""--from=linetender", "linetender""#]
        {
            let changed = after.replace(r#""linetender""#, &format!(r#""--quiet", {pinned}"#));
            for backup in [Some(before.as_str()), None] {
                let undone = undone(Format::Json, &changed, backup);
                assert!(undone.left.is_empty(), "{:?}", undone.left);
                assert_eq!(serde_json::from_str::<Value>(&undone.text).unwrap(), self::before());
            }
        }
    }
    let codex = wrapped_by(Start::via(Via::Uvx, Reader::Shell), Format::Toml, CODEX);
    assert!(codex.contains(r#"command = "uvx""#), "{codex}");
    assert_eq!(undone(Format::Toml, &codex, Some(CODEX)).text, CODEX);
}

#[test]
fn what_was_written_by_hand_for_another_runner_is_ours_too() {
    for (program, args) in [
        ("uv", json!(["tool", "run", "linetender", "run", "--", "x"])),
        ("pipx", json!(["run", "linetender", "run", "x"])),
        ("npx", json!(["--yes", "--package", "linetender", "--", "linetender", "run", "x"])),
        ("npm", json!(["exec", "--", "linetender", "run", "x"])),
    ] {
        let text = json!({ "mcpServers": { "a": { "command": program, "args": args } } }).to_string();
        assert_eq!(count(Format::Json, &text), 1, "{text}");
        let undone: Value = serde_json::from_str(&undone(Format::Json, &text, None).text).unwrap();
        assert_eq!(undone["mcpServers"]["a"], json!({ "command": "x", "args": [] }), "{text}");
    }
}

#[test]
fn what_a_package_runner_starts_otherwise_is_not() {
    for (program, args) in [
        ("npx", json!(["-y", "linetender-like", "run", "--name", "a", "x"])),
        ("npx", json!(["-y", "linetender", "inside"])),
        ("uvx", json!(["--from", "linetender", "other", "run", "x"])),
        ("npm", json!(["linetender", "run", "--", "x"])),
        ("uv", json!(["run", "linetender", "run", "x"])),
    ] {
        let text = json!({ "mcpServers": { "a": { "command": program, "args": args } } }).to_string();
        assert_eq!(count(Format::Json, &text), 0, "{text}");
    }
}

#[test]
fn the_run_of_another_program_is_not_ours() {
    for args in [
        json!(["run", "--name", "a", "-i", "--rm", "image"]),
        json!(["run", "--name", "a", "image"]),
        json!(["run", "--name", "b", "--", "image"]),
        json!(["run", "--", "image"]),
        json!(["exec", "--name", "a", "--", "image"]),
    ] {
        let text = json!({ "mcpServers": { "a": { "command": "docker", "args": args } } }).to_string();
        assert_eq!(count(Format::Json, &text), 0, "{text}");
        let after = wrapped(Format::Json, &text);
        assert_eq!((count(Format::Json, &after), undone(Format::Json, &after, None).text), (1, text));
    }
}

#[test]
fn a_command_or_an_address_written_by_hand_comes_out_as_what_it_is() {
    for (args, was) in [
        (json!(["run", "npx", "-y", "x"]), json!({ "command": "npx", "args": ["-y", "x"] })),
        (json!(["run", "--", "$MINE", "x"]), json!({ "command": "$MINE", "args": ["x"] })),
        (json!(["run", "--", "https://a.example/mcp"]), json!({ "url": "https://a.example/mcp" })),
    ] {
        let text = json!({ "mcpServers": { "a": { "command": "linetender", "args": args } } }).to_string();
        let undone: Value = serde_json::from_str(&undone(Format::Json, &text, None).text).unwrap();
        assert_eq!(undone["mcpServers"]["a"], was, "{text}");
    }
}

#[test]
fn shared_servers_are_given_the_variables_of_their_entry_and_what_keeps_state_is_not_shared() {
    let before = json!({ "mcpServers": {
        "git": { "command": "mcp-server-git", "args": ["--share"], "env": { "TOKEN": "t", "REGION": "eu" } },
        "browser": { "command": "npx", "args": ["@playwright/mcp"] },
        "my-shell": { "command": "my-shell" }
    } });
    let text = before.to_string();
    let after = wrapped_by(Start::from("linetender").sharing(true), Format::Json, &text);
    let servers = serde_json::from_str::<Value>(&after).unwrap()["mcpServers"].take();
    assert_eq!(
        servers["git"]["args"],
        json!([
            "run",
            "--name",
            "git",
            "--share",
            "--env",
            "REGION",
            "--env",
            "TOKEN",
            "mcp-server-git",
            "--share"
        ])
    );
    assert_eq!(servers["git"]["env"], before["mcpServers"]["git"]["env"]);
    assert_eq!(
        servers["browser"]["args"],
        json!(["run", "--name", "browser", "--stateful", "npx", "@playwright/mcp"])
    );
    assert_eq!(servers["my-shell"]["args"], json!(["run", "--name", "my-shell", "my-shell"]));
    assert_eq!(undone(Format::Json, &after, Some(&text)).text, text);
    let by_entry: Value = serde_json::from_str(&undone(Format::Json, &after, None).text).unwrap();
    assert_eq!(by_entry["mcpServers"]["git"], before["mcpServers"]["git"]);
}
