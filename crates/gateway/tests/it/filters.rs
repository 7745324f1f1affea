//! What a filter cannot judge is neither shown nor let through.

use crate::kit::{House, Overheard, config, in_time, is_answered, names, text};
use linetender_gateway::{Gateway, stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

#[tokio::test]
async fn a_method_that_nobody_knows_is_not_let_past_a_filter() {
    let asked = json!({ "name": "kill", "canary": 1 });
    for (filter, passes) in [
        ("", true),
        ("tools.describe = { echo = 'Says.' }", true),
        ("tools.exclude = ['kill']", false),
        ("prompts.exclude = ['x']", false),
        ("resources.include = ['note://*']", false),
        ("tools.rename = { kill = 'end' }", false),
        ("access.'*' = { tools.include = ['echo'] }", false),
    ] {
        let server = Overheard::new(filter);
        let house = House::open(&server.text).await;
        let agent = house.agent("/mcp/a").await;
        let legacy = agent.ask("vendor/run", asked.clone()).await;
        let modern = house.modern("/mcp/a", "vendor/run", asked.clone()).await.json().await;
        assert_eq!(server.heard().contains("canary"), passes, "{filter}: {legacy}");
        for answer in [&legacy, &modern] {
            let said = answer["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(said.contains("cannot be applied"), !passes, "{filter}: {answer}");
        }
        assert!(is_answered(&agent.call("echo", json!({})).await), "{filter}");
    }
}

#[tokio::test]
async fn a_call_that_wants_no_answer_is_not_let_past_a_filter() {
    let call = json!({ "jsonrpc": "2.0", "method": "tools/call", "params": { "name": "kill", "arguments": { "canary": 1 } } });
    for path in ["/mcp", "/mcp/a"] {
        for filtered in ["before", "after"] {
            let server = Overheard::new("scope = 'session'");
            let with = format!("{}tools.exclude = ['kill']\n", server.text);
            let house = House::open(if filtered == "before" { &with } else { &server.text }).await;
            let agent = house.agent(path).await;
            let echo = if path == "/mcp" { "a__echo" } else { "echo" };
            assert!(is_answered(&agent.call(echo, json!({})).await));
            house.gateway.apply(config(&with));
            assert_eq!(agent.post(&call).await.status, 202);
            let roots = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
            assert_eq!(agent.post(&roots).await.status, 202);
            // What is said later is heard later, so what was to be heard before was.
            assert!(is_answered(&agent.call(echo, json!({})).await));
            let heard = server.heard();
            assert!(!heard.contains("canary"), "{path}, {filtered}: {heard}");
            assert!(heard.contains("roots/list_changed"), "{path}, {filtered}: {heard}");
        }
    }
}

#[tokio::test]
async fn x19_a_request_without_an_id_reaches_no_server_even_if_nothing_is_hidden() {
    let unasked = |method: &str| json!({ "jsonrpc": "2.0", "method": method, "params": { "name": "echo", "arguments": { "canary": 1 } } });
    let roots = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for (path, echo) in [("/mcp", "a__echo"), ("/mcp/a", "echo")] {
        let server = Overheard::new("scope = 'session'");
        let house = House::open(&server.text).await;
        let agent = house.agent(path).await;
        assert!(is_answered(&agent.call(echo, json!({})).await));
        for method in ["tools/call", "resources/read", "vendor/run"] {
            assert_eq!(agent.post(&unasked(method)).await.status, 202, "{method}");
            assert_eq!(agent.post(&json!([unasked(method), unasked(method)])).await.status, 202, "{method}");
            let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
            let answers = agent.post(&json!([unasked(method), ping])).await.all().await;
            assert!(answers.iter().any(|answer| answer.to_string().contains("\"id\":5")), "{answers:?}");
        }
        assert_eq!(agent.post(&json!([unasked("tools/call"), roots])).await.status, 202);
        // What is said later is heard later, so what was to be heard before was.
        assert!(is_answered(&agent.call(echo, json!({})).await));
        let heard = server.heard();
        assert!(!heard.contains("canary"), "{path}: {heard}");
        assert!(heard.contains("roots/list_changed"), "{path}: {heard}");
    }
}

#[tokio::test]
async fn x19_nor_does_it_over_pipes() {
    let server = Overheard::new("scope = 'session'");
    let gateway = Gateway::start(config(&server.text));
    let (agent, ours) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(ours);
    let serves = stdio::serve(&gateway, input, output, std::future::pending());
    let (hears, mut says) = tokio::io::split(agent);
    let talks = async {
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let call = |id: &str| {
            let params = r#""params":{"name":"a__echo","arguments":{"canary":1}}"#;
            format!(r#"{{"jsonrpc":"2.0",{id}"method":"tools/call",{params}}}"#)
        };
        let echo = |id: u8| call(&format!(r#""id":{id},"#)).replace("canary", "echo");
        let mut hears = BufReader::new(hears).lines();
        let (unasked, roots) = (call(""), r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
        for (said, id) in [
            (hello.to_owned(), 1),
            (echo(2), 2),
            (format!("{unasked}\n[{unasked},{unasked}]\n{roots}\n{}", echo(3)), 3),
        ] {
            says.write_all(format!("{said}\n").as_bytes()).await.unwrap();
            while let Ok(Some(line)) = hears.next_line().await
                && serde_json::from_str::<Value>(&line).unwrap()["id"] != id
            {}
        }
        says.shutdown().await.unwrap();
    };
    in_time(async { tokio::join!(serves, talks) }).await;
    let heard = server.heard();
    assert!(!heard.contains("canary") && heard.contains("roots/list_changed"), "{heard}");
}

#[tokio::test]
async fn no_spelling_of_a_hidden_name_is_let_through() {
    let server = Overheard::new(
        "tools.exclude = ['kill']\nresources.exclude = ['note://secret']\nprompts.exclude = ['greet']",
    );
    let house = House::open(&server.text).await;
    let agent = house.agent("/mcp/a").await;
    for name in ["Kill", "kill\u{0}", "ki\u{200b}ll", " kill", "\u{ff4b}ill"] {
        let answer = agent.call(name, json!({ "canary": 1 })).await;
        assert!(text(&answer).contains("no tool named"), "{name:?}: {answer}");
    }
    for uri in ["NOTE://secret", "note://%73ecret", "note://secret#canary", "note://x/../secret"] {
        for method in ["resources/read", "resources/subscribe"] {
            let answer = agent.ask(method, json!({ "uri": uri })).await;
            assert_eq!(code(&answer), 7009, "{uri}: {answer}");
        }
        let about = json!({ "ref": { "type": "ref/resource", "uri": uri }, "argument": { "name": "canary", "value": "" } });
        assert_eq!(code(&agent.ask("completion/complete", about).await), 7009, "{uri}");
    }
    let about = json!({ "ref": { "type": "ref/prompt", "name": "Greet" }, "argument": { "name": "canary", "value": "" } });
    assert_eq!(code(&agent.ask("completion/complete", about).await), 7009);
    let half = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kill\ud800","arguments":{"canary":1}}}"#;
    assert_eq!(code(&agent.post_text(half.to_owned()).await.last().await), -32602);
    for twice in [
        r#""name":"echo","name":"kill""#,
        r#""name":"echo","Name":"kill""#,
        r#""name":"echo","n\u0061me":"kill""#,
    ] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{twice},"arguments":{{"canary":1}}}}}}"#
        );
        assert_eq!(agent.post_text(call).await.status, 400, "{twice}");
    }
    assert!(is_answered(&agent.call("echo", json!({})).await));
    assert!(!server.heard().contains("canary") && !server.heard().contains("ecret"), "{}", server.heard());
}

#[tokio::test]
async fn what_a_server_lists_without_a_name_that_can_be_read_is_not_shown() {
    let script = LISTS_ODDLY.replace('\\', r"\\").replace('"', r#"\""#);
    let server = format!("[servers.a]\ncommand = 'sh'\nargs = ['-c', \"\"\"{script}\"\"\"]\n");
    for filter in ["tools.exclude = ['kill']", "tools.include = ['fine']"] {
        let house = House::up(&format!("{server}{filter}")).await;
        for path in ["/mcp", "/mcp/a"] {
            let listed = house.agent(path).await.ask("tools/list", json!({})).await;
            let name = if path == "/mcp" { "a__fine" } else { "fine" };
            assert_eq!(names(&listed, "tools"), [name], "{filter}: {listed}");
            assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1, "{filter}: {listed}");
        }
    }
}

/// Lists tools that one reader takes for something else than another.
const LISTS_ODDLY: &str = r#"
tools='{"name":"fine","inputSchema":{"type":"object"}},{"inputSchema":{}},{"name":7},{"name":null},"kill",7,{"name":"fine2","Name":"kill"},'
tools="$tools"'{"name":"fine3","name":"kill"},{"name":"kill\ud800"},{"name":"kill\u0000"},{"name":"KILL"},{"n\u0061me":"kill"}'
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":['"$tools"']}' ;;
    *'"server/discover"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no"}}'; continue ;;
    *) result='{}' ;;
  esac
  [ -n "$id" ] && printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
done
"#;
