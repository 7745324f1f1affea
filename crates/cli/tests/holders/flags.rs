//! Flags, as far as an agent notices them.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Home, until};

#[test]
fn a_call_timeout_ends_a_call_that_the_agent_would_wait_for() {
    let home = Home::new();
    let mut shim = home.shim(&["--call-timeout", "300ms"], &[]);
    let answer = shim.call("sleep", &json!({ "ms": 60_000 }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no response within 300 ms"), "{text}");
    assert_eq!(answer["result"]["_meta"]["linetender"]["delivery"], "unknown");
    shim.echo();
}

#[test]
fn a_safe_tool_is_run_again_unseen() {
    let home = Home::new();
    let book = home.path().join("book");
    let server = ["--book", book.to_str().unwrap(), "--die-on-call", "1"];
    // The first process dies of the first call; so does each that follows it.
    let mut shim = home.shim(&["--safe-tool", "echo"], &server);
    let _ = shim.call("echo", &json!({ "n": 1 }));
    let runs = |book: &std::path::Path| std::fs::read_to_string(book).unwrap().matches("read ").count();
    assert!(runs(&book) > 1, "{}", std::fs::read_to_string(&book).unwrap());
    std::fs::remove_file(&book).unwrap();
    let mut careful = home.shim(&[], &server);
    let _ = careful.call("echo", &json!({ "n": 1 }));
    assert_eq!(runs(&book), 1, "{}", std::fs::read_to_string(&book).unwrap());
}

#[test]
fn s53_a_stateful_server_says_that_what_it_kept_is_gone() {
    let home = Home::new();
    let mut shim = home.shim(&["--stateful"], &[]);
    shim.echo();
    let answer = shim.call("kill", &json!({}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("It is unknown") && text.contains("what it kept in memory"), "{answer}");
    let answer = shim.call("echo", &json!({}));
    assert_eq!(answer["result"]["_meta"]["linetender"]["reason"], "context-replaced", "{answer}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    shim.echo();
}

#[test]
fn a_server_is_started_where_it_is_wanted() {
    let home = Home::new();
    let server = home.shim(&["--dir", home.path().to_str().unwrap()], &[]);
    let mut pid = Value::Null;
    until("the server's process", || {
        pid = home.status()["holders"][0]["report"]["lines"][0]["pid"].clone();
        !pid.is_null()
    });
    let dir = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(dir, home.path().canonicalize().unwrap());
    drop(server);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_sentence() {
    let home = Home::new();
    for (words, sentence) in [
        (
            ["--quiet-limit", "2h", "server"].as_slice(),
            "linetender: --hang-after 30m is shorter than --quiet-limit 2h: raise the first or lower the second\n",
        ),
        (
            &["--dir", "/tmp", "https://example.com/mcp"],
            "linetender: --dir applies to a command, not to a URL\n",
        ),
        (
            &["--header", "A: b", "server"],
            "linetender: --header applies to a URL, not to a command; pass settings in the environment\n",
        ),
    ] {
        let output = home.run(&[&["run"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), sentence);
    }
    let output = home.run(&["run", "--wait", "soon", "server"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!home.state().exists(), "nothing began");
}

#[test]
fn a_misspelt_flag_is_refused_and_not_taken_for_the_command() {
    let home = Home::new();
    let refused = |words: &[&str]| {
        let output = home.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    insta::assert_snapshot!(refused(&["run", "--nmae", "x", "my-server"]), @r"
    error: unexpected argument '--nmae' found

      tip: a similar argument exists: '--name'
      tip: to pass '--nmae' as a value, use '-- --nmae'

    Usage: linetender run --name <NAME> <COMMAND>...

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&["journal", "--last", "0"]), @r"
    error: invalid value '0' for '--last <N>': must be at least 1

    For more information, try '--help'.
    ");
}

#[test]
fn a_command_needs_no_dashes_before_it_and_keeps_its_own() {
    let home = Home::new();
    let words = ["run", "--name", "sh", "sh", "-c", "echo \"$@\" >&2; exit 3", "sh", "--name", "--", "-y"];
    let mut shim = home
        .linetender(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#;
    writeln!(shim.stdin.as_mut().unwrap(), "{hello}").unwrap();
    crate::kit::until("the server has said its words", || {
        let said = |entry: &serde_json::Value| {
            entry["cause"]["stderr"].as_str().is_some_and(|text| text.trim() == "--name -- -y")
        };
        home.journal().iter().any(said)
    });
    drop(shim.stdin.take());
    shim.wait().unwrap();
}
