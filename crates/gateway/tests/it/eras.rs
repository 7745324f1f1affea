//! Both eras at one address, and who is let in.

use crate::kit::{House, names, text};
use http::Method;
use serde_json::json;

const BOTH: &str = r#"
[servers.old]
{bad}
args = ["--era", "legacy"]
[servers.new]
{bad}
args = ["--era", "modern"]
"#;

#[tokio::test]
async fn either_era_calls_either_server_at_either_address() {
    let house = House::up(BOTH).await;
    let agent = house.agent("/mcp").await;
    for server in ["old", "new"] {
        let tool = format!("{server}__echo");
        assert_eq!(text(&agent.call(&tool, json!({ "n": 1 })).await), r#"{"n":1}"#);
        let alone = house.agent(&format!("/mcp/{server}")).await;
        assert_eq!(text(&alone.call("echo", json!({ "n": 2 })).await), r#"{"n":2}"#);
        let params = json!({ "name": tool, "arguments": { "n": 3 } });
        let answer = house.modern("/mcp", "tools/call", params).await;
        assert!(!answer.is_stream(), "an answer that comes first is no stream");
        assert_eq!(text(&answer.json().await), r#"{"n":3}"#);
        let params = json!({ "name": "echo", "arguments": { "n": 4 } });
        let answer = house.modern(&format!("/mcp/{server}"), "tools/call", params).await.json().await;
        assert_eq!((text(&answer), &answer["result"]["resultType"]), (r#"{"n":4}"#, &json!("complete")));
    }
    let list = house.modern("/mcp", "tools/list", json!({})).await.json().await;
    assert_eq!((&list["result"]["ttlMs"], names(&list, "tools").len() > 20), (&json!(0), true));
    let hello = house.modern("/mcp", "server/discover", json!({})).await.json().await;
    assert_eq!(hello["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[tokio::test]
async fn a_modern_request_whose_headers_say_something_else_is_refused() {
    let house = House::open(BOTH).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "old__echo", "_meta": meta } });
    let right =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "old__echo")];
    for (at, wrong) in [(0, "2025-11-25"), (1, "tools/list"), (2, "new__echo")] {
        let mut headers = right;
        headers[at].1 = wrong;
        let answer = house.send(Method::POST, "/mcp", &headers, call.to_string()).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert_eq!(answer.json().await["error"]["code"], -32020, "{wrong}");
    }
    let mut other = call.clone();
    other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let headers = [("mcp-protocol-version", "2099-01-01"), right[1], right[2]];
    let answer = house.send(Method::POST, "/mcp", &headers, other.to_string()).await;
    let refused = answer.json().await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["supported"][0]),
        (&json!(-32022), &json!("2026-07-28"))
    );
    let gone = house.modern("/mcp", "ping", json!({})).await;
    assert_eq!((gone.status.as_u16(), gone.json().await["error"]["code"].clone()), (404, json!(-32601)));
}

#[tokio::test]
async fn a_session_that_is_not_known_is_told_apart_from_none() {
    let house = House::open(BOTH).await;
    let agent = house.agent("/mcp").await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    assert_eq!(house.send(Method::POST, "/mcp", &[], ping.clone()).await.status, 400);
    let made_up = [("mcp-session-id", "made-up")];
    assert_eq!(house.send(Method::POST, "/mcp", &made_up, ping.clone()).await.status, 404);
    let elsewhere = [("mcp-session-id", agent.session.as_str())];
    assert_eq!(
        house.send(Method::POST, "/mcp/old", &elsewhere, ping).await.status,
        404,
        "at its own address only"
    );
    assert_eq!(agent.ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(agent.delete().await, 200);
    assert_eq!(agent.request(1, "ping", json!({})).await.status, 404);
}

#[tokio::test]
async fn an_agent_is_greeted_in_the_version_that_it_asks_for() {
    let house = House::up(BOTH).await;
    for path in ["/mcp", "/mcp/old", "/mcp/new"] {
        for (asks, gets) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2025-03-26", "2025-03-26"),
            ("2024-11-05", "2024-11-05"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let params = json!({ "protocolVersion": asks, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
            let answer = house.send(Method::POST, path, &[], hello.to_string()).await.json().await;
            assert_eq!(answer["result"]["protocolVersion"], gets, "{path}: {answer}");
            assert!(answer["result"]["capabilities"]["tools"].is_object(), "{path}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_page_whose_name_was_bent_to_this_machine_gets_nothing() {
    let house = House::open(BOTH).await;
    for headers in [[("host", "evil.example.com")], [("origin", "http://evil.example.com")]] {
        let answer = house.send(Method::POST, "/mcp", &headers, "{}".into()).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        for path in ["/readyz", "/healthz"] {
            assert_eq!(
                house.send(Method::GET, path, &headers, String::new()).await.status,
                403,
                "{headers:?}"
            );
        }
    }
    let broken = house.send(Method::POST, "/mcp", &[], "{".into()).await;
    assert_eq!((broken.status.as_u16(), broken.json().await["error"]["code"].clone()), (400, json!(-32700)));
}

#[tokio::test]
async fn an_unknown_method_is_404_for_a_modern_agent_whoever_says_so() {
    let house = House::up(BOTH).await;
    // At the address of all servers we refuse it; at a server's own, the server does.
    for path in ["/mcp", "/mcp/new", "/mcp/old"] {
        let answer = house.modern(path, "no/such", json!({})).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.json().await["error"]["code"], -32601, "{path}");
    }
}

/// Speaks the modern era, and tells of no change. Its tools are the words of a file; each reading of them is a line of another.
#[cfg(unix)]
const STALE: &str = r#"
import json, os, sys
folder = sys.argv[1]
def say(id, **result):
    good = {"resultType": "complete", "ttlMs": 200, "cacheScope": "public"}
    os.write(1, (json.dumps({"jsonrpc": "2.0", "id": id, "result": {**good, **result}}) + "\n").encode())
for line in sys.stdin:
    asked = json.loads(line)
    method, id = asked.get("method"), asked.get("id")
    if method == "server/discover":
        say(id, supportedVersions=["2026-07-28"], capabilities={"tools": {}}, _meta={"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        open(folder + "/readings", "a").write("read\n")
        names = open(folder + "/tools").read().split()
        say(id, tools=[{"name": name, "inputSchema": {"type": "object"}} for name in names])
    elif id is not None: say(id)
"#;

/// H36: nothing but the time that it gives says when its lists are to be read again.
#[cfg(unix)]
#[tokio::test]
async fn h36_the_lists_of_a_server_that_tells_of_no_change_are_read_again_when_their_time_is_over() {
    let folder = std::env::temp_dir().join(format!("linetender-stale-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name);
    std::fs::write(file("tools"), "one").unwrap();
    let args = serde_json::to_string(&["-c", STALE, folder.to_str().unwrap()]).unwrap();
    let house = House::up(&format!("[servers.s]\ncommand = \"python3\"\nargs = {args}\n")).await;
    let list = async || house.modern("/mcp", "tools/list", json!({})).await.json().await;
    let listed = async |wanted: &[&str]| loop {
        let list = list().await;
        if names(&list, "tools") == wanted {
            return list;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let seen = crate::kit::in_time(listed(&["s__one"])).await;
    assert_eq!((&seen["result"]["ttlMs"], &seen["result"]["cacheScope"]), (&json!(200), &json!("public")));
    std::fs::write(file("tools"), "one two").unwrap();
    crate::kit::in_time(listed(&["s__one", "s__two"])).await;
    // And not more often than it may: three at once, then one a second.
    let readings = || std::fs::read_to_string(file("readings")).unwrap().lines().count();
    let (before, start) = (readings(), std::time::Instant::now());
    for _ in 0..200 {
        list().await;
    }
    let more = readings() - before;
    let most = 4 + usize::try_from(start.elapsed().as_secs()).unwrap();
    assert!(more <= most, "{more} readings for 200 requests");
    let _ = std::fs::remove_dir_all(folder);
}
