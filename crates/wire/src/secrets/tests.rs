use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::{MASK, Secrets, hide};

/// Values of tests that run at the same time differ, since all of this process share the one set.
fn kept(value: &str) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.keep(value);
    secrets
}

#[test]
fn a_value_is_masked_however_it_is_spelt() {
    let value = "tr\"icky/+p\\w d&1-spelt";
    let _kept = kept(value);
    let json = serde_json::json!({ "a": value }).to_string();
    let twice = serde_json::json!({ "log": json }).to_string();
    for text in [
        value.to_owned(),
        json,
        twice,
        format!("{value:?}"),
        "tr%22icky%2F%2Bp%5Cw%20d%261-spelt".to_owned(),
        "tr%22icky%2f%2bp%5cw%20d%261-spelt".to_owned(),
        "tr%22icky%2F%2Bp%5Cw+d%261-spelt".to_owned(),
        "tr&quot;icky/+p\\w d&amp;1-spelt".to_owned(),
    ] {
        let shown = hide(&text);
        assert!(shown.contains(MASK) && !shown.contains("icky"), "{text} {shown}");
    }
    for before in ["", "u", "me", "you:"] {
        for engine in [STANDARD, URL_SAFE] {
            let text = engine.encode(format!("{before}{value}"));
            let shown = hide(&text);
            assert!(shown.contains(MASK) && shown.len() < MASK.len() + before.len() + 6, "{text} {shown}");
        }
    }
}

/// Every character of a text, spelt by this.
fn all(text: &str, spelt: impl Fn(char) -> String) -> String {
    text.chars().map(spelt).collect()
}

fn bytes(text: &str, spelt: impl Fn(u8) -> String) -> String {
    text.bytes().map(spelt).collect()
}

#[test]
fn x18_a_value_is_masked_whatever_stands_between_its_characters_and_however_each_is_spelt() {
    let value = "w/Jal+Gr\u{fc}ne o'bat&42-x18";
    let _kept = kept(value);
    let json =
        |text: &str| all(text, |c| if c.is_ascii() { c.into() } else { format!("\\u{:04x}", u32::from(c)) });
    let percent = |text: &str, kept: &str| -> String {
        let spelt = |byte: u8| match char::from(byte) {
            c if c.is_ascii_alphanumeric() || kept.contains(c) => c.to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(spelt).collect()
    };
    let html = value.replace('&', "&amp;").replace('\'', "&#x27;");
    let inside = |piece: &str| format!("{}{piece}{}", &value[..10], &value[10..]);
    let mut texts = vec![
        json(value),
        json(&json(value).replace('\\', "\\\\")),
        json(value).replace('/', "\\/"),
        percent(value, "/"),
        percent(value, "/+'"),
        percent(value, "/").replace("%20", "+"),
        percent(&percent(value, ""), ""),
        html.clone(),
        html.replace("&#x27;", "&#39;"),
        html.replace("&#x27;", "&apos;"),
        json(&html),
        all(value, |c| format!("\\u{:04X}", u32::from(c))),
        all(value, |c| format!("\\u{{{:x}}}", u32::from(c))),
        all(value, |c| format!("\\U{:08x}", u32::from(c))),
        all(value, |c| format!("&#{};", u32::from(c))),
        all(value, |c| format!("&#x{:x};", u32::from(c))),
        all(value, |c| format!("{c}\u{1b}[0;31m")),
        bytes(value, |byte| format!("%{byte:02x}")),
        bytes(value, |byte| format!("\\x{byte:02x}")),
        bytes(value, |byte| format!("\\{byte:03o}")),
    ];
    for piece in [
        "\u{1b}[0m",
        "\u{1b}[1;31m",
        "\u{1b}[K",
        "\u{1b}(B",
        "\u{9b}0m",
        "\u{1b}]0;title\u{7}",
        "\u{fe0f}",
        "\r\n",
        "\t",
        "\u{200b}",
    ] {
        texts.push(inside(piece));
        // As our own texts, logs and JSON spell what cannot be seen.
        texts.push(inside(&piece.escape_default().to_string()));
        let spelt = serde_json::Value::from(inside(piece)).to_string();
        texts.push(spelt);
    }
    for text in texts {
        let shown = hide(&format!("<key {text} end>")).into_owned();
        assert!(shown.starts_with("<key ") && shown.ends_with(" end>"), "{text} {shown}");
        let rest = shown.trim_start_matches("<key ").trim_end_matches(" end>").trim_matches('"');
        let rest = rest.trim_end_matches("\u{1b}[0;31m");
        assert_eq!(rest, MASK, "{text}");
    }
}

#[test]
fn x18_values_that_look_like_escapes_are_masked_as_they_are_and_others_stay() {
    let _one = kept("100%25-of-\\names-x18");
    let _two = kept("name1234-\\u0041x18");
    for text in ["100%25-of-\\names-x18", "100%2525-of-%5Cnames-x18", "a\\name1234-\\u0041x18"] {
        assert!(hide(text).contains(MASK), "{text}");
    }
    for text in [
        "C:\\new\\table",
        "100%",
        "a+b & c;",
        "&#; &#xg; %zz \\u12 \\x \\",
        "größer 漢字",
        "\u{1b}[",
        "\\ud800\\u0041",
    ] {
        assert_eq!(hide(text), text);
    }
}

#[test]
fn it_is_masked_for_as_long_as_somebody_holds_it() {
    let one = kept("held-by-two-owners");
    let (other, third) = (kept("held-by-two-owners"), one.clone());
    let shown = || hide("x held-by-two-owners y").into_owned();
    drop(one);
    drop(third);
    assert_eq!(shown(), "x [redacted] y");
    drop(other);
    assert_eq!(shown(), "x held-by-two-owners y");
}

#[test]
fn many_and_overlapping_values_are_found() {
    let mut secrets = kept("overlap-abcdefgh");
    secrets.keep("abcdefgh-overlaps");
    secrets.keep("overlap-abc");
    (0..500).for_each(|number| secrets.keep(&format!("sk-proj-of-many-{number:04}")));
    assert_eq!(hide("<overlap-abcdefgh-overlaps>"), "<[redacted]>");
    assert_eq!(hide("<overlap-abcd>"), "<[redacted]d>");
    assert_eq!(hide("sk-proj-of-many-0499 sk-proj-of-many-05"), "[redacted] sk-proj-of-many-05");
    assert_eq!(hide("ä overlap-abc ö"), "ä [redacted] ö");
}

#[test]
fn long_values_and_those_of_many_lines_are_found_in_part() {
    let long = (0..400).map(|number| format!("{number:03}-long;")).collect::<Vec<_>>().concat();
    let _kept = kept(&long);
    assert!(!hide(&format!("<{long}>")).contains("-long"));
    let _kept = kept("-----BEGIN KEY-----\nMIIEfirstlineofkey\nsecondlineofkey12\n-----END KEY-----");
    assert_eq!(hide("at secondlineofkey12\n-----END KEY-----"), "at [redacted]\n-----END KEY-----");
}

#[test]
fn what_is_short_or_ordinary_stays() {
    let mut secrets = Secrets::default();
    for value in ["short", "12345678901", "/home/me/key.pem", "./a/b/c.json", "-1.25e100000"] {
        secrets.keep(value);
        assert_eq!(hide(value), value);
    }
    for (name, value) in
        [("MODEL", "sonnet-large-2024-10-22"), ("AUTHOR", "Ada Lovelace"), ("REGION", "eu-central-1")]
    {
        secrets.keep_variable(name, value);
        assert_eq!(hide(value), value);
    }
    secrets.keep_header("X-Stage", "production");
    secrets.keep_url("https://h/x?mode=readonly");
    assert_eq!(hide("production readonly"), "production readonly");
    secrets.keep_header("Accept", "application/json-of-test");
    assert_eq!(hide("application/json-of-test"), "application/json-of-test");
}

#[test]
fn a_configurations_secrets_are_known_by_where_they_stand() {
    let mut secrets = Secrets::default();
    secrets.keep_header("Authorization", "Bearer bearer-of-test");
    secrets.keep_header("X-Custom", "custom-of-test");
    secrets.keep_header("authorization", "Basic bWU6YmFzaWMtb2YtdGVzdA==");
    secrets.keep_url(
        "https://me:userinfo%2Dof-test@h/a/v1x2y3z4q5w6e7r8t9?x=query-of-test&y=1#f=fragment-of-test",
    );
    secrets.keep_variable("GITHUB_PAT", "pat-of-test");
    secrets.keep_variable("PLAIN", "q4f5a8c2e9b1d3f7a6c5");
    secrets.keep_variable("DATABASE_URL", "postgres://u:database-of-test@h/x");
    secrets.keep_variable("CONNECTION", "Server=db;Pwd=pwd-of-test;");
    let command = "npx --api-key apikey-of-test --token=flag-of-test -u me:user-of-test PASSWORD=set-of-test \
                   --header X-A:header-of-test --port 80808080 k9j8h7g6f5d4s3a2p1o0";
    secrets.keep_arguments(command.split_whitespace());
    secrets.keep_arguments(["sh", "-c", "TOKEN=x do this with 'z1x2c3v4b5n6m7a8s9'; and go on=yes"]);
    assert_eq!(hide("with 'z1x2c3v4b5n6m7a8s9'; and go on=yes"), "with '[redacted]'; and go on=yes");
    for value in [
        "bearer-of-test",
        "custom-of-test",
        "basic-of-test",
        "me:basic-of-test",
        "userinfo-of-test",
        "v1x2y3z4q5w6e7r8t9",
        "query-of-test",
        "fragment-of-test",
        "pat-of-test",
        "q4f5a8c2e9b1d3f7a6c5",
        "database-of-test",
        "pwd-of-test",
        "apikey-of-test",
        "flag-of-test",
        "user-of-test",
        "set-of-test",
        "header-of-test",
        "k9j8h7g6f5d4s3a2p1o0",
    ] {
        assert_eq!(hide(&format!("<{value}>")), "<[redacted]>", "{value}");
    }
    assert_eq!(hide("listening on 80808080"), "listening on 80808080");
}
