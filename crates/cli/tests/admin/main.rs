//! The admin address of `linetender serve`, as its users and its enemies see it.

#![allow(clippy::disallowed_methods, reason = "a test waits for a real process")]

mod events;
mod kit;

use std::process::{Command, Stdio};

use kit::{House, TOKEN, folder, serve, with_servers};

const ONE: &str = "[servers.one]\n{bad}\n";

#[test]
fn nothing_but_health_and_the_page_is_told_without_the_token() {
    let house = House::up("tokens", ONE);
    let host = ("Host", &*house.address);
    let health = house.ask_as("GET", "/healthz", &[host], "");
    assert_eq!((health.status, &*health.body), (200, "ok\n"), "{health:?}");
    let page = house.ask_as("GET", "/", &[host], "");
    assert!(
        page.status == 200 && page.head.contains("content-security-policy: default-src 'none'"),
        "{page:?}"
    );
    for (method, path) in [
        ("GET", "/api/v1/status"),
        ("GET", "/api/v1/events"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("POST", "/api/v1/servers/one/redial"),
        ("PUT", "/api/v1/log-level"),
        ("GET", "/nothing"),
        ("GET", &format!("/api/v1/status?token={TOKEN}")),
    ] {
        for authorization in ["", "Bearer wrong", "Basic YTpi", TOKEN, "Bearer ", &format!("Bearer {TOKEN}x")]
        {
            let answer = house.ask_as(method, path, &[host, ("Authorization", authorization)], "");
            assert!(matches!(answer.status, 401 | 429), "{method} {path} {authorization}: {answer:?}");
            assert!(!answer.body.contains("one"), "{answer:?}");
        }
        let cookie = house.ask_as(method, path, &[host, ("Cookie", &format!("token={TOKEN}"))], "");
        assert_eq!(cookie.status, 401, "{cookie:?}");
        assert!(cookie.head.contains("www-authenticate: bearer"), "{cookie:?}");
    }
    let guess =
        || house.ask_as("GET", "/api/v1/status", &[host, ("Authorization", "Bearer guess")], "").status;
    assert!((0..30).any(|_| guess() == 429), "whoever guesses is told to wait");
    assert_eq!(house.ask("GET", "/api/v1/status").status, 200, "the right token is never locked out");
    assert!(!house.log().contains(TOKEN));
}

#[test]
fn a_page_of_another_origin_and_a_name_that_was_made_to_point_here_are_refused() {
    let house = House::up("foreign", ONE);
    let (bearer, own) = (format!("Bearer {TOKEN}"), format!("http://{}", house.address));
    for path in ["/", "/healthz", "/api/v1/status", "/metrics", "/nothing"] {
        for headers in [
            &[("Host", "evil.example.com"), ("Authorization", &*bearer)] as &[_],
            &[("Host", &*house.address), ("Origin", "http://evil.example.com"), ("Authorization", &bearer)],
            &[("Host", &house.address), ("Origin", "http://127.0.0.1:1"), ("Authorization", &bearer)],
            &[("Host", &house.address), ("Origin", "null"), ("Authorization", &bearer)],
        ] {
            let answer = house.ask_as("GET", path, headers, "");
            assert_eq!(answer.status, 403, "{path} {headers:?}");
            assert!(!answer.head.contains("access-control"), "{answer:?}");
        }
    }
    let twice = [("Host", &*house.address), ("Host", "evil.example.com"), ("Authorization", &*bearer)];
    assert_eq!(house.ask_as("GET", "/api/v1/status", &twice, "").status, 400);
    let preflight = [("Host", &*house.address), ("Origin", &*own), ("Access-Control-Request-Method", "POST")];
    let preflight = house.ask_as("OPTIONS", "/api/v1/reload", &preflight, "");
    assert!(preflight.status >= 400 && !preflight.head.contains("access-control"), "{preflight:?}");
    assert_eq!(house.ask_with("GET", "/api/v1/status", "", &[("Origin", &own)]).status, 200, "its own page");
}

#[test]
fn bodies_and_headers_that_are_too_large_or_malformed_get_a_problem_and_harm_nobody() {
    let house = House::up("bodies", ONE);
    let json = ("Content-Type", "application/json");
    for (body, headers, status) in [
        ("{\"level\":\"loud\"}", &[json] as &[_], 400),
        ("{\"level\":", &[json], 400),
        ("", &[json], 400),
        ("{\"level\":\"info\",\"x\":1}", &[json], 400),
        ("level=info", &[("Content-Type", "application/x-www-form-urlencoded")], 415),
        (&"x".repeat(20_000), &[json], 413),
    ] {
        let answer = house.ask_with("PUT", "/api/v1/log-level", body, headers);
        assert_eq!(answer.status, status, "{answer:?}");
        let problem = answer.json();
        assert!(answer.head.contains("application/problem+json"), "{answer:?}");
        assert!(problem["advice"].is_string() && problem["status"] == status, "{problem}");
    }
    // A length that is not told, and more than is allowed.
    let start = format!(
        "PUT /api/v1/log-level HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nTransfer-Encoding: \
         chunked\r\n\r\n",
        house.address
    );
    let chunks = format!("{:x}\r\n{}\r\n", 1024, " ".repeat(1024)).repeat(20);
    assert_eq!(house.ask_raw(format!("{start}{chunks}0\r\n\r\n").as_bytes()).status, 413);
    let answer = house.ask_with("POST", "/api/v1/servers/one/redial", "{}", &[]);
    assert_eq!(answer.status, 400, "{answer:?}");
    let long = "x".repeat(100_000);
    let answer = house.ask_with("GET", "/api/v1/status", "", &[("X-Long", &long)]);
    assert!(matches!(answer.status, 0 | 431), "{}", answer.status);
    assert_eq!(house.ask_raw(b"\x16\x03\x01 no HTTP at all\r\n\r\n").status, 400);
    assert_eq!(house.ask("DELETE", "/api/v1/status").status, 405);
    assert_eq!(house.ask("GET", "/api/v1/status?x=1").status, 400);
    assert_eq!(house.ask("GET", "/api/v1/status").status, 200);
}

#[test]
fn a_server_that_is_not_there_is_answered_with_those_that_are() {
    let house = House::up("unknown", "[servers.one]\n{bad}\n[servers.'two words']\n{bad}\n");
    house.wait_for_state("two words", "up");
    for (method, path) in [
        ("GET", "/api/v1/servers/three/why"),
        ("POST", "/api/v1/servers/three/redial"),
        ("POST", "/api/v1/servers/three/drain"),
        ("POST", "/api/v1/servers/three/park"),
        ("POST", "/api/v1/servers/three/wake"),
    ] {
        let answer = house.ask(method, path);
        let problem = answer.json();
        assert_eq!(
            (answer.status, &problem["advice"]),
            (404, &"use one of: one, two words".into()),
            "{answer:?}"
        );
    }
    let why = house.ask("GET", "/api/v1/servers/two%20words/why").json();
    assert_eq!(why["server"], "two words", "{why}");
    assert!(why["entries"].as_array().is_some_and(|entries| !entries.is_empty()), "{why}");
}

#[test]
fn a_redial_returns_when_the_server_is_up_again_and_park_and_wake_do_what_they_say() {
    let house = House::up("orders", ONE);
    let before = house.wait_for_state("one", "up");
    let answer = house.ask("POST", "/api/v1/servers/one/redial");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.json()["done"].as_str().is_some_and(|done| done.contains("is up")), "{answer:?}");
    let after = house.line("one").unwrap();
    assert_eq!(after["state"], "up", "{after}");
    assert!(after["generation"].as_u64() > before["generation"].as_u64(), "{after}");
    let trees = house.ask("GET", "/api/v1/processes").json();
    assert!(trees["trees"][0]["memory_bytes"].as_u64() > Some(0), "{trees}");
    assert_eq!(house.ask("POST", "/api/v1/servers/one/park").status, 200);
    house.wait_for_state("one", "parked");
    let text = house.ask("GET", "/metrics").body;
    assert!(text.contains("linetender_server_lines{server=\"one\",state=\"parked\"} 1\n"), "{text}");
    assert!(text.contains("linetender_server_up{server=\"one\"} 0\n"), "{text}");
    assert_eq!(house.ask("POST", "/api/v1/servers/one/wake").status, 200);
    house.wait_for_state("one", "up");
}

#[test]
fn an_address_that_is_taken_or_a_token_that_is_missing_ends_the_start() {
    let folder = folder("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    for (admin, says) in [
        (
            format!("listen = '{listen}'\ntoken = '{TOKEN}'"),
            format!("cannot listen on the admin address {listen}"),
        ),
        ("listen = '127.0.0.1:0'".to_owned(), "gateway.admin.listen needs a token".to_owned()),
        ("listen = '127.0.0.1:0'\ntoken = 'short'".to_owned(), "shorter than 16 characters".to_owned()),
        ("listen = '127.0.0.1:0'\ntoken = '${file:none}'".to_owned(), "cannot be used".to_owned()),
        (format!("listen = '0.0.0.0:0'\ntoken = '{TOKEN}'"), "refusing the admin address".to_owned()),
    ] {
        let config = format!("[gateway]\nlisten = '127.0.0.1:0'\n[gateway.admin]\n{admin}\n{ONE}");
        std::fs::write(folder.join("linetender.toml"), with_servers(&config)).unwrap();
        let output = serve(&folder).stdin(Stdio::null()).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains(&says), "{admin}: {words}");
        assert!(!words.contains(TOKEN), "{words}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Ends a process that a test did not start itself.
pub(crate) fn kill(pid: i64) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn whoever_shows_no_token_keeps_nobody_out() {
    let house = House::up("loris", ONE);
    let mut events = house.events("");
    let half = |_| {
        let mut stream = std::net::TcpStream::connect(&house.address).unwrap();
        std::io::Write::write_all(&mut stream, b"GET /healthz HTTP/1.1\r\nHost: 127").unwrap();
        stream
    };
    let _strangers: Vec<_> = (0..200).map(half).collect();
    let begun = std::time::Instant::now();
    assert_eq!(house.ask("GET", "/api/v1/status").status, 200);
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    // Whoever watches has shown the token, and goes on watching.
    assert_eq!(house.ask("POST", "/api/v1/servers/one/redial").status, 200);
    let mut line = String::new();
    while !line.starts_with("event: entry") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut events, &mut line).unwrap() > 0, "it was disconnected");
    }
}
