//! `linetender login` as a person sees it, and machines that log in by themselves.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::browser::{ask, visit};
use crate::kit::{Home, call};
use crate::provider::Provider;

/// A login that waits for somebody, and the address that it printed.
fn begun(home: &Home, words: &[&str]) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut command = home.linetender(&["login"]);
    let command = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.spawn().unwrap();
    let mut stderr = BufReader::new(login.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("  http") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended");
    }
    (login, stderr, line.trim().to_owned())
}

/// How it ended: its code, stderr from here on, and stdout.
fn ended(login: Child, mut stderr: impl std::io::Read) -> (Option<i32>, String, String) {
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    let output = login.wait_with_output().unwrap();
    (output.status.code(), said, String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_browser_on_this_machine_comes_back_by_itself() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("browser");
    let (login, stderr, url) = begun(&home, &["--scope", "mcp:read", "--scope", "mcp:write", &provider.mcp]);
    let redirected = visit(&url, &back(&url));
    let page = ask("GET", &redirected, "", "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("received the login"), "{}", page.body);
    let (code, said, stdout) = ended(login, stderr);
    assert_eq!(code, Some(0), "{said}");
    assert!(stdout.contains(&format!("Logged in to {}.", provider.mcp)), "{stdout}");
    assert!(
        stdout.contains("Scopes: mcp:read mcp:write") && stdout.contains("renews it by itself"),
        "{stdout}"
    );
    assert!(said.contains("not started from a terminal"), "no browser is opened from a script: {said}");
}

/// Where an authorization request wants to be sent back to.
fn back(url: &str) -> String {
    let encoded = url.split("redirect_uri=").nth(1).unwrap().split('&').next().unwrap();
    encoded.replace("%3A", ":").replace("%2F", "/")
}

#[test]
fn an_address_that_is_not_of_this_login_is_asked_for_again() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("paste");
    let (mut login, stderr, url) = begun(&home, &["--paste", &provider.mcp]);
    let redirected = visit(&url, &back(&url));
    let mut stdin = login.stdin.take().unwrap();
    let strange = redirected.replace("state=", "state=x");
    writeln!(stdin, "{strange}\n\nhello\n {redirected} ").unwrap();
    let (code, said, stdout) = ended(login, stderr);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("does not belong to this login").count(), 2, "{said}");
    assert!(stdout.contains("Logged in to"), "{stdout}");
    drop(stdin);

    let (mut login, stderr, _) = begun(&home, &["--paste", &provider.mcp]);
    drop(login.stdin.take());
    let (code, said, stdout) = ended(login, stderr);
    assert!(code == Some(1) && stdout.is_empty() && said.contains("stdin ended"), "{code:?} {said}");
}

#[test]
fn a_login_that_the_authorization_server_refuses_says_why() {
    let Some(provider) = Provider::start() else { return };
    let home = Home::new("refused");
    provider.set(&json!({ "token": "refuse" }));
    let (mut login, stderr, url) = begun(&home, &["--paste", &provider.mcp]);
    writeln!(login.stdin.take().unwrap(), "{}", visit(&url, &back(&url))).unwrap();
    let (code, said, stdout) = ended(login, stderr);
    assert!(code == Some(1) && stdout.is_empty(), "{code:?} {stdout}");
    assert!(said.contains("the grant was taken back"), "{said}");
    assert!(home.prints(&["auth"]).contains("Nobody is logged in"));
}

#[test]
fn a_machine_with_a_key_or_a_secret_needs_nobody() {
    let Some(provider) = Provider::start() else { return };
    for (name, proof) in [
        ("machine-es", "private_key = 'KEY'".to_owned()),
        ("machine", "client_secret = 'the-secret:of the+machine%2'".to_owned()),
    ] {
        let home = Home::new(name);
        let key = home.write("key.pem", &provider.es256);
        let proof = proof.replace("KEY", key.to_str().unwrap());
        let mut gateway = home.gateway(&format!(
            "[servers.a]\nurl = '{}'\nauth = {{ client_id = '{name}', issuer = '{}', grant = 'client_credentials', {proof} }}\n",
            provider.mcp, provider.issuer
        ));
        let (text, failed) = call(&mut gateway, "a__echo");
        assert!(!failed && text.contains("hello"), "{text}");
        let auth: Value = serde_json::from_str(&home.prints(&["auth", "--json"])).unwrap();
        assert_eq!(auth["logins"][0]["client"], name, "{auth}");
    }
}
