//! TLS at the address, as programs of others see it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kit::{Agent, Home, Serves, until};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A home with a certificate, and where that is.
fn home(name: &str) -> (Home, PathBuf) {
    let home = Home::new(name, "");
    let (certificate, key) = (home.path().join("certificate.pem"), home.path().join("key.pem"));
    renew(&home);
    home.write(&format!(
        "[gateway]\ntls_certificate = '{}'\ntls_key = '{}'\n[servers.a]\n{{bad}}\n",
        certificate.display(),
        key.display()
    ));
    (home, certificate)
}

/// A new certificate with its key. A copy of it stays, for whoever trusts it.
fn renew(home: &Home) -> PathBuf {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: &str| {
        let file = home.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    };
    write("certificate.pem", &made.cert.pem());
    write("key.pem", &made.signing_key.serialize_pem());
    let copy = format!("trusted-{}.pem", LAST.fetch_add(1, Ordering::Relaxed));
    write(&copy, &made.cert.pem())
}

/// It serves, and at this port.
fn serves(home: &Home) -> (Serves, u16) {
    let mut serve = home.serve(&["--listen", "127.0.0.1:0", "--log"]);
    let serves = Serves(serve.arg(home.path().join("log")).stdin(Stdio::null()).spawn().unwrap());
    let said = home.wait_for_log("serving address=https://127.0.0.1:");
    let port = said.trim_end_matches("/mcp").rsplit(':').next().unwrap().parse().unwrap();
    (serves, port)
}

/// What curl prints, if it is here and trusts this certificate; nothing if it does not trust what it is shown.
fn curl(trusts: &PathBuf, words: &[&str]) -> Option<String> {
    let mut curl = Command::new("curl");
    let ended = curl
        .args(["-sS", "--noproxy", "*", "--max-time", "20", "--cacert"])
        .arg(trusts)
        .args(words)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() || told.contains("certificate"), "{told}");
    ended.status.success().then(|| String::from_utf8(ended.stdout).unwrap())
}

fn has_curl() -> bool {
    let has = Command::new("curl").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: there is no curl");
    }
    has
}

#[test]
fn curl_speaks_both_versions_of_http_over_tls() {
    if !has_curl() {
        return;
    }
    let (home, certificate) = home("curl");
    let (_serves, port) = serves(&home);
    let url = format!("https://localhost:{port}/mcp");
    for (version, is) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let words =
            [version, "-w", "\n%{http_version}", "-H", "content-type: application/json", "-d", HELLO, &url];
        let printed = curl(&certificate, &words).expect("it trusts this certificate");
        let (answer, spoken) = printed.rsplit_once('\n').unwrap();
        assert!(answer.contains("serverInfo"), "{answer}");
        assert_eq!(spoken, is);
    }
    let older = curl(&certificate, &["--tls-max", "1.2", &format!("https://localhost:{port}/healthz")]);
    assert!(older.is_some(), "TLS 1.2 is spoken too");
    let socket = home.path().join("linetender/gateway.sock");
    let beside = ["--unix-socket", &*socket.to_string_lossy(), "http://localhost/healthz"];
    assert!(
        curl(&certificate, &beside).is_some_and(|answer| !answer.contains("TLS")),
        "the socket stays plain"
    );
    let plain = curl(&certificate, &[&format!("http://localhost:{port}/mcp")]).unwrap();
    assert_eq!(plain, "this port speaks TLS: use https://\n");
}

#[test]
fn a_certificate_is_renewed_without_a_restart_and_a_broken_one_is_told() {
    if !has_curl() {
        return;
    }
    let (home, _) = home("renewed");
    let (_serves, port) = serves(&home);
    let ready = format!("https://localhost:{port}/healthz");
    let trusted = renew(&home);
    until("the renewed certificate", || curl(&trusted, &[&ready]));
    std::fs::write(home.path().join("key.pem"), "half a k").unwrap();
    until("a look at it", || {
        curl(&trusted, &[&ready]).expect("the old certificate is kept");
        home.log().contains("serving the old certificate").then_some(())
    });
    let trusted = renew(&home);
    until("the renewed certificate", || curl(&trusted, &[&ready]));
    home.wait_for_count("serving the renewed TLS certificate", 2);
    home.wait_for_count("serving the old certificate", 1);
}

#[test]
fn an_agent_of_linetenders_own_comes_over_tls() {
    let (home, certificate) = home("agent");
    let (_serves, port) = serves(&home);
    let mut run = home.linetender(&["run", "--no-memory", &format!("https://localhost:{port}/mcp")]);
    run.env("SSL_CERT_FILE", certificate).stderr(Stdio::null());
    Agent::of(&mut run).greeted().wait_for("a__echo", "{}");
}

#[test]
fn check_tries_the_files_and_nothing_starts_with_a_key_of_another_certificate() {
    let (home, certificate) = home("check");
    let checked = home.serve(&["--check"]).output().unwrap();
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(told.ends_with("listens on https://127.0.0.1:7331\n"), "{told}");
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, other.cert.pem()).unwrap();
    for words in [&["--check"] as &[_], &["--listen", "127.0.0.1:0"]] {
        let ended = home.serve(words).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{told}");
        for file in [&certificate, &home.path().join("key.pem")] {
            assert!(told.contains("does not belong to") && told.contains(&*file.to_string_lossy()), "{told}");
        }
    }
}
