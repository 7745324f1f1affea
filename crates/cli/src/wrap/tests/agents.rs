//! What becomes of the configuration of each agent, as a snapshot, and the way back.

use super::{Format, count, plan, undone, wrapped};

/// The wrapped text, what was left alone, and the checks that hold for every file.
fn page(format: Format, text: &str) -> String {
    let plan = plan(format, text).unwrap();
    let after = plan.apply(text);
    assert_eq!(wrapped(format, &after), after, "wrapping twice changes nothing");
    let back = undone(format, &after, Some(text));
    assert_eq!(back.text, text, "back to the very bytes");
    assert!(back.left.is_empty(), "{:?}", back.left);
    let windows = text.replace('\n', "\r\n");
    assert_eq!(wrapped(format, &windows), after.replace('\n', "\r\n"), "line ends stay what they are");
    let left = plan.left.iter().map(|(name, why)| format!("left alone: {name}: {why}\n"));
    format!("{after}\n---\n{}", left.collect::<String>())
}

macro_rules! agents {
    ($($test:ident: $file:literal, $format:expr;)*) => {$(
        #[test]
        fn $test() {
            insta::assert_snapshot!(page($format, include_str!(concat!("configs/", $file))));
        }
    )*};
}

agents! {
    claude_code_with_its_projects: "claude-code.json", Format::Json;
    codex_in_every_way_that_toml_has: "codex.toml", Format::Toml;
    continue_with_its_list: "continue.yaml", Format::Yaml;
    cursor_with_comments_and_trailing_commas: "cursor.json", Format::Json;
    gemini_on_one_line: "gemini.json", Format::Json;
    goose_in_every_way_that_yaml_has: "goose.yaml", Format::Yaml;
    opencode_where_a_command_is_a_list: "opencode.json", Format::Json;
    vs_code_with_inputs_and_tabs: "vscode.json", Format::Json;
    windsurf_and_entries_to_leave_alone: "windsurf.json", Format::Json;
    zed_old_and_new: "zed.json", Format::Json;
}

#[test]
fn a_file_without_a_place_for_servers_is_not_a_configuration() {
    for (format, text) in [
        (Format::Json, r#"{ "name": "left-pad" }"#),
        (Format::Json, "[]"),
        (Format::Toml, "a = 1"),
        (Format::Yaml, "a: 1"),
        (Format::Yaml, ""),
        (Format::Yaml, "extensions: { developer: { type: builtin } }"),
    ] {
        assert!(super::entry::find(&format.parse(text).unwrap()).is_none(), "{text}");
    }
    assert_eq!(count(Format::Json, r#"{ "mcpServers": {} }"#), 0);
}
