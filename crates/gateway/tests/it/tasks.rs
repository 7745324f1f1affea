//! Tasks: of either era, of several servers at one address, of several agents on one server.

use serde_json::{Value, json};

use crate::kit::{House, in_time, text};
use linetender_badserver::agent::Agent;

const BUSY: &str = r#"
[servers.one]
{bad}
state = "none"
args = ["--era", "legacy", "--tasks"]
[servers.none]
{bad}
[servers.two]
{bad}
args = ["--era", "legacy", "--tasks"]
[servers.new]
{bad}
args = ["--era", "modern", "--tasks"]
"#;

const TASKS: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Begins a task; what it is called.
async fn begin(agent: &Agent<'_>, tool: &str, nonce: &str) -> String {
    let params = json!({ "name": tool, "arguments": { "nonce": nonce }, "task": { "ttl": 60_000 } });
    let begun = agent.ask("tools/call", params).await;
    let task = &begun["result"]["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(60_000)), "{begun}");
    task["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
}

/// All that a list has, and on how many pages.
async fn listed(agent: &Agent<'_>) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut params) = (Vec::new(), 0, json!({}));
    loop {
        let page = agent.ask("tasks/list", params).await;
        let tasks = page["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{page}"));
        all.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (all, pages),
        }
    }
}

async fn modern(house: &House, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { TASKS: {} } });
    house.modern("/mcp", method, params).await.last().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_several_servers_are_told_apart_where_all_are() {
    let house = House::up(BUSY).await;
    let agent = house.agent("/mcp").await;
    assert_eq!(listed(&agent).await, (Vec::new(), 1));
    // Both servers call it 1.
    let (one, two) = (begin(&agent, "one__job", "a").await, begin(&agent, "two__job", "b").await);
    assert!(one != two && one != "1" && two != "1", "{one} {two}");
    let get = async |task: &str| agent.ask("tasks/get", json!({ "taskId": task })).await["result"].clone();
    for task in [&one, &two] {
        assert_eq!(
            (&get(task).await["taskId"], &get(task).await["status"]),
            (&json!(task), &json!("working"))
        );
    }
    // A result is waited for; it is that of its own server.
    let result = agent.request(7, "tasks/result", json!({ "taskId": one }));
    let finish = agent.call("one__finish", json!({ "task": "1" }));
    let (result, finished) = tokio::join!(async { result.await.last().await }, finish);
    assert_eq!(text(&finished), "finished");
    assert_eq!(text(&result), "done: a");
    assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(one));
    assert_eq!(result["result"]["content"][1]["uri"], "linetender://one/note://done");
    assert_eq!(
        (&get(&one).await["status"], &get(&two).await["status"]),
        (&json!("completed"), &json!("working"))
    );
    let cancelled = agent.ask("tasks/cancel", json!({ "taskId": two })).await;
    assert_eq!(
        (&cancelled["result"]["taskId"], &cancelled["result"]["status"]),
        (&json!(two), &json!("cancelled"))
    );
    // A server has two on a page, and each server pages of its own.
    let mut all = vec![one.clone(), two.clone()];
    for nonce in ["c", "d"] {
        all.push(begin(&agent, "two__job", nonce).await);
    }
    let (mut seen, pages) = listed(&agent).await;
    seen.sort();
    all.sort();
    assert_eq!((seen, pages), (all, 3));
    for bad in [json!("x"), json!("99"), json!("99:2"), json!(7)] {
        let answer = agent.ask("tasks/list", json!({ "cursor": bad })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_its_agents_and_for_others_it_never_was() {
    let house = House::up(BUSY).await;
    for (path, tool) in [("/mcp", "one__job"), ("/mcp/one", "job")] {
        let (hers, his) = (house.agent(path).await, house.agent(path).await);
        let task = begin(&hers, tool, "a").await;
        let own = begin(&his, tool, "b").await;
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let foreign = his.ask(method, json!({ "taskId": task })).await;
            let never = his.ask(method, json!({ "taskId": "never" })).await;
            assert_eq!(foreign["error"], never["error"], "{path} {method}");
            assert_eq!(foreign["error"]["code"], -32602, "{path} {method}: {foreign}");
        }
        let foreign = modern_at(&house, path, "tasks/get", json!({ "taskId": task })).await;
        assert_eq!(foreign["error"]["code"], -32602, "{path}: {foreign}");
        let alike = hers.ask("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(alike["result"]["status"], "working", "it was not cancelled: {alike}");
        assert_eq!(listed(&hers).await.0, [task.as_str()], "{path}");
        assert_eq!(listed(&his).await.0, [own.as_str()], "{path}");
        // The id of another address, or the server's own, is none here.
        let other = house.agent("/mcp").await;
        let none = other.ask("tasks/get", json!({ "taskId": "1" })).await;
        assert_eq!(none["error"]["code"], -32602, "{none}");
        assert_eq!(hers.delete().await, 200);
        let gone = his.ask("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(gone["error"]["code"], -32602);
    }
}

async fn modern_at(house: &House, path: &str, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "extensions": { TASKS: {} } });
    house.modern(path, method, params).await.last().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_a_task_is_told_to_its_agent_alone() {
    let house = House::up(BUSY).await;
    for (path, tool, finish) in [("/mcp", "two__job", "two__finish"), ("/mcp/one", "job", "finish")] {
        let (hers, his) = (house.agent(path).await, house.agent(path).await);
        let tasks = [begin(&hers, tool, "a").await, begin(&his, tool, "b").await];
        let (mut to_her, mut to_him) = (hers.stream(None).await, his.stream(None).await);
        // Somebody else ends both: what is told has nothing to do with who asked.
        let other = house.agent(path).await;
        for number in ["1", "2"] {
            assert_eq!(text(&other.call(finish, json!({ "task": number })).await), "finished");
        }
        for (stream, own) in [(&mut to_her, &tasks[0]), (&mut to_him, &tasks[1])] {
            let told = in_time(async {
                loop {
                    let event = stream.event().await.expect("an open stream").data;
                    if event["method"] == "notifications/tasks/status" {
                        return event["params"].clone();
                    }
                }
            })
            .await;
            assert_eq!((&told["taskId"], &told["status"]), (&json!(own), &json!("completed")), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_server_begins_a_task_for_whoever_declares_that_it_can() {
    let house = House::up(BUSY).await;
    let call = json!({ "name": "new__job", "arguments": { "nonce": "a", "ttl": 60_000 } });
    let begun = modern(&house, "tools/call", call.clone()).await;
    assert_eq!((&begun["result"]["resultType"], &begun["result"]["ttlMs"]), (&json!("task"), &json!(60_000)));
    let task = begun["result"]["taskId"].as_str().unwrap().to_owned();
    assert_ne!(task, "1");
    let about = json!({ "taskId": task });
    let get = async || {
        let got = modern(&house, "tasks/get", about.clone()).await;
        got.get("result").unwrap_or_else(|| panic!("{got}")).clone()
    };
    assert_eq!((&get().await["taskId"], &get().await["status"]), (&json!(task), &json!("working")));
    let updated =
        modern(&house, "tasks/update", json!({ "taskId": task, "inputResponses": { "x": 1 } })).await;
    assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    modern(&house, "tools/call", json!({ "name": "new__finish", "arguments": { "task": "1" } })).await;
    let done = get().await;
    assert_eq!(done["result"]["content"][0]["text"], r#"done: {"x":1}"#, "{done}");
    assert_eq!(done["result"]["content"][1]["uri"], "linetender://new/note://done");
    assert_eq!(modern(&house, "tasks/cancel", about.clone()).await["result"]["resultType"], "complete");
    assert_eq!(get().await["status"], "cancelled");
    // Whoever is between goes by the header.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { TASKS: {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "taskId": task, "_meta": meta } });
    for (name, status) in [(task.as_str(), 200), ("another", 400)] {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tasks/get"),
            ("mcp-name", name),
        ];
        assert_eq!(house.send(http::Method::POST, "/mcp", &headers, body.to_string()).await.status, status);
    }
    // Nor is anything told of a task to whoever does not declare it, be it its own.
    for task in [task.as_str(), "never"] {
        let refused = house.modern("/mcp", "tasks/get", json!({ "taskId": task })).await;
        assert_eq!(refused.status, 400);
        let error = refused.last().await["error"].clone();
        assert_eq!(error["code"], -32021, "{error}");
        assert_eq!(error["data"]["requiredCapabilities"], json!({ "extensions": { TASKS: {} } }));
    }
    // There are no lists in this era, and nobody who does not declare it gets a task.
    assert_eq!(modern(&house, "tasks/list", json!({})).await["error"]["code"], -32601);
    let plain = house.modern("/mcp", "tools/call", call).await.last().await;
    assert_eq!(plain["result"]["resultType"], "complete", "{plain}");
    for foreign in [json!({ "taskId": "1" }), json!({ "taskId": "never" }), json!({})] {
        assert_eq!(modern(&house, "tasks/get", foreign).await["error"]["code"], -32602);
    }
    // A legacy agent of the same principal is somebody else.
    let agent = house.agent("/mcp").await;
    assert_eq!(agent.ask("tasks/get", about).await["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_tells_of_the_tasks_that_it_names() {
    let house = House::up(BUSY).await;
    let legacy = begin(&house.agent("/mcp").await, "one__job", "a").await;
    let capable = json!({ "io.modelcontextprotocol/clientCapabilities": { "extensions": { TASKS: {} } } });
    for (path, prefix) in [("/mcp", "new__"), ("/mcp/new", "")] {
        let call = |tool: &str, arguments: Value| json!({ "name": format!("{prefix}{tool}"), "arguments": arguments });
        let mut ids = Vec::new();
        for nonce in ["a", "b"] {
            let begun = modern_at(&house, path, "tools/call", call("job", json!({ "nonce": nonce }))).await;
            ids.push(begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned());
        }
        // What is not its own is not acknowledged, nor what never was.
        let named = json!([ids[0], legacy, "never", ids[0]]);
        let mut listen = json!({ "notifications": { "toolsListChanged": true, "taskIds": named } });
        let refused = house.modern(path, "subscriptions/listen", listen.clone()).await;
        assert_eq!(refused.status, 400, "{path}: it has not declared that it knows tasks");
        let refused = refused.json().await;
        assert_eq!(refused["error"]["code"], -32021, "{path}: {refused}");
        assert!(
            refused["error"]["data"]["requiredCapabilities"]["extensions"][TASKS].is_object(),
            "{refused}"
        );
        listen["_meta"] = capable.clone();
        let mut stream = house.modern(path, "subscriptions/listen", listen).await;
        let first = stream.event().await.unwrap().data;
        let agreed = json!({ "toolsListChanged": true, "taskIds": [ids[0]] });
        assert_eq!(first["params"]["notifications"], agreed, "{path}: {first}");
        // The server may be told of the stream after this, and tells each time: the other task first, which nobody asked for.
        let numbers = if prefix.is_empty() { ["4", "3"] } else { ["2", "1"] };
        let told = in_time(async {
            loop {
                for number in numbers {
                    let finish = call("finish", json!({ "task": number }));
                    assert_eq!(text(&modern_at(&house, path, "tools/call", finish).await), "finished");
                }
                let event = tokio::time::timeout(std::time::Duration::from_millis(100), stream.event()).await;
                if let Ok(event) = event {
                    return event.expect("an open stream").data;
                }
            }
        })
        .await;
        assert_eq!(told["method"], "notifications/tasks", "{path}: {told}");
        let state = &told["params"];
        assert_eq!((&state["taskId"], &state["status"]), (&json!(ids[0]), &json!("completed")), "{told}");
        assert_eq!(state["_meta"]["io.modelcontextprotocol/subscriptionId"], "m", "{told}");
        let link = if prefix.is_empty() { "note://done" } else { "linetender://new/note://done" };
        assert_eq!(state["result"]["content"][1]["uri"], link, "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_declared_to_whoever_can_use_them() {
    let house = House::up(BUSY).await;
    let initialized =
        async |house: &House, path: &str| house.agent(path).await.hello["result"]["capabilities"].clone();
    let discovered = async |house: &House, path: &str| {
        let told = house.modern(path, "server/discover", json!({})).await.last().await;
        told["result"]["capabilities"].clone()
    };
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    for path in ["/mcp", "/mcp/one"] {
        let told = initialized(&house, path).await;
        assert_eq!(told["tasks"], tasks, "{path}");
        assert!(told["extensions"].get(TASKS).is_none(), "{path}: {told}");
    }
    assert_eq!(discovered(&house, "/mcp").await["extensions"], json!({ TASKS: {} }));
    assert_eq!(discovered(&house, "/mcp/new").await["extensions"], json!({ TASKS: {} }));
    // Each era begins tasks in its own way.
    assert!(initialized(&house, "/mcp/new").await.to_string().find("tasks").is_none());
    assert!(discovered(&house, "/mcp/one").await.to_string().find("tasks").is_none());
    for hidden in ["modern", "legacy"] {
        let text = format!(
            "[servers.it]\n{{bad}}\nargs = ['--era', '{hidden}', '--tasks']\ntools.exclude = ['echo']"
        );
        let one = House::up(&text).await;
        for path in ["/mcp", "/mcp/it"] {
            let legacy = initialized(&one, path).await.to_string().contains("tasks");
            let modern = discovered(&one, path).await.to_string().contains("tasks");
            assert_eq!((legacy, modern), (hidden == "legacy", hidden == "modern"), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_died_with_its_server_is_said_to_be_lost() {
    for (path, prefix) in [("/mcp", "one__"), ("/mcp/one", "")] {
        let house = House::up(BUSY).await;
        let agent = house.agent(path).await;
        let task = begin(&agent, &format!("{prefix}job"), "a").await;
        agent.call(&format!("{prefix}kill"), json!({})).await;
        let line = house.gateway.lines().into_iter().find(|line| line.name() == "one").unwrap();
        in_time(async {
            while line.status().generation < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let lost = agent.ask(method, json!({ "taskId": task })).await;
            let error = &lost["error"];
            assert_eq!(
                (&error["code"], &error["data"]["delivery"]),
                (&json!(-32602), &json!("unknown")),
                "{lost}"
            );
            let said = error["message"].as_str().unwrap();
            assert!(said.contains("one: the server was restarted after this task began"), "{said}");
            assert!(said.contains("Task not found"), "what the server says is there too: {said}");
        }
        // Its new process counts from the beginning: what had the first id does not become another's, nor another task.
        let other = house.agent(path).await;
        let foreign = begin(&other, &format!("{prefix}job"), "b").await;
        let gone = agent.ask("tasks/get", json!({ "taskId": task })).await;
        assert_eq!(gone["error"]["message"], "linetender: no task with this taskId", "{path}: {gone}");
        let own = begin(&agent, &format!("{prefix}job"), "c").await;
        assert_eq!(listed(&agent).await.0, [own.as_str()]);
        assert_eq!(listed(&other).await.0, [foreign.as_str()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_costs_the_tasks_of_others_nothing() {
    let house = House::up(BUSY).await;
    let agent = house.agent("/mcp").await;
    begin(&agent, "one__job", "a").await;
    let two = begin(&agent, "two__job", "b").await;
    let line = house.gateway.lines().into_iter().find(|line| line.name() == "one").unwrap();
    line.park().await;
    let page = agent.ask("tasks/list", json!({})).await;
    assert_eq!(page["result"]["tasks"], json!([]), "{page}");
    let why = &page["result"]["_meta"]["linetender"];
    assert_eq!(why["server"], "one", "{page}");
    assert!(why["error"]["message"].as_str().is_some_and(|said| said.contains("one")), "{page}");
    assert_eq!(listed(&agent).await.0, [two.as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_with_a_process_each_have_tasks_of_the_same_name() {
    let house =
        House::up("[servers.it]\n{bad}\nargs = ['--era', 'legacy', '--tasks']\nscope = 'session'").await;
    let (hers, his) = (house.agent("/mcp").await, house.agent("/mcp").await);
    let (one, two) = (begin(&hers, "it__job", "hers").await, begin(&his, "it__job", "his").await);
    hers.call("it__finish", json!({ "task": "1" })).await;
    let state = async |agent: &Agent<'_>, task: &str| {
        agent.ask("tasks/get", json!({ "taskId": task })).await["result"]["status"].clone()
    };
    assert_eq!((state(&hers, &one).await, state(&his, &two).await), (json!("completed"), json!("working")));
    assert_eq!(hers.ask("tasks/get", json!({ "taskId": two })).await["error"]["code"], -32602);
    // Its own process is restarted, and it alone is told that its task is lost.
    his.call("it__kill", json!({})).await;
    let lost = his.ask("tasks/get", json!({ "taskId": two })).await;
    assert!(lost["error"]["message"].as_str().is_some_and(|said| said.contains("restarted after")), "{lost}");
    assert_eq!(state(&hers, &one).await, "completed");
}
