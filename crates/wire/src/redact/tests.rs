use super::Redacted;

fn shown(text: &str) -> String {
    Redacted::head(text, 10_000).to_string()
}

#[test]
fn credentials_are_masked_wherever_they_stand() {
    for (text, expected) in [
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("authorization: Basic Zm9vOmJhcg==", "authorization: Basic [redacted]"),
        ("using key sk-1234567890abcdef now", "using key [redacted] now"),
        ("(ghp_0123456789abcdefghij)", "([redacted])"),
        ("GITHUB_TOKEN=abc npm start", "GITHUB_TOKEN=[redacted] npm start"),
        ("--api-key hunter2 --port 3", "--api-key [redacted] --port 3"),
        ("--api-key=hunter2", "--api-key=[redacted]"),
        (r#"{"password":"hunter2"}"#, r#"{"password":[redacted]}"#),
        (r#"{"level":"error","api_key":"hunter2","x":1}"#, r#"{"level":"error","api_key":[redacted],"x":1}"#),
        ("https://h/p?a=1&token=hunter2&b=2", "https://h/p?a=1&token=[redacted]&b=2"),
        ("password: hunter2", "password: [redacted]"),
        ("postgres://me:pw@db/x", "postgres://[redacted]@db/x"),
        ("jwt eyJhbGciOi.eyJzdWIi.c2ln", "jwt [redacted]"),
        ("password: \u{1b}[33mhunter2\u{1b}[0m!", "password: [redacted]"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

/// What servers print, as it was seen.
#[test]
fn thirty_ways_of_printing_a_secret_are_known() {
    const VALUE: &str = "q4f5a8c2e9b1d3f7a6c5";
    for shape in [
        "password: %s",
        r#"{"msg":"x","client_secret":"%s"}"#,
        r#"{"client_secret": "%s"}"#,
        "{'api_key': '%s'}",
        "api_key = %s",
        r#"token="abc %s""#,
        "Bearer\n%s",
        "https://%s@host/x",
        "GET https://hooks.slack.com/services/T000/B000/%s failed",
        "using AIzaSy%s0123456789abc",
        "got ya29.%s",
        "slack xapp-1-%s",
        "SG.%s.abcdefghijklmnop",
        "github_pat_%s0123456789",
        "sk-proj-%s",
        "Server=db;User Id=sa;Pwd=%s;",
        "-----BEGIN PRIVATE KEY-----\nMIIE%s\n-----END PRIVATE KEY-----",
        "MIIE%s\n-----END RSA PRIVATE KEY-----",
        "headers={'Authorization': 'Bearer %s'}",
        "curl -u user:%s https://h",
        "Cookie: sid=%s; b=c",
        "export GITHUB_TOKEN=%s",
        "passphrase for key is %s",
        "x-api-key: %s",
        "private_key=%s",
        "aws_secret_access_key = %s",
        "?X-Amz-Signature=%s&b",
        "session=%s",
        "PIN %s",
        "encryption key: %s",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw%sggSjAgEAAoIBAQ",
        "token: 'two words %s' end",
        "'headers': {'X-Auth-Token': \"%s\"}",
    ] {
        for shown in [
            shown(&shape.replace("%s", VALUE)),
            Redacted::tail(&shape.replace("%s", VALUE), 2000).to_string(),
        ] {
            assert!(shown.contains("[redacted]") && !shown.contains("a8c2e9"), "{shape} {shown}");
        }
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    for text in [
        "Error: cannot find module './index.js' at line 3",
        "https://example.test/path?x=1",
        "sk-8 is a road, tokens are coins",
        "exit status 1",
        "unknown key: name",
        "KeyError: 'results' in /srv/app/lib2024/session.py:12",
        "commit d964db8a1b2c3d4e5f60718293a4b5c6d7e8f901 of main",
        "at Session.open (node:internal/modules/cjs/loader:1228:15)",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn terminal_escapes_are_spelt_out_and_colours_dropped() {
    assert_eq!(shown("\u{1b}[31mred\u{1b}[0m\r\n\u{7}bell\u{0}"), "red\\r\\n\\u{7}bell\\u{0}");
    assert_eq!(shown("\u{1b}[2Jx\u{1b}]0;t\u{202e}"), "\\u{1b}[2Jx\\u{1b}]0;t\\u{202e}");
    let tail = Redacted::tail("one\r\ntwo\u{2028}\u{9b}", 100);
    assert_eq!(tail.as_str(), "one\ntwo\\u{2028}\\u{9b}");
}

#[test]
fn head_and_tail_are_bounded_and_say_so() {
    assert_eq!(Redacted::head("abcdef", 3).as_str(), "abc…");
    assert_eq!(Redacted::head("äöü", 3).as_str(), "äöü");
    assert_eq!(Redacted::tail("one two three", 9).as_str(), "… three");
    assert_eq!(Redacted::tail("short", 9).as_str(), "short");
    assert_eq!(Redacted::tail("token sk-1234567890abcdef", 10).as_str(), "…");
    assert!(Redacted::default().is_empty());
}

#[test]
fn a_secret_at_the_cut_is_masked_whole() {
    let mut secrets = crate::Secrets::default();
    secrets.keep("cut-in-the-middle");
    assert_eq!(Redacted::head("see cut-in-the-middle", 8).as_str(), "see [red…");
    let long = "cut-in-the-middle ".repeat(10_000);
    let shown = Redacted::head(&long, 5000);
    assert!(!shown.as_str().contains("cut") && shown.as_str().ends_with('…'));
}

/// A server decides what it prints, and the thread that reads it serves others too: no piece of it may cost more than its
/// length.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn what_looks_like_the_beginning_of_much_is_read_in_one_pass() {
    let begun = std::time::Instant::now();
    for piece in [
        "sk-,",
        "a=b:",
        "token=\"",
        "PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
        "://@",
        "key ",
        "\u{1b}[",
    ] {
        let long = piece.repeat(500_000 / piece.len());
        assert!(Redacted::lines(&long).as_str().len() <= 6 * long.len(), "{piece}");
    }
    // Quadratic, this would be minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
