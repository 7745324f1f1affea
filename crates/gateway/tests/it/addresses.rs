//! A filter of resources holds for every spelling that a URL parser takes for the same address.

use crate::kit::{Agent, Answer, House, Overheard};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

/// Spellings, and what `new URL()` makes of them; the script beside it wrote it.
const SPELLINGS: &str = include_str!("../data/addresses.json");

const EXCLUDE: &str = "exclude = ['note://secret', 'file:///etc/*', 'https://intra.example/admin/*']";
const INCLUDE: &str = "include = ['file:///pub/*', 'file:///*.md', 'https://intra.example/pub/*', \
                       'https://docs.example*', 'https://alice@wiki.example/*', 'memo://public*', 'wiki://*.md']";

fn spellings(of: &str) -> Vec<String> {
    let all: Value = serde_json::from_str(SPELLINGS).unwrap();
    all[of].as_array().unwrap().iter().map(|one| one["uri"].as_str().unwrap().to_owned()).collect()
}

/// A request of the modern era about this address, which a header could not hold as it is.
async fn modern(house: &House, path: &str, method: &str, uri: &str, mut params: Value) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = format!("=?base64?{}?=", STANDARD.encode(uri));
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", &name)];
    let headers = if method == "resources/read" { &headers[..] } else { &headers[..2] };
    let body = json!({ "jsonrpc": "2.0", "id": "m", "method": method, "params": params });
    house.send(Method::POST, path, headers, body.to_string()).await
}

/// The ways by which an agent can have something of this address.
async fn ways(house: &House, agent: &Agent<'_>, path: &str, uri: &str) -> Vec<(&'static str, Value)> {
    let named = json!({ "uri": uri });
    let about =
        json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "a", "value": "" } });
    vec![
        ("read", agent.ask("resources/read", named.clone()).await),
        ("subscribe", agent.ask("resources/subscribe", named.clone()).await),
        ("complete", agent.ask("completion/complete", about.clone()).await),
        ("modern read", modern(house, path, "resources/read", uri, named).await.last().await),
        ("modern complete", modern(house, path, "completion/complete", uri, about).await.last().await),
    ]
}

/// Of these addresses, those that a modern agent may listen for.
async fn listened(house: &House, path: &str, uris: &[String]) -> Value {
    let wants = json!({ "notifications": { "resourceSubscriptions": uris } });
    let mut stream = modern(house, path, "subscriptions/listen", "", wants).await;
    stream.event().await.unwrap().data["params"]["notifications"]["resourceSubscriptions"].clone()
}

#[tokio::test]
async fn x14_no_spelling_of_an_address_passes_a_filter() {
    const ALONE: (&str, &str) = ("/mcp/a", "");
    const AMONG_ALL: (&str, &str) = ("/mcp", "linetender://a/");
    for (rule, of, (path, prefix)) in [
        (format!("resources = {{ {EXCLUDE} }}"), "hidden", ALONE),
        (format!("resources = {{ {INCLUDE} }}"), "outside", ALONE),
        (format!("access.'*' = {{ resources = {{ {EXCLUDE} }} }}"), "hidden", AMONG_ALL),
        (format!("access.'*' = {{ resources = {{ {INCLUDE} }} }}"), "outside", AMONG_ALL),
    ] {
        let server = Overheard::new(&rule);
        let house = House::open(&server.text).await;
        let agent = house.agent(path).await;
        let uris =
            |of: &str| -> Vec<_> { spellings(of).iter().map(|uri| format!("{prefix}{uri}")).collect() };
        let (hidden, fine) = (uris(of), uris("fine"));
        assert!(hidden.len() >= 60, "{}", hidden.len());
        let mut passed = Vec::new();
        for uri in &hidden {
            let ways = ways(&house, &agent, path, uri).await.into_iter();
            let past = ways.filter(|(_, answer)| answer["error"]["code"] != 7009);
            passed.extend(past.map(|(way, _)| format!("{way} {uri:?}")));
        }
        assert!(passed.is_empty(), "{path}, {rule}: {} passed: {passed:#?}", passed.len());
        let all: Vec<_> = hidden.into_iter().chain(fine.clone()).collect();
        assert_eq!(listened(&house, path, &all).await, json!(fine), "{path}, {rule}");
        let heard = server.heard();
        assert!(!heard.contains("resources/read"), "{path}, {rule}: {heard}");
        // What is not hidden is had by all ways, and the server reads it as it was spelt.
        for (uri, own) in fine.iter().zip(spellings("fine")) {
            for (way, answer) in ways(&house, &agent, path, uri).await {
                assert!(answer["result"].is_object(), "{rule}: {way} {uri}: {answer}");
            }
            assert!(server.heard().contains(&own), "{uri}");
        }
    }
}
