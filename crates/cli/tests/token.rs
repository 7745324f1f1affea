//! `linetender token` as a user types it.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home with nothing in it, gone when the test is over.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("token-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linetender"));
        command.arg("token").args(words).env_clear().env("HOME", &self.0).current_dir(&self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The exit code, stdout and stderr.
    fn token(&self, words: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.join(".config/linetender/tokens.toml")
    }

    fn listed(&self) -> Vec<Value> {
        let (code, stdout, stderr) = self.token(&["list", "--json"]);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let Value::Array(tokens) = serde_json::from_str::<Value>(&stdout).unwrap()["tokens"].take() else {
            panic!()
        };
        tokens
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_token_is_printed_once_listed_and_removed() {
    let home = Home::new("once");
    let (code, empty, _) = home.token(&["list"]);
    assert!(
        code == 0 && empty.contains("There are no tokens") && empty.contains("token add NAME"),
        "{empty}"
    );
    let (code, token, told) =
        home.token(&["add", "ci", "--group", "deploy", "--group", "read", "--expires", "90d"]);
    assert_eq!(code, 0, "{told}");
    assert!(token.starts_with("lt_") && token.len() == 47 && token.ends_with('\n'), "{token}");
    assert!(told.contains("Token of ci, valid until 2") && !told.contains(token.trim()), "{told}");
    let text = fs::read_to_string(home.file()).unwrap();
    assert!(text.contains("sha256:") && !text.contains(token.trim()), "{text}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home.file()), mode(home.file().parent().unwrap())), (0o600, 0o700));
    let tokens = home.listed();
    assert_eq!(tokens[0]["name"], "ci");
    assert_eq!(tokens[0]["groups"].as_array().unwrap(), &["deploy", "read"]);
    assert_eq!((tokens[0]["state"].as_str(), tokens.len()), (Some("valid"), 1));
    let (_, table, _) = home.token(&["list"]);
    assert!(table.starts_with("NAME") && table.contains("deploy, read"), "{table}");

    let (code, stdout, told) = home.token(&["add", "ci"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(told.contains("linetender token remove ci"), "{told}");
    assert_eq!(home.token(&["remove", "ci"]).0, 0);
    assert!(home.listed().is_empty());
    let (code, _, told) = home.token(&["remove", "ci"]);
    assert!(code == 1 && told.contains("there is no token of ci"), "{told}");
}

#[test]
fn an_expired_token_is_listed_as_such() {
    let home = Home::new("expired");
    home.token(&["add", "old"]);
    let text = fs::read_to_string(home.file()).unwrap();
    fs::write(home.file(), text + "expires = \"2020-01-01T00:00:00Z\"\n").unwrap();
    assert_eq!(home.listed()[0]["state"], "expired");
}

#[test]
fn twenty_processes_at_once_lose_no_token() {
    let home = Home::new("many");
    let names: Vec<String> = (0..20).map(|number| format!("t{number:02}")).collect();
    let adding: Vec<_> = names.iter().map(|name| home.command(&["add", name]).spawn().unwrap()).collect();
    let tokens: BTreeSet<Vec<u8>> =
        adding.into_iter().map(|child| child.wait_with_output().unwrap().stdout).collect();
    assert_eq!(tokens.len(), 20);
    assert_eq!(home.listed().iter().map(|token| token["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
}

#[test]
fn another_file_can_be_named_and_a_link_to_it_stays() {
    let home = Home::new("file");
    fs::write(home.0.join("real.toml"), "").unwrap();
    std::os::unix::fs::symlink("real.toml", home.0.join("link.toml")).unwrap();
    let (code, _, told) = home.token(&["add", "a", "--file", "link.toml"]);
    assert!(code == 0 && told.contains("link.toml"), "{told}");
    assert!(fs::symlink_metadata(home.0.join("link.toml")).unwrap().is_symlink());
    assert!(fs::read_to_string(home.0.join("real.toml")).unwrap().contains("[tokens.\"a\"]"));
    assert_eq!(home.token(&["add", "b", "--file", "new.toml"]).0, 0);
    assert!(!home.file().exists() && home.0.join("new.toml").exists());
}

#[test]
fn what_cannot_be_a_token_is_misuse() {
    let home = Home::new("misuse");
    for words in [
        vec!["add", "a b"],
        vec!["add", "*"],
        vec!["add", "group:x"],
        vec!["add", ""],
        vec!["add", "a", "--group", ""],
        vec!["add", "a", "--expires", "soon"],
        vec!["add", "a", "--expires", "0s"],
        vec!["add", "a", "--expires", "100000y"],
        vec!["add"],
        vec!["remove"],
    ] {
        let (code, stdout, told) = home.token(&words);
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}: {told}");
    }
    assert!(!home.file().exists());
    fs::create_dir_all(home.file().parent().unwrap()).unwrap();
    fs::write(home.file(), "").unwrap();
    fs::set_permissions(home.file(), fs::Permissions::from_mode(0o666)).unwrap();
    let (code, _, told) = home.token(&["add", "a"]);
    assert!(code == 1 && told.contains("chmod go-w"), "{told}");
}

#[test]
fn a_token_that_nobody_could_read_is_told_of() {
    let home = Home::new("full");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = home.command(&["add", "lost"]).stdout(full).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("linetender token remove lost"), "{told}");
}

#[test]
fn the_help_shows_how_to_use_it() {
    let home = Home::new("help");
    for (words, word) in [
        (vec!["--help"], "[gateway.auth]"),
        (vec!["add", "--help"], "--expires 90d"),
        (vec!["list", "--help"], "jq"),
        (vec!["remove", "--help"], "linetender token remove ci"),
    ] {
        let (code, stdout, _) = home.token(&words);
        assert!(code == 0 && stdout.contains(word), "{stdout}");
    }
}
