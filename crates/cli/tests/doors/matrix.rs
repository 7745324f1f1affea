//! The stranger's matrix: whoever may not is refused with the right status and challenge, and does not learn whether what it asked
//! for exists.

use http::Method;
use linetender_badserver::agent::{Answer, Caller, text};
use serde_json::{Value, json};

use crate::issuer::{GATEWAY, Issuer, unsigned};
use crate::kit::House;

const SERVERS: &str = "[servers.open]\n{bad}\n[servers.hers]\n{bad}\naccess = { alice = {} }\n";

async fn up(name: &str) -> (Issuer, House) {
    let issuer = Issuer::start().await;
    let house = House::up(name, &format!("{}{SERVERS}", issuer.config())).await;
    (issuer, house)
}

fn challenge(answer: &Answer) -> String {
    let value = answer.headers.get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    value.unwrap_or_default()
}

/// What a refusal says, without the name that was asked for.
async fn said(answer: Answer, asked: &str) -> (u16, String) {
    let status = answer.status.as_u16();
    (status, answer.last().await.to_string().replace(asked, "NAME"))
}

#[tokio::test]
async fn whoever_shows_no_good_token_is_refused_and_told_where_to_get_one() {
    let (issuer, house) = up("tokens").await;
    let alice = issuer.claims("alice", &[]);
    let now = alice["iat"].as_u64().unwrap();
    let good = issuer.token("alice", &[]);
    let mut tampered = good.clone();
    tampered.replace_range(good.len() - 8..good.len() - 4, "AAAA");
    let none = unsigned(&json!({ "alg": "none" }), &alice);
    let other = Issuer::start().await;
    let rows: Vec<(&str, String, &str, u16, &str)> = vec![
        ("good", good.clone(), "/mcp", 200, ""),
        ("good at a server", good.clone(), "/mcp/open", 200, ""),
        ("garbage", "abc".into(), "/mcp", 401, "invalid_token"),
        ("three parts of garbage", "a.b.c".into(), "/mcp", 401, "invalid_token"),
        ("a static token that nobody made", "lt_AAAA".into(), "/mcp", 401, "invalid_token"),
        ("tampered", tampered, "/mcp", 401, "invalid_token"),
        ("expired", issuer.but(&json!({ "exp": now - 100 })), "/mcp", 401, "invalid_token"),
        ("without an end", issuer.but(&json!({ "exp": null })), "/mcp", 401, "invalid_token"),
        ("not yet", issuer.but(&json!({ "nbf": now + 100 })), "/mcp", 401, "invalid_token"),
        (
            "for another audience",
            issuer.but(&json!({ "aud": "https://other" })),
            "/mcp",
            401,
            "invalid_token",
        ),
        ("for no audience", issuer.but(&json!({ "aud": null })), "/mcp", 401, "invalid_token"),
        ("of another issuer", issuer.but(&json!({ "iss": "https://other" })), "/mcp", 401, "invalid_token"),
        ("signed by another issuer", other.of(&alice), "/mcp", 401, "invalid_token"),
        ("alg=none", format!("{none}."), "/mcp", 401, "invalid_token"),
        ("HS256 with the public key", issuer.signed_with_public_key(&alice), "/mcp", 401, "invalid_token"),
        (
            "unknown kid",
            issuer.signed(&json!({ "alg": "RS256", "kid": "two" }), &alice),
            "/mcp",
            401,
            "invalid_token",
        ),
        (
            "for one server, at all",
            issuer.but(&json!({ "aud": format!("{GATEWAY}/mcp/open") })),
            "/mcp",
            401,
            "invalid_token",
        ),
        (
            "for one server, there",
            issuer.but(&json!({ "aud": format!("{GATEWAY}/mcp/open") })),
            "/mcp/open",
            200,
            "",
        ),
        (
            "for one server, at another",
            issuer.but(&json!({ "aud": format!("{GATEWAY}/mcp/open") })),
            "/mcp/hers",
            401,
            "invalid_token",
        ),
        ("without the scope", issuer.but(&json!({ "scope": "other" })), "/mcp", 403, "insufficient_scope"),
        ("nobody in particular", issuer.but(&json!({ "sub": "" })), "/mcp", 401, "invalid_token"),
        ("a user of the machine", issuer.but(&json!({ "sub": "uid:0" })), "/mcp", 401, "invalid_token"),
        ("another's static token", issuer.but(&json!({ "sub": "token:ci" })), "/mcp", 401, "invalid_token"),
    ];
    for (what, token, path, status, error) in rows {
        let answer = house.with(&token).modern(path, "tools/list", json!({})).await;
        let (got, challenge) = (answer.status.as_u16(), challenge(&answer));
        let words = answer.last().await.to_string();
        assert_eq!(got, status, "{what}: {words}");
        if status == 200 {
            assert_eq!(challenge, "", "{what}");
            continue;
        }
        let document = format!(r#"resource_metadata="{GATEWAY}/.well-known/oauth-protected-resource{path}""#);
        for part in [&format!(r#"error="{error}""#), r#"scope="mcp""#, &document] {
            assert!(challenge.contains(part), "{what}: {challenge}");
        }
        assert!(!words.contains("open") && !words.contains("hers"), "{what}: {words}");
    }
    assert!(!house.log().contains(&good[good.len() - 40..]), "no token is in the log");
}

#[tokio::test]
async fn without_a_token_nothing_is_told_but_where_to_get_one() {
    let (_issuer, house) = up("without").await;
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for (method, path, headers) in [
        (Method::POST, "/mcp", &[] as &[(&str, &str)]),
        (Method::POST, "/mcp/open", &[]),
        (Method::POST, "/mcp/none", &[]),
        (Method::GET, "/mcp", &[("mcp-session-id", "x")]),
        (Method::DELETE, "/mcp", &[("mcp-session-id", "x")]),
        (Method::POST, "/mcp?access_token=x", &[]),
        (Method::POST, "/mcp", &[("authorization", "Basic YTpi")]),
        (Method::GET, "/anything", &[]),
    ] {
        let answer = house.web.send(method.clone(), path, headers, ask.clone()).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        let challenge = challenge(&answer);
        assert!(challenge.contains("resource_metadata=") && !challenge.contains("error="), "{challenge}");
        let words = answer.last().await.to_string();
        assert!(!words.contains("hers") && words.contains("authentication required"), "{words}");
    }
    let two = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    assert_eq!(house.web.send(Method::POST, "/mcp", &two, ask).await.status, 400);
}

#[tokio::test]
async fn the_resource_says_who_issues_tokens_for_it_and_not_which_servers_there_are() {
    let (issuer, house) = up("metadata").await;
    let document = async |path: &str| {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        house.web.send(Method::GET, &path, &[], String::new()).await.json().await
    };
    assert_eq!(
        document("/mcp").await,
        json!({
            "resource": format!("{GATEWAY}/mcp"), "authorization_servers": [issuer.url], "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"], "resource_name": "linetender",
        })
    );
    assert_eq!(document("").await, document("/mcp").await);
    let (hers, none) = (document("/mcp/hers").await, document("/mcp/none").await);
    assert_eq!(hers["resource"], format!("{GATEWAY}/mcp/hers"));
    assert_eq!(hers.to_string().replace("hers", "none"), none.to_string());
}

#[tokio::test]
async fn what_is_anothers_is_as_if_it_were_not() {
    let (issuer, house) = up("anothers").await;
    let (alice, bob) = (house.with(&issuer.token("alice", &["dev"])), house.with(&issuer.token("bob", &[])));
    let hers = alice.agent("/mcp").await;
    let stream = hers.stream(None).await;
    assert_eq!(stream.status, 200);
    let poll = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }).to_string();
    // Her session: whatever is done with it, it is as if there were none.
    let less = house.with(&issuer.token("alice", &[]));
    for (method, headers, body) in [
        (Method::POST, vec![], &*poll),
        (Method::GET, vec![], ""),
        (Method::GET, vec![("last-event-id", "0-0")], ""),
        (Method::DELETE, vec![], ""),
    ] {
        for (who, caller) in [("bob", &bob), ("alice, who is in fewer groups", &less)] {
            let with = async |session: &str| {
                let headers: Vec<_> = headers.iter().copied().chain([("mcp-session-id", session)]).collect();
                let answer = caller.send(method.clone(), "/mcp", &headers, body.to_owned()).await;
                said(answer, session).await
            };
            let (his, none) = (with(&hers.session).await, with("0123456789abcdef0123456789abcdef").await);
            assert_eq!(his, none, "{who}: {method} {headers:?}");
            assert_eq!(his.0, 404, "{who}: {method}");
        }
    }
    assert_eq!(hers.ask("ping", json!({})).await["result"], json!({}), "and she did not notice");
    // A stream of hers, from a session of his own.
    let his = bob.agent("/mcp").await;
    assert_eq!(his.stream(Some("7-0")).await.status, 400);
}

#[tokio::test]
async fn a_server_that_somebody_may_not_see_does_not_exist() {
    let (issuer, house) = up("unseen").await;
    let bob = house.with(&issuer.token("bob", &[]));
    let alice = house.with(&issuer.token("alice", &[]));
    seen(&alice, "hers__echo").await;
    seen(&bob, "open__echo").await;
    // At its address, in both eras and by every method.
    let of = async |name: &str| {
        let path = format!("/mcp/{name}");
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }).to_string();
        let modern = said(bob.modern(&path, "tools/list", json!({})).await, name).await;
        let legacy = said(bob.send(Method::POST, &path, &[], hello).await, name).await;
        let session = [("mcp-session-id", "x")];
        let get = said(bob.send(Method::GET, &path, &session, String::new()).await, name).await;
        let delete = said(bob.send(Method::DELETE, &path, &session, String::new()).await, name).await;
        [modern, legacy, get, delete]
    };
    let (hers, none) = (of("hers").await, of("none").await);
    assert_eq!(hers, none);
    assert!(hers.iter().all(|(status, words)| *status == 404 && !words.contains("hers")), "{hers:?}");
    // At the address of all: its tools, resources, prompts and what completes them.
    let his = bob.agent("/mcp").await;
    for (method, params) in [
        ("tools/call", json!({ "name": "NAME__echo", "arguments": {} })),
        ("prompts/get", json!({ "name": "NAME__greet" })),
        ("resources/read", json!({ "uri": "linetender://NAME/note://a" })),
        ("resources/subscribe", json!({ "uri": "linetender://NAME/note://a" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "NAME__greet" }, "argument": { "name": "who", "value": "w" } }),
        ),
    ] {
        let ask = async |name: &str| {
            let params: Value = serde_json::from_str(&params.to_string().replace("NAME", name)).unwrap();
            let legacy = his.ask(method, params.clone()).await;
            let modern = if method == "resources/subscribe" {
                Value::Null
            } else {
                bob.modern("/mcp", method, params).await.last().await
            };
            [legacy, modern].map(|mut answer| {
                answer["id"] = Value::Null;
                answer.to_string().replace(name, "NAME")
            })
        };
        let (hers, none) = (ask("hers").await, ask("none").await);
        assert_eq!(hers, none, "{method}");
        assert!(!hers[0].contains("hers") && !hers[0].contains("a note"), "{method}: {hers:?}");
    }
    // On the health page.
    let health =
        async |caller: &Caller| caller.send(Method::GET, "/readyz", &[], String::new()).await.json().await;
    assert_eq!(health(&house.web).await, json!({ "ready": true }));
    assert_eq!(health(&house.with("x.y.z")).await, json!({ "ready": true }));
    assert_eq!(health(&bob).await["servers"], json!({ "open": "up" }));
    assert_eq!(health(&alice).await["servers"], json!({ "hers": "up", "open": "up" }));
}

#[tokio::test]
async fn a_task_and_a_subscription_are_whose_they_are() {
    let (issuer, house) = up("tasks").await;
    let (alice, bob) = (house.with(&issuer.token("alice", &[])), house.with(&issuer.token("bob", &[])));
    seen(&alice, "open__task").await;
    let (hers, his) = (alice.agent("/mcp/open").await, bob.agent("/mcp/open").await);
    let begun = hers.call("task", json!({ "nonce": "of-alice" })).await;
    let ids = [&begun["result"]["taskId"], &begun["result"]["task"]["taskId"]];
    assert!(ids.iter().any(|id| **id == "of-alice"), "{begun}");
    let get = json!({ "taskId": "of-alice" });
    assert_eq!(hers.ask("tasks/get", get.clone()).await["result"]["status"], "completed");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let none = his.ask(method, json!({ "taskId": "of-nobody" })).await;
        let foreign = his.ask(method, get.clone()).await;
        assert_eq!(foreign["error"], none["error"], "{method}");
        assert_eq!(foreign["error"]["code"], -32602, "{method}: {foreign}");
        let modern = bob.modern("/mcp/open", method, get.clone()).await.last().await;
        assert_eq!(modern["error"]["code"], -32602, "{method}: {modern}");
    }
    // Of a list each sees its own, whatever the server lists.
    assert_eq!(his.ask("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    // Where all servers are, a task has another name, and is hers as well: no session, and so her principal's.
    let begun = alice.modern(
        "/mcp",
        "tools/call",
        json!({ "name": "open__task", "arguments": { "nonce": "of-alice-too" } }),
    );
    let begun = begun.await.last().await;
    let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    assert_ne!(id, "of-alice-too");
    let declares = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let about = |id: &str| json!({ "taskId": id, "_meta": { "io.modelcontextprotocol/clientCapabilities": declares } });
    let got = alice.modern("/mcp", "tasks/get", about(&id)).await.last().await;
    assert_eq!(
        (&got["result"]["taskId"], &got["result"]["status"]),
        (&json!(id), &json!("completed")),
        "{got}"
    );
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let none = bob.modern("/mcp", method, about("of-nobody")).await.last().await;
        let foreign = bob.modern("/mcp", method, about(&id)).await.last().await;
        assert_eq!(foreign["error"], none["error"], "{method}");
        assert_eq!(foreign["error"]["code"], -32602, "{method}: {foreign}");
    }
    // Both listen for one resource; that he does not any more is nothing to her.
    let uri = json!({ "uri": "note://a" });
    for agent in [&hers, &his] {
        agent.ask("resources/subscribe", uri.clone()).await;
    }
    his.ask("resources/unsubscribe", uri.clone()).await;
    let mut stream = hers.stream(None).await;
    assert!(text(&hers.call("touch", uri.clone()).await).contains("note"));
    loop {
        let event = stream.event().await.expect("an open stream").data;
        if event["method"] == "notifications/resources/updated" {
            break assert_eq!(event["params"]["uri"], "note://a");
        }
    }
}

#[tokio::test]
async fn a_stream_tells_of_nobody_elses_tasks() {
    let issuer = Issuer::start().await;
    let server = format!(
        "[servers.busy]\ncommand = '{}'\nargs = ['__badserver', '--era', 'modern', '--tasks']\n",
        env!("CARGO_BIN_EXE_linetender")
    );
    let house = House::up("listens", &format!("{}{server}", issuer.config())).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    seen(&alice, "busy__job").await;
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } } });
    for (path, tool) in [("/mcp", "busy__job"), ("/mcp/busy", "job")] {
        let job = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let begun = alice.modern(path, "tools/call", job).await.last().await;
        let task = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
        let agreed = async |caller: &Caller| {
            let listen = json!({ "notifications": { "taskIds": [task] }, "_meta": meta });
            let mut stream = caller.modern(path, "subscriptions/listen", listen).await;
            stream.event().await.unwrap().data["params"]["notifications"].clone()
        };
        assert_eq!(agreed(&alice).await, json!({ "taskIds": [task] }), "{path}");
        assert_eq!(agreed(&bob).await, json!({}), "{path}: as if it never was");
    }
}

#[tokio::test]
async fn the_whole_of_a_result_that_was_cut_is_whose_it_is() {
    let issuer = Issuer::start().await;
    let config = format!("{}{SERVERS}", issuer.config())
        .replace("[servers.open]", "[servers.open]\nresult_limit = '4k'");
    let house = House::up("results", &config).await;
    let [alice, bob] = ["alice", "bob"].map(|name| house.with(&issuer.token(name, &[])));
    let call = json!({ "name": "big", "arguments": { "bytes": 50_000 } });
    let cut = alice.modern("/mcp/open", "tools/call", call).await.last().await;
    let words = cut["result"]["content"][1]["text"].as_str().unwrap_or_else(|| panic!("{cut}"));
    let uri = words.split_whitespace().find(|word| word.starts_with("linetender://results/")).unwrap();
    let never = format!("linetender://results/{}", "0".repeat(32));
    for path in ["/mcp", "/mcp/open"] {
        let read = async |caller: &Caller, uri: &str| {
            caller.modern(path, "resources/read", json!({ "uri": uri })).await
        };
        let hers = read(&alice, uri).await.last().await;
        assert!(
            hers["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.len() >= 50_000),
            "{hers}"
        );
        let his = said(read(&bob, uri).await, uri).await;
        assert_eq!(his, said(read(&bob, &never).await, &never).await, "as if it had never been");
        let session = bob.agent(path).await;
        let asked = session.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(asked["error"]["code"], 7009, "{asked}");
    }
}

/// Waits until a tool is listed.
async fn seen(caller: &Caller, tool: &str) {
    linetender_badserver::agent::in_time(async {
        loop {
            let listed = caller.modern("/mcp", "tools/list", json!({})).await.last().await;
            if listed.to_string().contains(tool) {
                return;
            }
        }
    })
    .await;
}
