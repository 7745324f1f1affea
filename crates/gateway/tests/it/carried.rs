//! Calls over HTTP have an exchange of their own, which whoever waits for the answer carries: what becomes of it, and of the
//! connection that it was on.

use crate::kit::{House, in_time, text};
use linetender_badserver::webserver::{Answers, Config, Counters, Manners, Speaks, WebServer};
use serde_json::json;

fn web(speaks: Speaks, answers: Answers) -> WebServer {
    let manners = Manners { speaks, answers, ..Manners::default() };
    WebServer::start(Config { manners, ..Config::default() }).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_brought_an_answer_brings_the_next_one_too() {
    for answers in [Answers::Json, Answers::Sse] {
        let web = web(Speaks::Modern, answers);
        let house = House::up(&format!("[servers.it]\nurl = '{}'", web.url())).await;
        let call = async || {
            let answer =
                house.modern("/mcp/it", "tools/call", json!({ "name": "echo", "arguments": {} })).await;
            assert_eq!(text(&answer.last().await), "{}");
        };
        call().await;
        let closed = |now: &Counters| now.connections - now.open as u64;
        let before = web.counters();
        for _ in 0..20 {
            call().await;
        }
        let after = web.counters();
        assert_eq!(closed(&after), closed(&before), "{answers:?}: one was thrown away after its answer");
        // What is left of an exchange may still be read when the next one begins; of a stream, on a starved machine, also when
        // the one after that does.
        let most = match answers {
            Answers::Sse => 5,
            _ => 1,
        };
        let more = after.connections - before.connections;
        assert!(more <= most, "{answers:?}: {more} more");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_takes_its_exchange_with_it_and_no_other() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let web = web(speaks, Answers::Json);
        let house = House::up(&format!("[servers.it]\nurl = '{}'", web.url())).await;
        let sleeps = async || {
            let params = json!({ "name": "sleep", "arguments": { "ms": 400 } });
            house.modern("/mcp/it", "tools/call", params).await.last().await
        };
        let begun = web.counters().calls;
        let gives_up = async {
            let hangs = house.modern("/mcp/it", "tools/call", json!({ "name": "hang", "arguments": {} }));
            tokio::select! {
                _ = hangs => panic!("it never answers"),
                () = in_time(async { while web.counters().calls < begun + 2 { tokio::task::yield_now().await; } }) => {}
            }
        };
        let (slept, ()) = tokio::join!(sleeps(), gives_up);
        assert!(text(&slept).contains("400"), "{speaks:?}: {slept}");
        assert_eq!(house.gateway.lines()[0].status().generation, 1);
        // What is not used is closed after a while, and then nothing is left but the server's own stream.
        in_time(async {
            while web.counters().open > 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_comes_whole_under_the_id_it_was_asked_with() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let web = web(speaks, Answers::Json);
        let house = House::up(&format!("[servers.it]\nurl = '{}'", web.url())).await;
        for (path, name) in [("/mcp", "it__big"), ("/mcp/it", "big")] {
            let params = json!({ "name": name, "arguments": { "bytes": 300_000 } });
            let answer = house.modern(path, "tools/call", params).await;
            let length =
                answer.headers.get("content-length").map(|length| length.to_str().unwrap().to_owned());
            let body = answer.body().await.unwrap();
            assert_eq!(length, Some(body.len().to_string()), "{path}: whoever reads it knows how much comes");
            let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!("m"), &json!("complete")));
            assert_eq!(text(&answer).len(), 300_000, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_shows_for_itself_goes_no_further_than_the_gateway() {
    const SHOWN: [&str; 3] = ["agents-token-4711", "agents-cookie-4711", "agents-key-4711"];
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let web = web(speaks, Answers::Json);
        let house =
            House::up(&format!("[servers.it]\nurl = '{}'\nheaders = {{ X-Ours = 'ours' }}", web.url())).await;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "echo", "arguments": {}, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let bearer = format!("Bearer {}", SHOWN[0]);
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("authorization", &bearer),
            ("proxy-authorization", &bearer),
            ("cookie", SHOWN[1]),
            ("x-api-key", SHOWN[2]),
        ];
        let answer = house.send(http::Method::POST, "/mcp/it", &headers, body.to_string()).await;
        assert_eq!(text(&answer.last().await), "{}");
        let seen = web.seen();
        assert!(seen.iter().any(|one| one.method.as_deref() == Some("tools/call")), "{speaks:?}");
        for one in seen {
            assert_eq!(one.header("x-ours"), Some("ours"));
            let sent = format!("{:?}", one.headers);
            assert!(SHOWN.iter().all(|shown| !sent.contains(shown)), "{speaks:?}: {sent}");
            assert!(one.header("authorization").is_none(), "{speaks:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_that_a_tool_wants_in_headers_are_the_same_there() {
    let web = web(Speaks::Modern, Answers::Json);
    let house = House::up(&format!("[servers.it]\nurl = '{}'", web.url())).await;
    let ask = async |path: &str, tool: &str, arguments: &serde_json::Value, header: Option<&str>| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        headers.extend(header.map(|value| ("mcp-param-region", value)));
        let answer = house.send(http::Method::POST, path, &headers, body.to_string()).await;
        (answer.status.as_u16(), answer.last().await)
    };
    let (eu, none) = (json!({ "region": "eu" }), json!({}));
    for (path, tool) in [("/mcp", "it__routed"), ("/mcp/it", "routed")] {
        for (arguments, header) in [(&eu, Some("eu")), (&eu, Some("=?base64?ZXU=?=")), (&none, None)] {
            let (status, answer) = ask(path, tool, arguments, header).await;
            assert_eq!(status, 200, "{path} {arguments} {header:?}: {answer}");
            assert!(answer.get("error").is_none(), "{answer}");
        }
        let before = web.counters().calls;
        for (arguments, header) in [
            (&eu, None),
            (&eu, Some("us")),
            (&eu, Some("=?base64?ZXU?=")),
            (&eu, Some("=?base64?Z!U=?=")),
            (&none, Some("eu")),
        ] {
            let (status, answer) = ask(path, tool, arguments, header).await;
            assert_eq!(
                (status, &answer["error"]["code"]),
                (400, &json!(-32020)),
                "{path} {arguments} {header:?}"
            );
            assert!(answer["error"]["message"].as_str().unwrap().contains("mcp-param-region"), "{answer}");
        }
        assert_eq!(web.counters().calls, before, "none of them came to the server");
        // The legacy era has no such headers.
        let answer = house.agent(path).await.call(tool, eu.clone()).await;
        assert!(answer.get("error").is_none() && answer["result"]["isError"] != true, "{answer}");
    }
}
