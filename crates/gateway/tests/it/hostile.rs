//! Agents and servers that mean harm.

use http::{Method, StatusCode};
use linetender_badserver::Book;
use serde_json::{Value, json};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use linetender::Era;

use crate::kit::{House, in_time, is_answered};
use crate::peer::{Peer, Way};
use std::time::Duration;

/// A server of which one tool is hidden, at an address of its own and beside another.
fn filtered(book: &Book) -> String {
    let book = book.path().display();
    format!(
        "[servers.bad]\n{{bad}}\nargs = ['--full', '--book', '{book}']\ntools.exclude = ['write']\n\
         [servers.other]\n{{bad}}\nargs = ['--full']\n"
    )
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x03_a_filter_is_not_talked_past_by_names_that_other_readers_take_for_the_same() {
    let book = Book::at(std::env::temp_dir().join(format!("linetender-hostile-{}", std::process::id())));
    let house = House::up(&filtered(&book)).await;
    for (path, allowed) in [("/mcp", "bad__echo"), ("/mcp/bad", "echo")] {
        let agent = house.agent(path).await;
        for (number, second) in
            ["name", "Name", "NAME", r"n\u0061me", r"Nam\u0065", r"name\u0000"].into_iter().enumerate()
        {
            let nonce = format!("{path}{number}");
            for named in [
                format!(r#""name":"{allowed}","{second}":"write""#),
                format!(r#""{second}":"write","name":"{allowed}""#),
            ] {
                let params = format!(r#"{named},"arguments":{{"nonce":"{nonce}"}}"#);
                let legacy =
                    format!(r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{{params}}}}}"#);
                let answer = agent.post_text(legacy).await;
                assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{params}");
                let error = answer.json().await;
                assert_eq!(error["id"], 9, "{error}");
                assert!(error["error"]["message"].as_str().unwrap().contains("ambiguous"), "{error}");
                let modern = format!(
                    r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{{params},{META}}}}}"#
                );
                let headers = [
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", allowed),
                ];
                let answer = house.send(Method::POST, path, &headers, modern).await;
                assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{params}");
            }
        }
        // What a tool is given is nobody's business.
        let nonce = format!("{path}-fine");
        let call = agent.call(allowed, json!({ "nonce": nonce, "Name": "write", "NAME": 1 })).await;
        assert!(is_answered(&call), "{call}");
    }
    let runs = book.runs();
    let _ = std::fs::remove_file(book.path());
    assert_eq!(runs.keys().filter(|nonce| !nonce.ends_with("-fine")).count(), 0, "{runs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x03_an_answer_is_read_alike_by_every_reader() {
    let house = House::up("[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\n").await;
    for (path, tool) in [("/mcp", "bad__spoof"), ("/mcp/bad", "spoof")] {
        let body =
            house.agent(path).await.request(5, "tools/call", json!({ "name": tool })).await.body().await;
        let body = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert_eq!(body, r#"{"jsonrpc":"2.0","id":5,"result":{"content":[]},"extra":1.50}"#);
        let modern = house.modern(path, "tools/call", json!({ "name": tool })).await.body().await;
        let modern = String::from_utf8(modern.unwrap().to_vec()).unwrap();
        assert!(!modern.contains("77"), "{modern}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x03_a_doubled_token_does_not_put_progress_into_somebody_elses_stream() {
    let house = House::up("[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\n").await;
    let agent = house.agent("/mcp/bad").await;
    for tokens in [r#""progressToken":1,"progressToken":"x""#, r#""progressToken":"x","ProgressToken":1"#] {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"progress","_meta":{{{tokens}}}}}}}"#
        );
        assert_eq!(agent.post_text(call).await.status, StatusCode::BAD_REQUEST, "{tokens}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x06_an_id_that_looks_like_ours_is_an_id_like_any_other() {
    let house = House::up("[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\n").await;
    for (path, tool) in [("/mcp", "bad__echo"), ("/mcp/bad", "echo")] {
        let agent = house.agent(path).await;
        for id in ["linetender:x", "linetender:1", "linetender:2"] {
            let call =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } });
            let answer = in_time(agent.post(&call)).await.last().await;
            assert_eq!((&answer["id"], is_answered(&answer)), (&json!(id), true), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_in_use_is_refused_and_the_first_request_is_answered() {
    let house = House::up("[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\n").await;
    for (path, tool) in [("/mcp", "bad__sleep"), ("/mcp/bad", "sleep")] {
        let agent = house.agent(path).await;
        let params = |ms: u64, say: &str| json!({ "name": tool, "arguments": { "ms": ms, "say": say } });
        let mut first = agent.request(3, "tools/call", params(900, "first")).await;
        first.event().await.expect("it has begun");
        let second = agent.request(3, "tools/call", params(0, "second")).await;
        assert_eq!(second.status, StatusCode::BAD_REQUEST);
        assert_eq!(second.json().await["id"], 3);
        let ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" });
        let twice = agent.post(&Value::Array(vec![ping.clone(), ping])).await;
        assert_eq!(twice.status, StatusCode::BAD_REQUEST);
        let answer = first.last().await;
        assert!(answer.to_string().contains("first"), "{answer}");
        // It is free again.
        let third = agent.request(3, "tools/call", params(0, "third")).await.last().await;
        assert!(third.to_string().contains("third"), "{third}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o07_sessions_that_were_never_used_make_room_and_used_ones_stay() {
    let house = House::up("[gateway]\nsessions = 8\n[servers.bad]\n{bad}\nargs = ['--full']\n").await;
    let used = house.agent("/mcp").await;
    assert!(is_answered(&used.call("bad__echo", json!({})).await));
    let unused = house.agent("/mcp").await;
    // A crash-looping agent: far more sessions than there may be, and none is refused.
    for _ in 0..40 {
        house.agent("/mcp").await;
    }
    assert!(is_answered(&used.call("bad__echo", json!({})).await), "it was used, and stays");
    let evicted = unused.request(1, "ping", json!({})).await;
    assert_eq!(evicted.status, StatusCode::NOT_FOUND, "its agent begins anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o07_the_longest_idle_session_makes_room_and_one_with_a_stream_never_does() {
    let house = House::up("[gateway]\nsessions = 3\n[servers.bad]\n{bad}\nargs = ['--full']\n").await;
    let [reads, oldest, newer] =
        [house.agent("/mcp").await, house.agent("/mcp").await, house.agent("/mcp").await];
    let mut stream = reads.stream(None).await;
    stream.event().await.unwrap();
    for agent in [&oldest, &newer] {
        agent.ask("ping", json!({})).await;
    }
    let next = house.agent("/mcp").await;
    next.ask("ping", json!({})).await;
    assert_eq!(oldest.request(1, "ping", json!({})).await.status, StatusCode::NOT_FOUND);
    // With everything in use nobody is let in, and no time is promised.
    let mut streams = Vec::new();
    for agent in [&newer, &next] {
        let mut stream = agent.stream(None).await;
        stream.event().await.unwrap();
        streams.push(stream);
    }
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let refused = house.send(Method::POST, "/mcp", &[], hello.to_string()).await;
    assert_eq!((refused.status, refused.headers.get("retry-after")), (StatusCode::SERVICE_UNAVAILABLE, None));
    assert!(refused.json().await.to_string().contains("gateway.sessions"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x07_slow_calls_of_one_agent_leave_slots_for_another() {
    let text = "[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\npolicy = { limits = { in_flight = 8 } }\n";
    let house = House::up(text).await;
    let greedy = house.agent("/mcp/bad").await;
    let hang =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "hang" } });
    let mut hung = greedy.post(&(0..20).map(hang).collect()).await;
    hung.event().await.expect("it has begun");
    let victim = house.agent("/mcp/bad").await;
    assert!(is_answered(&in_time(victim.call("echo", json!({}))).await));
}

/// What a message may weigh, and all of them together.
const SMALL: &str = "[gateway]\nmemory = '22MiB'\nmessage = '4MiB'\n[servers.bad]\n{bad}\nargs = ['--full', '--era', 'legacy']\n";

/// The beginning of a body that never ends.
async fn unfinished(house: &House, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(house.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 4000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    // Whoever is cut meanwhile cannot write all of it.
    let _ = stream.write_all(&vec![b' '; bytes]).await;
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_unfinished_bodies_give_way_when_the_budget_is_used_up_and_others_are_served() {
    let house = House::up(SMALL).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(unfinished(&house, 1_000_000).await);
    }
    // At most eight of them fit: the others are told so, and why.
    let mut told = 0;
    for stream in &mut held {
        let mut answer = [0; 1024];
        if let Ok(Ok(read)) = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut answer)).await
        {
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("gateway.memory"), "{answer}");
            told += 1;
        }
    }
    assert!(told >= 4, "{told}");
    let agent = house.agent("/mcp").await;
    let call = agent.call("bad__echo", json!({ "large": "x".repeat(1_500_000) })).await;
    assert!(is_answered(&call), "a message that has all come is served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_long_headers_draw_on_the_budget_until_their_request_is_answered() {
    let house = House::up(SMALL).await;
    let long = "x".repeat(50_000);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\nX-Long: {long}\r\nContent-Length: 10\r\n\r\n"
    );
    let mut held = Vec::new();
    let refused = 'refused: {
        // Some hundred and seventy of them fit.
        for _ in 0..400 {
            let mut stream = TcpStream::connect(house.address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut answer = [0; 1024];
            let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut answer)).await;
            if let Ok(Ok(read)) = read {
                break 'refused String::from_utf8_lossy(&answer[..read]).into_owned();
            }
            held.push(stream);
        }
        panic!("{} long headers are kept", held.len());
    };
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("gateway.memory"), "{refused}");
    assert!(held.len() > 100, "{}", held.len());
    drop(held);
    let agent = house.agent("/mcp").await;
    assert!(is_answered(&agent.call("bad__echo", json!({})).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_answers_that_nobody_reads_give_way_to_those_that_are_read() {
    let house = House::up(&SMALL.replace("22MiB", "54MiB")).await;
    let big = json!({ "name": "big", "arguments": { "bytes": 8_000_000 } });
    let slow = house.narrow();
    let mut unread = Vec::new();
    for _ in 0..6 {
        unread.push(slow.modern("/mcp/bad", "tools/call", big.clone()).await);
    }
    let read = house.modern("/mcp/bad", "tools/call", big.clone()).await.last().await;
    assert_eq!(crate::kit::text(&read).len(), 8_000_000, "it came whole");
    let mut cut = 0;
    for answer in unread {
        cut += usize::from(answer.body().await.is_err());
    }
    assert!((2..6).contains(&cut), "{cut} of six are cut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_a_large_notification_to_many_sessions_locks_nobody_out() {
    let house = House::up(SMALL).await;
    let mut agents = Vec::new();
    for _ in 0..8 {
        let agent = house.agent("/mcp/bad").await;
        agent.ask("logging/setLevel", json!({ "level": "debug" })).await;
        agents.push(agent);
    }
    let says = house.agent("/mcp/bad").await;
    assert!(is_answered(&says.call("log", json!({ "level": "error", "bytes": 3_000_000 })).await));
    // All of them were told of it, one way or the other. Their streams are not over, and never will be.
    for agent in &agents {
        let mut stream = agent.stream(None).await;
        while stream.event().await.expect("what is said to it").data.is_null() {}
    }
    for bytes in [10, 2_000_000] {
        let call = json!({ "name": "echo", "arguments": { "large": "x".repeat(bytes) } });
        let answer = house.modern("/mcp/bad", "tools/call", call).await;
        assert_eq!(answer.status, StatusCode::OK, "{bytes}");
        assert!(is_answered(&answer.last().await), "{bytes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_answers_in_streams_that_are_not_over_lock_nobody_out() {
    let house = House::up(SMALL).await;
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": { "bytes": 3_000_000 } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    for _ in 0..6 {
        let agent = house.agent("/mcp/bad").await;
        let mut stream = agent.post(&json!([call(1, "hang"), call(2, "big")])).await;
        while stream.event().await.expect("an answer").data.is_null() {}
    }
    let call = json!({ "name": "echo", "arguments": { "large": "x".repeat(2_000_000) } });
    let answer = house.modern("/mcp/bad", "tools/call", call).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(is_answered(&answer.last().await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_a_stored_answer_has_one_reader() {
    let house = House::up(SMALL).await;
    let agent = house.agent("/mcp/bad").await;
    let call = |id: u64, tool: &str| {
        let params = json!({ "name": tool, "arguments": { "bytes": 1_000_000 } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let mut before = agent.post(&json!([call(1, "hang"), call(2, "big")])).await;
    let first = before.event().await.unwrap().id;
    assert_eq!(before.event().await.unwrap().data["id"], 2);
    for _ in 0..3 {
        let mut next = agent.stream(first.as_deref()).await;
        next.event().await.expect("where it is");
        assert!(before.event().await.is_none(), "somebody else reads it now");
        assert_eq!(next.event().await.unwrap().data["id"], 2, "all of it");
        before = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_a_call_draws_on_the_budget_until_it_is_over_though_its_response_has_begun() {
    let house = House::up(SMALL).await;
    let large = |tool: &str| json!({ "name": tool, "arguments": { "x": "x".repeat(3_000_000) } });
    for path in ["/mcp/bad", "/mcp"] {
        let name = |tool: &str| if path == "/mcp" { format!("bad__{tool}") } else { tool.to_owned() };
        let waits = house.modern(path, "tools/call", large(&name("hang"))).await;
        assert_eq!(waits.status, StatusCode::OK, "{path}: its response has begun");
        let next = house.modern(path, "tools/call", large(&name("echo"))).await;
        assert_eq!(next.status, StatusCode::SERVICE_UNAVAILABLE, "{path}: there is no room for another");
        // Hanging up takes the call back, and with it goes what it kept.
        drop(waits);
        let again = async {
            while house.modern(path, "tools/call", large(&name("echo"))).await.status != StatusCode::OK {}
        };
        in_time(again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_answers_that_servers_do_not_finish_draw_on_the_budget() {
    let (web, unfinished) = (Peer::start(Way::Http, Era::Modern), 2_000_000);
    let servers =
        [web.config("web", ""), "[servers.pipe]\n{bad}\n[servers.good]\n{bad}\n".to_owned()].concat();
    let house = House::up(&format!("[gateway]\nmemory = '22MiB'\nmessage = '4MiB'\n{servers}")).await;
    let call = |name: &str, bytes: u64| {
        let params = json!({ "name": name, "arguments": { "bytes": bytes } });
        let caller = *house;
        async move { caller.modern("/mcp", "tools/call", params).await.last().await }
    };
    let mut calls = tokio::task::JoinSet::new();
    for name in ["web__endless_body", "web__endless_event", "pipe__endless"].repeat(2) {
        calls.spawn(call(name, unfinished));
    }
    // The budget is less than all six.
    let told = in_time(calls.join_next()).await.unwrap().unwrap().to_string();
    assert!(
        told.contains("larger than the memory that is left for it") && told.contains("unknown"),
        "{told}"
    );
    let answer = in_time(call("good__big", 1_000_000)).await;
    assert_eq!(crate::kit::text(&answer).len(), 1_000_000, "others are served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_what_a_server_does_not_read_draws_on_the_budget_after_its_caller_hung_up() {
    let house = House::up(&format!("{SMALL}[servers.good]\n{{bad}}\n")).await;
    let large = |tool: &str, bytes| json!({ "name": tool, "arguments": { "x": "x".repeat(bytes) } });
    // It stops, so it reads nothing from then on, and all that is said to it stays with us.
    drop(house.modern("/mcp/bad", "tools/call", json!({ "name": "stop", "arguments": {} })).await);
    let waits = house.modern("/mcp/bad", "tools/call", large("write", 3_000_000)).await;
    assert_eq!(waits.status, StatusCode::OK, "its response has begun");
    drop(waits);
    let fits = house.modern("/mcp/good", "tools/call", large("echo", 1_000_000)).await.last().await;
    assert!(is_answered(&fits), "there is room for one more");
    let next = house.modern("/mcp/good", "tools/call", large("echo", 2_500_000)).await;
    assert_eq!(next.status, StatusCode::SERVICE_UNAVAILABLE, "but for none that is so large");
}
