//! X10: secrets are planted in every place of a configuration and in everything that servers print, and everything that
//! can fail does. None of them may be found anywhere but where it was sent.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::echoes::{Echoes, FAULTS};
use crate::kit::{Home, LINETENDER, Serves, until};

/// What servers print, with a secret in it.
const SHAPES: [&str; 32] = [
    "password: %",
    "{\"msg\":\"x\",\"client_secret\":\"%\"}",
    "{\"client_secret\": \"%\"}",
    "{'api_key': '%'}",
    "api_key = %",
    "token=\"abc %\"",
    "Bearer\n%",
    "https://%@host/x",
    "GET https://hooks.slack.com/services/T000/B000/% failed",
    "using AIzaSy%0123456789abc",
    "got ya29.%",
    "slack xapp-1-%",
    "SG.%.abcdefghijklmnop",
    "github_pat_%0123456789",
    "sk-proj-%",
    "Server=db;User Id=sa;Pwd=%;",
    "-----BEGIN PRIVATE KEY-----\nMIIE%\n-----END PRIVATE KEY-----",
    "headers={'Authorization': 'Bearer %'}",
    "curl -u user:% https://h",
    "Cookie: sid=%; b=c",
    "export GITHUB_TOKEN=%",
    "passphrase for key is %",
    "x-api-key: %",
    "private_key=%",
    "aws_secret_access_key = %",
    "?X-Amz-Signature=%&b",
    "session=%",
    "PIN %",
    "encryption key: %",
    "token: 'two words %' end",
    "postgres://me:%@db/x",
    "Authorization: Basic %",
];

/// Names of variables that say what they hold.
const VARIABLES: [&str; 20] = [
    "API_KEY",
    "GITHUB_TOKEN",
    "CLIENT_SECRET",
    "DB_PASSWORD",
    "DB_PASS",
    "PGPWD",
    "BASIC_AUTH",
    "AWS_CREDENTIAL",
    "COOKIE",
    "SESSION",
    "PRIVATE_KEY",
    "SENTRY_DSN",
    "GITLAB_PAT",
    "JWT",
    "SIGNATURE",
    "PIN",
    "PLAIN",
    "SETTING",
    "CONFIG",
    "OTHER",
];

/// How a file can be wrong, with a secret where it is.
const BROKEN: [&str; 10] = [
    "lazy = \"%\"",
    "scope = \"%\"",
    "url = \"http://x/\"\nheaders = {A = \"Bearer %}",
    "% = \"1\"",
    "args = \"%\"",
    "env.A = %",
    "env.A = \"%",
    "env.A = \"${p-%}\"",
    "call_timeout = \"%\"",
    "%",
];

/// The secrets that were planted, and where.
#[derive(Default)]
struct Canaries(Vec<(String, String)>);

impl Canaries {
    /// A new one: nothing else in the world looks like it.
    fn plant(&mut self, place: &str) -> String {
        let mut mixed = (self.0.len() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let value = format!("q{:x}{mixed:016x}", 0x5a7 + self.0.len());
        self.0.push((place.to_owned(), value.clone()));
        value
    }

    fn fill(&mut self, place: &str, text: &str) -> String {
        let value = self.plant(&format!("{place}: {text}"));
        text.replace('%', &value)
    }

    /// Which of them stand in a text.
    fn found_in(&self, place: &str, text: &str) -> Vec<String> {
        let is_there = |(_, value): &&(String, String)| text.contains(&**value);
        self.0.iter().filter(is_there).map(|(planted, _)| format!("{planted} -> {place}")).collect()
    }
}

/// A text as TOML spells it.
fn toml(text: &str) -> String {
    Value::from(text).to_string()
}

/// Every server, each with secrets of its own.
fn config(canaries: &mut Canaries, echoes: &Echoes, folder: &Path) -> String {
    let mut text = String::new();
    let mut server = |name: &str, lines: &str| {
        let _ = write!(text, "[servers.{name}]\nwait = \"300ms\"\n{lines}\n");
    };
    for (number, shapes) in SHAPES.chunks(8).enumerate() {
        for (kind, stderr) in [("crash", "off"), ("logs", "log")] {
            let name = format!("{kind}{number}");
            let said: Vec<_> = shapes.iter().map(|shape| canaries.fill(&name, shape)).collect();
            // From a file: what stands in the config is known by its value.
            let file = folder.join(&name);
            std::fs::write(&file, said.join("\n") + "\n").unwrap();
            let script = format!("cat '{}' >&2; exec '{LINETENDER}' __badserver", file.display());
            server(&name, &format!("command = 'sh'\nargs = ['-c', {}]\nstderr = '{stderr}'", toml(&script)));
        }
    }
    for stderr in ["off", "log", "pass"] {
        let name = format!("env-{stderr}");
        let variables = VARIABLES.map(|variable| {
            let mut value = canaries.plant(&format!("{name} {variable}"));
            // Some are spelt in another way when they are printed.
            if variable == "DB_PASSWORD" {
                value = format!("{value}\"&/ +");
            }
            format!("{variable} = {}", toml(&value))
        });
        let script = "env >&2; echo \"it is $DB_PASSWORD and $API_KEY.\" >&2; exit 3";
        let lines = format!(
            "command = 'sh'\nargs = ['-c', '{script}']\nstderr = '{stderr}'\nenv = {{ {} }}",
            variables.join(", ")
        );
        server(&name, &lines);
    }
    let flags = [
        "'--api-key', '%'",
        "'--token=%'",
        "'-p', '%'",
        "'%'",
        "'--header', 'X-A: %'",
        "'-u', 'me:%'",
        "'https://h/x?k=%'",
        "'PASSWORD=%'",
    ];
    let flags = flags.map(|flag| canaries.fill("args", flag));
    server(
        "args",
        &format!("command = 'sh'\nargs = ['-c', 'echo \"$@\" >&2; exit 3', 'sh', {}]", flags.join(", ")),
    );
    for fault in FAULTS {
        let mut planted = |what: &str| canaries.plant(&format!("{fault}: {what}"));
        let url = format!(
            "http://{}/{fault}/{}?key={}&x={}",
            echoes.at,
            planted("path"),
            planted("key"),
            planted("x")
        );
        let headers = format!(
            "Authorization = 'Bearer {}', X-Custom = '{}', Cookie = 'sid={}; b=c', X-Long = 'a b {}'",
            planted("Authorization"),
            planted("X-Custom"),
            planted("Cookie"),
            planted("X-Long"),
        );
        server(&format!("http-{fault}"), &format!("url = '{url}'\nheaders = {{ {headers} }}"));
    }
    for (name, url) in [
        ("refused", "http://127.0.0.1:1/%?token=1"),
        ("dns", "http://nonexistent.invalid/%"),
        ("bad", "ht!tp://%"),
        ("nothttp", "ftp://%"),
        ("userinfo", "http://me:%@127.0.0.1:1/mcp"),
        ("port", "http://127.0.0.1:%/mcp"),
    ] {
        server(name, &format!("url = '{}'", canaries.fill(name, url)));
    }
    let (name, value) = (canaries.plant("header name"), canaries.plant("header value"));
    server("names", &format!("url = 'http://127.0.0.1:1/'\nheaders = {{ 'bad {name}' = 'x' }}"));
    server("values", &format!("url = 'http://127.0.0.1:1/'\nheaders = {{ X-B = \"{value}\\u0001\" }}"));
    server("nocmd", &format!("command = '/nonexistent/x'\nargs = ['--key', '{}']", canaries.plant("nocmd")));
    text
}

/// What the gateway answers to this.
fn posted(address: &str, path: &str, headers: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let (body, method) = (body.to_string(), if body.is_null() { "GET" } else { "POST" });
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The answer to a modern agent's call.
fn called(address: &str, server: &str, tool: &str, arguments: &Value, more: &str) -> String {
    let headers =
        format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{more}");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    posted(address, &format!("/mcp/{server}"), &headers, &body)
}

/// Calls a tool that fails on every server, all at once; what the agents were told.
fn called_everywhere(canaries: &mut Canaries, address: &str, config: &str) -> String {
    let names: Vec<_> =
        config.lines().filter_map(|line| line.strip_prefix("[servers.")?.strip_suffix(']')).collect();
    let arguments: Vec<_> =
        names.iter().map(|name| canaries.plant(&format!("argument for {name}"))).collect();
    let inbound = format!(
        "Authorization: Bearer {}\r\nCookie: c={}\r\nX-Forwarded-For: {}\r\n",
        canaries.plant("inbound Authorization"),
        canaries.plant("inbound Cookie"),
        canaries.plant("inbound X-Forwarded-For"),
    );
    std::thread::scope(|scope| {
        let calls = names.iter().zip(&arguments).map(|(name, argument)| {
            let inbound = &inbound;
            scope.spawn(move || {
                let call = || called(address, name, "kill", &json!({ "a": argument }), inbound);
                format!("[{name}] {}\n{}\n", call(), call())
            })
        });
        calls.collect::<Vec<_>>().into_iter().map(|call| call.join().unwrap()).collect()
    })
}

/// A gateway whose own stderr is kept, and where it listens.
fn gateway(home: &Home) -> (Serves, String) {
    let mut serve = home.serve(&["--listen", "127.0.0.1:0", "--log"]);
    let stderr = File::create(home.path().join("stderr")).unwrap();
    serve.arg(home.path().join("log")).stdin(Stdio::null()).stderr(stderr);
    let serves = Serves(serve.spawn().unwrap());
    let said = home.wait_for_log("serving address=http://");
    (serves, said.split("http://").nth(1).unwrap().trim_end_matches("/mcp").to_owned())
}

#[test]
fn x10_two_hundred_secrets_are_found_nowhere_but_where_they_were_sent() {
    let (mut canaries, echoes) = (Canaries::default(), Echoes::listen(|| json!([])));
    let home = Home::new("canaries", "");
    let config = config(&mut canaries, &echoes, home.path());
    home.write(&config);
    let (mut serves, address) = gateway(&home);
    let mut told = called_everywhere(&mut canaries, &address, &config);
    told += &called_everywhere(&mut canaries, &address, &config);
    let printed = |words: &[&str]| {
        let output = home.linetender(words).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let statuses = printed(&["status"]) + &printed(&["status", "--json"]);
    let health =
        posted(&address, "/readyz", "", &Value::Null) + &posted(&address, "/healthz", "", &Value::Null);
    // Files that cannot be used: while it runs, and when it starts.
    let mut refused = String::new();
    for (number, broken) in BROKEN.iter().enumerate() {
        let broken = |canaries: &mut Canaries, when| {
            let server = canaries.fill(when, broken);
            let command = if server.contains("url") { "" } else { "command = 'x'\n" };
            format!("[servers.z]\n{command}{server}\n")
        };
        home.write(&(config.clone() + &broken(&mut canaries, "reload")));
        serves.signal("-HUP");
        until("a reload that fails", || {
            (home.log().matches("config reload failed").count() > number).then_some(())
        });
        let other = Home::new("canaries-broken", &broken(&mut canaries, "start"));
        let output = other.serve(&[]).output().unwrap();
        assert!(!output.status.success());
        refused += &String::from_utf8_lossy(&output.stderr);
    }
    // A shim, whose secrets are on its command line.
    let url =
        format!("http://{}/500/{}?k={}", echoes.at, canaries.plant("run path"), canaries.plant("run query"));
    let header = format!("X-Key: {}", canaries.plant("run --header"));
    let run = home.linetender(&["run", "--no-memory", "--wait", "300ms", "--header", &header, &url]);
    let shim = { run }.stdin(Stdio::null()).output().unwrap();
    let script = "echo \"$@\" >&2; exit 3";
    let flags = [canaries.fill("run", "--token=%"), canaries.plant("run positional")];
    let mut run = home.linetender(&["run", "--no-memory", "--wait", "300ms", "--", "sh", "-c", script, "sh"]);
    run.args(flags).env("MY_TOKEN", canaries.plant("run MY_TOKEN")).stdin(Stdio::null());
    let other = run.output().unwrap();
    serves.signal("-TERM");
    serves.ended();

    let read = |file: &str| std::fs::read_to_string(home.path().join(file)).unwrap();
    let shims = [shim.stdout, shim.stderr, other.stdout, other.stderr].concat();
    let places = [
        ("log", read("log")),
        ("stderr", read("stderr")),
        ("journal", read("linetender/journal.jsonl")),
        ("journal as text", printed(&["journal", "--last", "10000"])),
        ("status", statuses),
        ("health", health),
        ("agents", told),
        ("start", refused),
        ("shims", String::from_utf8_lossy(&shims).into_owned()),
    ];
    let leaks: Vec<_> = places.iter().flat_map(|(place, text)| canaries.found_in(place, text)).collect();
    assert!(leaks.is_empty(), "{} of {} found: {leaks:#?}", leaks.len(), canaries.0.len());
    assert!(canaries.0.len() >= 200, "{}", canaries.0.len());
    // And the search would have found them: they were sent, and what servers said of them was told.
    let sent = canaries.found_in("", &echoes.heard()).len();
    assert!(sent >= 7 * FAULTS.len(), "{sent}");
    for (place, text) in &places[..7] {
        assert!(*place == "health" || text.contains("[redacted]"), "{place}: {text}");
    }
    assert!(places[1].1.contains("[env-pass] it is [redacted] and [redacted]."), "{}", places[1].1);
}

#[test]
fn x10_what_a_server_answers_is_passed_on_to_the_byte() {
    let mut canaries = Canaries::default();
    let value = canaries.plant("env");
    let home = Home::new("payload", &format!("[servers.a]\n{{bad}}\nenv = {{ API_KEY = '{value}' }}\n"));
    let (_serves, address) = gateway(&home);
    let said = format!("password: {value} \u{202e}");
    let answer = called(&address, "a", "echo", &json!({ "said": said }), "");
    assert!(answer.contains(&said), "{answer}");
}
