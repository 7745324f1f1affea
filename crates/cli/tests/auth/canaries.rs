//! X10, of logins: every secret of a login, and secrets in every place where a config file can have them, while everything
//! fails that can. None may be found anywhere but where it was sent.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::agent::Agent;
use crate::browser::ask;
use crate::echoes::{Echoes, FAULTS};
use crate::kit::{Home, until};
use crate::provider::Provider;

/// The secret of the provider's own client, as a config file has it.
const MACHINE: &str = "the-secret:of the+machine%2";

#[derive(Default)]
struct Canaries(Vec<(String, String)>);

impl Canaries {
    /// A new one: nothing else in the world looks like it.
    fn plant(&mut self, place: &str) -> String {
        let mut mixed = (self.0.len() as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = format!("w{:x}{mixed:016x}", 0x3c1 + self.0.len());
        self.0.push((place.to_owned(), value.clone()));
        value
    }

    fn found_in(&self, place: &str, text: &str) -> Vec<String> {
        let is_there = |(_, value): &&(String, String)| text.contains(&**value);
        self.0.iter().filter(is_there).map(|(planted, _)| format!("{planted} -> {place}")).collect()
    }
}

/// Servers that fail in every way, with each kind of credentials that change. Their variables.
fn hostile(canaries: &mut Canaries, home: &Home, echoes: &Echoes) -> (String, Vec<(String, String)>) {
    let (mut text, mut variables) = (String::new(), Vec::new());
    for fault in FAULTS {
        for kind in ["file", "command", "login"] {
            let name = format!("{kind}-{fault}");
            let mut plant = |what: &str| canaries.plant(&format!("{name}: {what}"));
            let url = format!("http://{}/{fault}/{}?key={}", echoes.at, plant("path"), plant("query"));
            let variable = format!("TOKEN_{}_{}", kind.to_uppercase(), fault.to_uppercase());
            variables.push((variable.clone(), plant("variable")));
            let fixed = plant("fixed");
            let lines = match kind {
                "file" => {
                    let file = home.write(&format!("secrets/{name}"), &plant("file"));
                    format!(
                        "headers = {{ Authorization = 'Bearer ${{file:{}}}', X-Env = '${{{variable}}}', X-Fixed = '{fixed}' }}",
                        file.display()
                    )
                }
                "command" => {
                    let printed = json!({ "Authorization": format!("Bearer {}", plant("printed")), "X-More": plant("more") });
                    let file = home.write(&format!("secrets/{name}"), &printed.to_string());
                    format!(
                        "auth = {{ command = ['cat', '{}'] }}\nheaders = {{ X-Env = '${{{variable}}}', X-Fixed = '{fixed}' }}",
                        file.display()
                    )
                }
                _ => format!(
                    "auth = {{ client_id = 'me', client_secret = '{}', issuer = 'http://{}' }}\nheaders = {{ X-Env = '${{{variable}}}', X-Fixed = '{fixed}' }}",
                    plant("client secret"),
                    echoes.at
                ),
            };
            let _ = write!(text, "[servers.{name}]\nwait = '300ms'\nurl = '{url}'\n{lines}\n");
        }
    }
    (text, variables)
}

/// A gateway that ends with the test, and where it listens.
struct Gateway(Child, String);

impl Gateway {
    fn start(home: &Home, config: &str, variables: &[(String, String)]) -> Self {
        let path = home.write(".config/linetender/linetender.toml", config);
        let stderr = std::fs::File::create(home.at("gateway-stderr")).unwrap();
        let mut serve = home.linetender(&["serve", "--listen", "127.0.0.1:0", "--log"]);
        let serve = serve.arg(home.at("gateway-log")).arg("--config").arg(path).stderr(stderr);
        let child = serve.envs(variables.iter().cloned()).spawn().unwrap();
        let mut address = String::new();
        until("an address", || {
            let log = home.file("gateway-log");
            let at = log.split("serving address=http://").nth(1).and_then(|rest| rest.split("/mcp").next());
            at.ok_or(log.clone())?.clone_into(&mut address);
            Ok(())
        });
        Self(child, address)
    }

    /// The answer to a call.
    fn call(&self, server: &str) -> String {
        let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
            MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        });
        let params = json!({ "name": "echo", "arguments": {}, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        ask("POST", &format!("http://{}/mcp/{server}", self.1), headers, &body.to_string()).body
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command lines of all processes, again and again, until this is set.
fn command_lines(done: &AtomicBool) -> HashSet<String> {
    let mut seen = HashSet::new();
    while !done.load(Ordering::Relaxed) {
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            seen.insert(String::from_utf8_lossy(&line).into_owned());
        }
        std::thread::park_timeout(Duration::from_millis(3));
    }
    seen
}

#[test]
fn x10_two_hundred_secrets_of_logins_are_found_nowhere_but_where_they_were_sent() {
    let (Some(people), Some(machines)) = (Provider::start(), Provider::start()) else { return };
    let (mut canaries, echoes, home) =
        (Canaries::default(), Echoes::listen(|| json!([])), Home::new("canaries"));
    let done = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        let lines = scope.spawn(|| command_lines(&done));
        let told = play(&mut canaries, &echoes, &home, &people, &machines);
        done.store(true, Ordering::Relaxed);
        let lines: Vec<_> = lines.join().unwrap().into_iter().collect();
        [told, vec![("command lines", lines.join("\n"))]].concat()
    });
    let made: Vec<_> = [people.secrets(), machines.secrets()].concat();
    assert!(made.len() >= 40, "{}", made.len());
    let sent = canaries.found_in("", &echoes.heard()).len();
    assert!(sent >= 100, "the search would have found them: {sent}");
    let dynamic =
        Canaries(made.into_iter().map(|secret| ("made by a provider".to_owned(), secret)).collect());
    canaries.0.push(("machine's secret".to_owned(), MACHINE.to_owned()));
    let mut leaks: Vec<_> = told
        .iter()
        .flat_map(|(place, text)| [canaries.found_in(place, text), dynamic.found_in(place, text)].concat())
        .collect();
    leaks.extend(dynamic.found_in("another server", &echoes.heard()));
    let count = canaries.0.len() + dynamic.0.len();
    assert!(leaks.is_empty(), "{} of {count} found: {leaks:#?}", leaks.len());
    assert!(count >= 200, "{count}");
}

/// Everything happens; what was said, and where.
fn play(
    canaries: &mut Canaries,
    echoes: &Echoes,
    home: &Home,
    people: &Provider,
    machines: &Provider,
) -> Vec<(&'static str, String)> {
    let (mut config, variables) = hostile(canaries, home, echoes);
    let secret = home.write("secrets/machine", MACHINE);
    let _ = write!(
        config,
        "[servers.people]\nurl = '{}'\n[servers.machines]\nurl = '{}'\n\
         auth = {{ client_id = 'machine', client_secret = '${{file:{}}}', issuer = '{}', grant = 'client_credentials' }}\n\
         [servers.other]\ncommand = 'sh'\nargs = ['-c', 'env >{}; exit 3']\n",
        people.mcp,
        machines.mcp,
        secret.display(),
        machines.issuer,
        home.at("environment").display(),
    );
    let gateway = Gateway::start(home, &config, &variables);
    let names: Vec<_> =
        config.lines().filter_map(|line| line.strip_prefix("[servers.")?.strip_suffix(']')).collect();
    let mut agents = String::new();
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let calls: Vec<_> = names.iter().map(|name| scope.spawn(|| gateway.call(name))).collect();
            for call in calls {
                agents += &call.join().unwrap();
            }
        });
    }
    let mut people_said = String::new();
    let mut login = |agents: &mut String| {
        let (said, stdout) = home.login(&["people"]);
        // The address is for the person's browser alone.
        people_said
            .extend(said.lines().filter(|line| !line.starts_with("  http")).map(|line| format!("{line}\n")));
        people_said += &stdout;
        until("up", || {
            let answer = gateway.call("people");
            let is_up = answer.contains("\"content\"") && !answer.contains("isError\":true");
            *agents += &answer;
            if is_up { Ok(()) } else { Err(answer) }
        });
    };
    login(&mut agents);
    let machine = gateway.call("machines");
    assert!(machine.contains("\"content\"") && !machine.contains("isError\":true"), "{machine}");
    let url = canaries.plant("run path");
    let url = format!("http://{}/401/{url}?k={}", echoes.at, canaries.plant("run query"));
    let file = home.write("secrets/run", &canaries.plant("run file"));
    let header = format!("Authorization: Bearer ${{file:{}}}", file.display());
    let mut run =
        home.linetender(&["run", "--no-memory", "--wait", "300ms", "--header", &header, "$CANARY_URL"]);
    let run = run.env("CANARY_URL", &url).stdin(Stdio::null()).output().unwrap();
    agents += &String::from_utf8_lossy(&[run.stdout, run.stderr].concat());
    let mut shim: Agent = home.shim(&people.mcp);
    // Tokens come and go.
    for provider in [people, machines] {
        for _ in 0..12 {
            provider.set(&json!({ "refuse_tokens": true }));
            agents += &gateway.call(if std::ptr::eq(provider, people) { "people" } else { "machines" });
            agents += &crate::kit::call(&mut shim, "echo").0;
        }
    }
    // The authorization server repeats what it was sent, refuses, does not know the client.
    for token in ["echo", "refuse", "unknown-client"] {
        for provider in [people, machines] {
            provider.set(&json!({ "refuse_tokens": true, "token": token }));
        }
        for server in ["people", "machines"] {
            agents += &gateway.call(server);
        }
        agents += &crate::kit::call(&mut shim, "echo").0;
        agents += &home.prints(&["auth", "--json"]);
        for provider in [people, machines] {
            provider.set(&json!({ "token": "ok" }));
        }
        login(&mut agents);
    }
    people_said += &failing_logins(canaries, echoes, home);
    let printed = |words: &[&str]| home.prints(words);
    let places = vec![
        ("status", printed(&["status"]) + &printed(&["status", "--json"])),
        ("auth", printed(&["auth"]) + &printed(&["auth", "--json"])),
        (
            "journal",
            printed(&["journal", "--last", "10000"]) + &home.file(".local/state/linetender/journal.jsonl"),
        ),
        ("log", home.file("gateway-log") + &home.file("shim-log")),
        ("stderr", home.file("gateway-stderr")),
        ("logout", printed(&["logout", "people"])),
        ("another server's environment", home.file("environment")),
        ("agents", agents),
        ("people", people_said),
    ];
    for (place, text) in &places {
        assert!(*place == "stderr" || !text.is_empty(), "{place}");
    }
    places
}

/// A person who cannot log in; what that person was told.
fn failing_logins(canaries: &mut Canaries, echoes: &Echoes, home: &Home) -> String {
    let (mut said, issuer) = (String::new(), format!("http://{}", echoes.at));
    for fault in FAULTS {
        let path = canaries.plant("login path");
        let url = format!("http://{}/{fault}/{path}?key={}", echoes.at, canaries.plant("login query"));
        let mut login = home.linetender(&[
            "login",
            "--client-id",
            "me",
            "--client-secret-env",
            "MY_SECRET",
            "--issuer",
            &issuer,
            "$CANARY_URL",
        ]);
        let login = login.env("CANARY_URL", &url).env("MY_SECRET", canaries.plant("login secret"));
        let output = login.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        said += &String::from_utf8_lossy(&[output.stdout, output.stderr].concat());
    }
    said
}
