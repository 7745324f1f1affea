//! Configurations that nobody wrote: generated ones keep their promises, broken ones break nothing.

use proptest::prelude::*;
use proptest::sample::select;

use super::{Format, count, plan, undone, wrapped};

const CONFIGS: [(Format, &str); 7] = [
    (Format::Yaml, include_str!("configs/goose.yaml")),
    (Format::Yaml, include_str!("configs/continue.yaml")),
    (Format::Json, include_str!("configs/cursor.json")),
    (Format::Json, include_str!("configs/windsurf.json")),
    (Format::Json, include_str!("configs/opencode.json")),
    (Format::Json, include_str!("configs/zed.json")),
    (Format::Toml, include_str!("configs/codex.toml")),
];

fn space() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", "\n", "\r\n\t", "\n    ", " /* , ] } */ ", " // \"x\": {\n  "])
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["--", "-y", "", "größe", "a b", "$X", "${Y}", "\\", "\"", "\u{7f}\u{1}", "run"])
            .prop_map(str::to_owned),
        "[a-zé/\\-\"\\\\]{1,8}",
    ]
}

/// Items between brackets, with any space around them.
fn json_list(open: char, items: &[String], gaps: &[&str], comma: bool, close: char) -> String {
    let mut text = String::from(open);
    let last = items.len().saturating_sub(1);
    for (at, item) in items.iter().enumerate() {
        text += gaps[at % gaps.len()];
        text += item;
        text += gaps[(at + 1) % gaps.len()];
        text += if at < last || comma { "," } else { "" };
    }
    text += gaps[last % gaps.len()];
    text.push(close);
    text
}

fn json_entry() -> impl Strategy<Value = String> {
    let parts = (
        word(),
        prop::option::of(prop::collection::vec(word(), 0..4)),
        select(vec!["http://a/mcp", "https://b/?key=1", "https://c"]),
    );
    let headers = prop::option::of(prop::collection::vec(("(X-Key|[A-Za-z-]{1,6})", word()), 0..3));
    (parts, headers, any::<(bool, bool, bool)>(), prop::collection::vec(space(), 5)).prop_map(
        |((command, args, url), headers, (stdio, comma, kind), gaps)| {
            let json = |text: &str| serde_json::to_string(text).unwrap();
            let pair = |key: &str, value: String| format!("{}{}:{}{value}", json(key), gaps[0], gaps[1]);
            let list = |items: Vec<String>, open, close| {
                let comma = comma && !items.is_empty();
                json_list(open, &items, &gaps, comma, close)
            };
            let mut members = vec![pair("disabled", "false".to_owned())];
            if stdio {
                members.push(pair("command", json(&command)));
                members.extend(
                    args.map(|args| pair("args", list(args.iter().map(|arg| json(arg)).collect(), '[', ']'))),
                );
            } else {
                members.extend(kind.then(|| pair("type", json("http"))));
                members.push(pair("url", json(url)));
                let table = |headers: Vec<(String, String)>| {
                    headers.iter().map(|(key, value)| pair(key, json(value))).collect()
                };
                members.extend(headers.map(|headers| pair("headers", list(table(headers), '{', '}'))));
            }
            if comma {
                members.reverse();
            }
            list(members, '{', '}')
        },
    )
}

fn json_config() -> impl Strategy<Value = String> {
    let entries = prop::collection::vec((word(), json_entry()), 0..5);
    let place = select(vec!["mcpServers", "servers", "context_servers"]);
    (entries, place, prop::collection::vec(space(), 4), any::<bool>()).prop_map(
        |(entries, place, gaps, comma)| {
            let comma = comma && !entries.is_empty();
            let entries = entries
                .iter()
                .map(|(name, entry)| format!("{}: {entry}", serde_json::to_string(name).unwrap()));
            let servers = json_list('{', &entries.collect::<Vec<_>>(), &gaps, comma, '}');
            format!(
                "{}{{\"x\": 1.50,{}\"{place}\":{servers}}}{}",
                gaps[0],
                gaps[1],
                gaps[2].replace("//", "\n//")
            )
        },
    )
}

/// What a reader of YAML finds there, without the servers that were changed.
fn others(text: &str, changed: &[Vec<String>]) -> String {
    use linetender_gateway::yaml::{Value, Yaml, parse};
    fn spell(yaml: &Yaml, path: &[String], changed: &[Vec<String>]) -> String {
        let name = match yaml.get("name").map(|name| &name.is) {
            Some(Value::Text(name)) => Some(name),
            _ => None,
        };
        let is_changed =
            |path: &[String]| changed.iter().any(|changed| changed.ends_with(path) && path.len() == 2);
        match &yaml.is {
            _ if is_changed(path) => "changed".to_owned(),
            Value::Table(_)
                if path == ["mcpServers"]
                    && name.is_some_and(|name| is_changed(&[path[0].clone(), name.clone()])) =>
            {
                "changed".to_owned()
            }
            Value::Table(members) => {
                let members = members.iter().map(|member| {
                    let path: Vec<_> = path.iter().cloned().chain([member.name.clone()]).collect();
                    format!("{:?}={}", member.name, spell(&member.value, &path, changed))
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join("; "))
            }
            Value::List(items) => {
                let items = items.iter().map(|item| spell(item, path, changed));
                format!("[{}]", items.collect::<Vec<_>>().join(", "))
            }
            other => format!("{other:?}"),
        }
    }
    spell(&parse(text).unwrap(), &[], changed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wrapping_and_undoing_gives_the_same_bytes_and_twice_is_once(text in json_config()) {
        let once = wrapped(Format::Json, &text);
        prop_assert_eq!(&wrapped(Format::Json, &once), &once);
        prop_assert_eq!(count(Format::Json, &once), count(Format::Json, &text) + plan(Format::Json, &text).unwrap().changes.len());
        prop_assert_eq!(&undone(Format::Json, &once, Some(&text)).text, &text);
        // Somebody wrote behind it: their bytes stay, and so do all others.
        let longer = format!("{once}\n// more\n");
        prop_assert_eq!(undone(Format::Json, &longer, Some(&text)).text, format!("{text}\n// more\n"));
    }

    /// Bytes that were changed, cut out or doubled: whatever it is, it is refused, or wrapped to something that parses.
    #[test]
    fn mutated_bytes_never_panic(
        which in 0..CONFIGS.len(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..12),
    ) {
        let (format, text) = CONFIGS[which];
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, how) in hits {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, b"{}[],:\"'\n\r#/=-&*|? "[usize::from(byte) % 19]),
                _ => bytes.extend_from_within(at..(at + usize::from(byte)).min(bytes.len())),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(plan) = plan(format, &text) {
            let once = plan.apply(&text);
            prop_assert!(format.parse(&once).is_ok(), "{once}");
            let known = count(format, &text);
            prop_assert_eq!(count(format, &once), known + plan.changes.len(), "{}\n---\n{}", text, once);
            if format == Format::Yaml {
                let changed: Vec<_> = plan.changes.iter().map(|change| change.path.clone()).collect();
                prop_assert_eq!(others(&once, &changed), others(&text, &changed), "{}\n---\n{}", text, once);
            }
            prop_assert_eq!(&undone(format, &once, Some(&text)).text, &text);
            let without = undone(format, &once, None).text;
            prop_assert!(format.parse(&without).is_ok(), "{without}");
        }
    }
}

/// As deep as a file of the largest size could be.
#[test]
fn a_file_that_is_only_brackets_is_refused() {
    for (format, front, bracket) in [
        (Format::Json, "", "["),
        (Format::Json, "", "{\"a\":"),
        (Format::Toml, "a=", "["),
        (Format::Yaml, "", "["),
        (Format::Yaml, "", "- "),
    ] {
        let text = format!("{front}{}", bracket.repeat(1 << 20));
        assert!(format.parse(&text).is_err());
    }
}
