//! Rules, limits, and what changes while agents are there.

use http::Method;
use linetender_badserver::agent::{Caller, in_time, names, text};
use serde_json::json;

use crate::issuer::Issuer;
use crate::kit::{House, run};

/// The process of its server that an agent's calls reach.
async fn pid(caller: &Caller, path: &str) -> String {
    let answer =
        caller.modern(path, "tools/call", json!({ "name": "pid", "arguments": {} })).await.last().await;
    text(&answer).to_owned()
}

#[tokio::test]
async fn a_server_of_scope_identity_has_a_process_for_each_principal() {
    let issuer = Issuer::start().await;
    let servers = "[servers.s]\n{bad}\nscope = 'identity'\n[servers.o]\n{bad}\n[servers.each]\n{bad}\nscope = 'session'\n";
    let config = format!("{}{servers}", issuer.config());
    let house = House::up("identity", &config).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    // The same person with another token, in another group.
    let again = house.with(&issuer.token("alice", &["dev"]));
    let of = [pid(&alice, "/mcp/s").await, pid(&bob, "/mcp/s").await, pid(&again, "/mcp/s").await];
    assert_ne!(of[0], of[1]);
    assert_eq!(of[0], of[2], "it is hers, whatever token she shows");
    let hers = alice.agent("/mcp/s").await;
    assert_eq!(text(&hers.call("pid", json!({})).await), of[0], "and in either era");
    let all = alice.agent("/mcp").await;
    assert_eq!(text(&all.call("s__pid", json!({})).await), of[0], "at either address");
    assert_eq!(pid(&alice, "/mcp/o").await, pid(&bob, "/mcp/o").await, "others are shared");
    let without = [pid(&alice, "/mcp/each").await, pid(&bob, "/mcp/each").await];
    assert_ne!(
        without[0], without[1],
        "nor does whoever has no session share a server of sessions with a stranger"
    );
}

#[tokio::test]
async fn rules_show_tools_to_some_and_a_reload_changes_them() {
    let issuer = Issuer::start().await;
    let config = |access: &str| format!("{}[servers.s]\n{{bad}}\n{access}", issuer.config());
    let rules = "[servers.s.access]\n'group:ops' = {}\nalice = { tools.include = ['echo', 'pid'] }\n";
    let house = House::up("rules", &config(rules)).await;
    let [alice, boss, bob] = [("alice", "dev"), ("boss", "ops"), ("bob", "dev")]
        .map(|(name, group)| house.with(&issuer.token(name, &[group])));
    let listed = async |caller: &Caller, path: &str| {
        let answer = caller.modern(path, "tools/list", json!({})).await.last().await;
        if answer["result"].is_object() { names(&answer, "tools") } else { Vec::new() }
    };
    in_time(async { while listed(&alice, "/mcp").await.len() < 2 {} }).await;
    assert!(listed(&boss, "/mcp/s").await.len() > 10);
    assert_eq!(listed(&alice, "/mcp/s").await, ["echo", "pid"]);
    assert_eq!(listed(&alice, "/mcp").await, ["s__echo", "s__pid"]);
    assert!(listed(&bob, "/mcp").await.is_empty());
    let hers = alice.agent("/mcp/s").await;
    let hidden = hers.call("log", json!({})).await;
    let none = hers.call("none", json!({})).await;
    assert_eq!(hidden.to_string().replace("log", "none")[20..], none.to_string()[20..], "it does not exist");
    // Whoever has a session hears of it, and keeps it.
    let mut stream = hers.stream(None).await;
    let now = config("[servers.s.access]\nalice = { tools.include = ['echo', 'log'] }\nbob = {}\n");
    house.write(&now);
    house.signal("-HUP");
    loop {
        let event = stream.event().await.expect("an open stream").data;
        if event["method"] == "notifications/tools/list_changed" {
            break;
        }
    }
    assert_eq!(names(&hers.ask("tools/list", json!({})).await, "tools"), ["echo", "log"]);
    assert!(listed(&bob, "/mcp/s").await.len() > 10);
    assert!(listed(&boss, "/mcp").await.is_empty(), "and whoever may not any more does not");
}

#[tokio::test]
async fn one_principals_requests_are_limited_and_nobody_elses() {
    let issuer = Issuer::start().await;
    let limits = "[gateway]\nprincipal_requests = 2\nprincipal_rate = 100\n";
    let config = issuer.config().replacen("[gateway]\n", limits, 1);
    let house = House::up("limits", &format!("{config}[servers.s]\n{{bad}}\n")).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    let hers = alice.agent("/mcp/s").await;
    // A session has one stream; two sessions have two, and each is a request in progress.
    let other = alice.agent("/mcp/s").await;
    let (one, two) = (hers.stream(None).await, other.stream(None).await);
    let third = alice.modern("/mcp/s", "tools/list", json!({})).await;
    assert_eq!((third.status.as_u16(), third.headers["retry-after"].to_str().unwrap()), (429, "1"));
    let words = third.last().await.to_string();
    assert!(words.contains("principal_requests") && words.contains("not executed"), "{words}");
    assert_eq!(bob.modern("/mcp/s", "tools/list", json!({})).await.status, 200);
    drop((one, two));
    in_time(async { while alice.modern("/mcp/s", "tools/list", json!({})).await.status != 200 {} }).await;
    // Many at once are more than a second's.
    let asked: Vec<_> = (0..400)
        .map(|_| tokio::spawn(async move { alice.modern("/mcp/s", "tools/list", json!({})).await.status }))
        .collect();
    let mut refused = 0;
    for asked in asked {
        refused += usize::from(in_time(asked).await.unwrap() == 429);
    }
    assert!(refused > 0);
    assert_eq!(bob.modern("/mcp/s", "tools/list", json!({})).await.status, 200);
    assert_eq!(house.web.send(Method::GET, "/healthz", &[], String::new()).await.status, 200);
}

#[tokio::test]
async fn a_token_that_is_taken_back_opens_nothing_and_ends_what_only_listens() {
    let folder = House::folder("tokens");
    let add = |name: &str, group: &str| {
        let words = ["token", "add", name, "--group", group, "--file", "tokens.toml"];
        run(&folder, &words).trim().to_owned()
    };
    let first = add("ci", "machines");
    let config = "[gateway.auth]\ntokens = 'tokens.toml'\n[servers.s]\n{bad}\naccess = { 'token:ci' = {}, 'group:people' = {} }\n";
    let house = House::up("tokens", config).await;
    let ci = house.with(&first);
    let session = ci.agent("/mcp/s").await;
    let mut listens = session.stream(None).await;
    let mut modern = ci
        .modern("/mcp/s", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
        .await;
    assert!(modern.event().await.is_some());
    // One that is made while the gateway runs is known without a reload.
    let second = house.with(&add("alice", "people"));
    in_time(async { while second.modern("/mcp/s", "ping-not", json!({})).await.status == 401 {} }).await;
    assert_eq!(second.modern("/mcp/s", "tools/list", json!({})).await.status, 200);
    run(&folder, &["token", "remove", "ci", "--file", "tokens.toml"]);
    let third = add("ci", "machines");
    in_time(async { while ci.modern("/mcp/s", "tools/list", json!({})).await.status != 401 {} }).await;
    in_time(async { while listens.event().await.is_some() {} }).await;
    in_time(async { while modern.event().await.is_some() {} }).await;
    assert_eq!(second.modern("/mcp/s", "tools/list", json!({})).await.status, 200);
    assert_eq!(
        house.with(&third).modern("/mcp/s", "tools/list", json!({})).await.status,
        200,
        "it has another now"
    );
    let refused = ci.modern("/mcp/s", "tools/list", json!({})).await;
    let challenge = refused.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("invalid_token") && !challenge.contains("resource_metadata"), "{challenge}");
    let text = std::fs::read_to_string(folder.join("tokens.toml")).unwrap();
    assert!(!text.contains(&first) && !house.log().contains(&first[..20]), "only hashes are kept");
}

#[tokio::test]
async fn g12_calls_and_sessions_of_a_token_that_is_removed_end_with_it() {
    let folder = House::folder("g12-token");
    let add = |name: &str| run(&folder, &["token", "add", name, "--file", "tokens.toml"]).trim().to_owned();
    let [ci, other] = ["ci", "other"].map(add);
    let house = House::up("g12-token", "[gateway.auth]\ntokens = 'tokens.toml'\n[servers.s]\n{bad}\n").await;
    let (ci, other) = (house.with(&ci), house.with(&other));
    let (alone, all, others) =
        (ci.agent("/mcp/s").await, ci.agent("/mcp").await, other.agent("/mcp/s").await);
    let slow = |name: &str| json!({ "name": name, "arguments": { "ms": 600_000 } });
    // They are streams by now: the responses have begun.
    let calls = [
        alone.request(7, "tools/call", slow("sleep")).await,
        all.request(7, "tools/call", slow("s__sleep")).await,
        ci.modern("/mcp/s", "tools/call", slow("sleep")).await,
        ci.modern("/mcp", "tools/call", slow("s__sleep")).await,
    ];
    let mut listens = all.stream(None).await;
    run(&folder, &["token", "remove", "ci", "--file", "tokens.toml"]);
    for call in calls {
        let last = call.last().await.to_string();
        assert!(last.contains("token was removed") && last.contains("unknown"), "{last}");
    }
    in_time(async { while listens.event().await.is_some() {} }).await;
    // Other principals notice nothing.
    assert_eq!(text(&others.call("echo", json!({ "a": 1 })).await), r#"{"a":1}"#);
    drop(folder);
}

#[tokio::test]
async fn g12_a_session_at_a_server_that_its_principal_may_not_see_any_more_ends_with_its_calls() {
    let issuer = Issuer::start().await;
    let config = |access: &str| format!("{}[servers.s]\n{{bad}}\n{access}", issuer.config());
    let house = House::up("g12-rights", &config("access = { alice = {}, bob = {} }\n")).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    let (hers, his) = (alice.agent("/mcp/s").await, bob.agent("/mcp/s").await);
    let slow = json!({ "name": "sleep", "arguments": { "ms": 600_000 } });
    let call = hers.request(7, "tools/call", slow).await;
    house.write(&config("access = { bob = {} }\n"));
    house.signal("-HUP");
    let last = call.last().await.to_string();
    assert!(last.contains("access ended"), "{last}");
    assert_eq!(hers.request(8, "ping", json!({})).await.status, 404);
    assert_eq!(text(&his.call("echo", json!({ "a": 1 })).await), r#"{"a":1}"#, "and he goes on");
}

#[tokio::test]
async fn whoever_may_not_see_something_any_more_hears_no_more_of_it() {
    let issuer = Issuer::start().await;
    let config =
        |access: &str| format!("{}[servers.s]\n{{bad}}\n[servers.t]\n{{bad}}\n{access}", issuer.config());
    let house = House::up("hidden", &config("")).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    let (straight, all) = (alice.agent("/mcp/s").await, alice.agent("/mcp").await);
    let uri = json!({ "uri": "note://a" });
    in_time(async { while !all.ask("tools/list", json!({})).await.to_string().contains("s__touch") {} })
        .await;
    straight.ask("resources/subscribe", uri.clone()).await;
    all.ask("resources/subscribe", json!({ "uri": "linetender://s/note://a" })).await;
    let (mut own, mut of_all) = (straight.stream(None).await, all.stream(None).await);
    let gone = alice.agent("/mcp/t").await;
    let mut ends = gone.stream(None).await;
    // A call that is under way does not keep the stream.
    let hangs = tokio::spawn(async move {
        let hang = json!({ "name": "hang", "arguments": { "nonce": "under-way" } });
        alice.modern("/mcp/t", "tools/call", hang).await.status
    });
    house.write(&config(
        "access = { bob = {} }\n[servers.s.access]\nbob = {}\nalice = { resources.exclude = ['note://*'] }\n",
    ));
    house.signal("-HUP");
    in_time(async { while ends.event().await.is_some() {} }).await;
    for stream in [&mut own, &mut of_all] {
        // Its lists changed, so the rules hold.
        while stream.event().await.expect("an open stream").data["method"]
            != "notifications/resources/list_changed"
        {}
    }
    // He touches it, and she learns of something that comes after that.
    assert!(bob.modern("/mcp/s", "tools/call", json!({ "name": "touch", "arguments": uri })).await.last().await["result"].is_object());
    bob.modern("/mcp/s", "tools/call", json!({ "name": "list_change", "arguments": {} })).await.last().await;
    house.write(&config("access = { bob = {} }\n[servers.s.access]\nbob = {}\nalice = { tools.include = ['echo'], resources.exclude = ['note://*'] }\n"));
    house.signal("-HUP");
    for stream in [&mut own, &mut of_all] {
        loop {
            let event = stream.event().await.expect("an open stream").data;
            assert_ne!(event["method"], "notifications/resources/updated", "{event}");
            if event["method"] == "notifications/tools/list_changed" {
                break;
            }
        }
    }
    hangs.abort();
}

#[tokio::test]
async fn an_unused_line_of_a_principal_gives_way_to_a_newcomer() {
    let issuer = Issuer::start().await;
    let config = issuer.config().replacen("[gateway]\n", "[gateway]\nlines = 3\n", 1);
    let house = House::up("lines", &format!("{config}[servers.s]\n{{bad}}\nscope = 'identity'\n")).await;
    let [a, b, c] = ["a", "b", "c"].map(|name| house.with(&issuer.token(name, &[])));
    let (of_a, of_b) = (pid(&a, "/mcp/s").await, pid(&b, "/mcp/s").await);
    // a comes back, so b's was used longest ago.
    assert_eq!(pid(&a, "/mcp/s").await, of_a);
    assert_ne!(pid(&c, "/mcp/s").await, of_b);
    assert_eq!(pid(&a, "/mcp/s").await, of_a, "and it was not a's that gave way");
    // Two sessions keep both lines; there is no room for a third.
    let (_one, _two) = (a.agent("/mcp/s").await, c.agent("/mcp/s").await);
    let full = b.modern("/mcp/s", "tools/call", json!({ "name": "pid", "arguments": {} })).await;
    assert_eq!(full.status, 503);
}

#[tokio::test]
async fn what_an_agent_says_of_itself_is_not_kept_at_any_length() {
    let issuer = Issuer::start().await;
    let house = House::up("long", &format!("{}[servers.s]\n{{bad}}\n", issuer.config())).await;
    let alice = house.with(&issuer.token("alice", &[]));
    let long = "x".repeat(100_000);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "clientInfo": { "name": long } } });
    assert_eq!(alice.send(Method::POST, "/mcp", &[], hello.to_string()).await.status, 413);
    let session = alice.agent("/mcp").await;
    let level = json!({ "level": "info", "more": long });
    assert_eq!(session.ask("logging/setLevel", level).await["result"], json!({}));
    // Two readers might read two tasks.
    for ambiguous in [r#"{"taskId":"1","taskid":"2"}"#, r#"{"taskId":"1","taskId":"2"}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{ambiguous}}}"#);
        assert_eq!(session.post_text(text).await.status, 400, "{ambiguous}");
    }
}
