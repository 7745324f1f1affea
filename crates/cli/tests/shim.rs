//! `linetender run` as an agent sees it: lines on two pipes.

#![allow(clippy::disallowed_methods, reason = "a test measures with a real clock")]

mod agent;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use agent::{Agent, LINETENDER};
use linetender_badserver::{Book, process};
use serde_json::{Value, json};

#[test]
fn an_agent_talks_to_its_server_as_if_nobody_stood_between() {
    let mut agent = Agent::up(&[]);
    let tools = agent.ask(&json!(1), "tools/list", &json!({}));
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 10);
    for id in [json!(2), json!("two"), json!(9_007_199_254_740_993_u64), json!("17"), json!(-5)] {
        let answer = agent.call(&id, "echo", &json!({ "n": 1 }));
        assert_eq!(answer["result"]["content"][0]["text"], r#"{"n":1}"#, "{id}");
    }
    assert_eq!(agent.ask(&json!("p"), "ping", &json!({}))["result"], json!({}));
    assert_eq!(
        agent.ask(&json!("u"), "no/such", &json!({}))["error"]["code"],
        -32601,
        "the server's own word"
    );
}

#[test]
fn a_server_that_dies_on_every_call_never_closes_the_agents_pipe() {
    let mut agent = Agent::up(&[]);
    let (mut died, mut parked) = (0, 0);
    for round in 0..10 {
        let answer = agent.call(&json!(round), "kill", &json!({}));
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("SIGKILL"), "{text}");
        // In the end the budget is spent: that is said too, and at once.
        if text.contains("the server is down") {
            assert_eq!(result["_meta"]["linetender"]["delivery"], "not executed");
            parked += 1;
        } else {
            assert!(text.contains("unknown whether the call was executed"), "{text}");
            assert_eq!(result["_meta"]["linetender"]["delivery"], "unknown");
            died += 1;
        }
    }
    assert_eq!((died, parked), (6, 4));
}

#[test]
fn a_server_that_dies_now_and_then_is_always_back() {
    let mut agent = Agent::up(&[]);
    for round in 0..20 {
        for call in 0..12 {
            let answer = agent.call(&json!(format!("{round}-{call}")), "echo", &json!({ "call": call }));
            assert!(answer["result"]["isError"].is_null(), "{answer}");
        }
        let answer = agent.call(&json!(round), "kill", &json!({}));
        assert_eq!(answer["result"]["_meta"]["linetender"]["delivery"], "unknown", "{answer}");
    }
}

#[test]
fn s59_calls_that_are_sent_at_once_arrive_in_order_around_a_death() {
    const ROUNDS: usize = 24;
    let book = std::env::temp_dir().join(format!("linetender-order-{}", std::process::id()));
    let book = Book::at(book);
    let words = ["--stateless", "--", LINETENDER, "__badserver", "--era", "legacy", "--book"];
    let mut words = words.to_vec();
    words.push(book.path().to_str().unwrap());
    let (mut sent, mut answered) = (Vec::new(), 0);
    let mut agent = Agent::run(LINETENDER, words.iter()).greeted();
    for round in 0..ROUNDS {
        // A server that has served callers may be restarted at once.
        for n in 0..12 {
            agent.call(&json!(format!("warm-{round}-{n}")), "echo", &json!({}));
        }
        let pid = agent.call(&json!(format!("pid-{round}")), "pid", &json!({}));
        let pid = pid["result"]["content"][0]["text"].as_str().unwrap().parse().unwrap();
        let stopped = round % 2 == 0;
        if stopped {
            process::stop(pid);
        } else {
            process::kill(pid);
        }
        let nonces: Vec<_> = (0..3).map(|n| format!("agent-{round}-{n}")).collect();
        for nonce in &nonces {
            agent.send(
                &json!(nonce),
                "tools/call",
                &json!({ "name": "echo", "arguments": { "nonce": nonce } }),
            );
        }
        if stopped {
            // When this is answered, the calls lie in the pipe of the server.
            agent.send(&json!(format!("ping-{round}")), "ping", &json!({}));
            while agent.hear()["id"] != format!("ping-{round}") {}
            process::kill(pid);
        }
        let mut waiting = nonces.len();
        while waiting > 0 {
            let answer = agent.hear();
            if nonces.iter().any(|nonce| answer["id"] == **nonce) {
                answered += usize::from(answer["result"]["isError"].is_null());
                waiting -= 1;
            }
        }
        sent.extend(nonces);
    }
    let arrivals: Vec<_> = book.arrivals().into_iter().filter(|nonce| nonce.starts_with("agent-")).collect();
    let _ = std::fs::remove_file(book.path());
    // On a starved machine a call may also end as unknown, and then it need not have arrived.
    sent.retain(|nonce| arrivals.contains(nonce));
    assert_eq!(arrivals, sent);
    assert!(answered <= sent.len() && answered > ROUNDS * 2, "{answered} of {}", ROUNDS * 3);
}

#[test]
fn everything_but_a_tool_call_fails_with_a_code_of_our_own() {
    let mut agent = Agent::up(&[]);
    for _ in 0..8 {
        agent.call(&json!("k"), "kill", &json!({}));
    }
    let answer = agent.ask(&json!(1), "prompts/list", &json!({}));
    let code = answer["error"]["code"].as_i64().unwrap();
    assert!(!(-32768..=-32000).contains(&code), "{answer}");
    assert_eq!(answer["error"]["data"]["source"], "linetender");
}

#[test]
fn a_tool_call_fails_in_the_form_that_the_user_chose() {
    let server = ["--", LINETENDER, "__badserver", "--era", "legacy"];
    for form in ["result", "error"] {
        let words = ["--tool-errors", form];
        let mut agent = Agent::run(LINETENDER, words.iter().chain(&server)).greeted();
        let answer = agent.call(&json!(1), "kill", &json!({}));
        let (text, fields) = match form {
            "result" => (&answer["result"]["content"][0]["text"], &answer["result"]["_meta"]["linetender"]),
            _ => (&answer["error"]["message"], &answer["error"]["data"]),
        };
        let text = text.as_str().unwrap_or_else(|| panic!("{form}: {answer}"));
        assert!(text.contains("unknown whether the call was executed"), "{text}");
        assert_eq!(fields["delivery"], "unknown", "{answer}");
        // What the server itself says of a tool is its own word, in its own form.
        assert_eq!(agent.call(&json!(2), "tool_error", &json!({}))["result"]["isError"], true);
    }
}

#[test]
fn a_cancelled_call_gets_no_answer_and_harms_nobody() {
    let mut agent = Agent::up(&[]);
    agent.send(&json!("slow"), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 200 } }));
    agent.say(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "slow" } }),
    );
    let answer = agent.call(&json!("after"), "sleep", &json!({ "ms": 400 }));
    assert!(answer["result"]["isError"].is_null(), "{answer}");
}

#[test]
fn a_batch_is_answered_as_a_batch() {
    let mut agent = Agent::up(&[]);
    let call = |id: &str, tool: &str| {
        let meta = json!({ "progressToken": id });
        let params = json!({ "name": tool, "arguments": { "times": 1, "ms": 200 }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let ping = json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" });
    let unknown = json!({ "jsonrpc": "2.0", "id": "unknown", "method": "no/such" });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "gone" } });
    agent.say(&json!([ping, call("slow", "progress"), call("gone", "hang"), unknown, 7, cancel]));
    let progress = agent.hear();
    assert_eq!(progress["params"]["progressToken"], "slow", "at once, and alone: {progress}");
    let heard = agent.hear();
    let answers = heard.as_array().unwrap_or_else(|| panic!("{heard}"));
    let of = |id: &str| answers.iter().find(|answer| answer["id"] == id);
    assert_eq!(answers.len(), 4, "{heard}");
    assert_eq!(of("ping").unwrap()["result"], json!({}));
    assert!(of("slow").unwrap()["result"]["content"].is_array(), "{heard}");
    assert_eq!(of("unknown").unwrap()["error"]["code"], -32601, "{heard}");
    let refused = answers.iter().find(|answer| answer["id"].is_null()).unwrap();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    // What linetender answers in the server's place counts as well.
    agent.say(&json!([call("dies", "kill"), ping]));
    let heard = agent.hear();
    assert!(heard.as_array().is_some_and(|all| all.len() == 2), "{heard}");
    assert!(heard.to_string().contains("unknown whether the call was executed"), "{heard}");
    // Without a request there is no answer, and without anything one error.
    agent.say(&json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]));
    agent.say(&json!([]));
    let empty = agent.hear();
    assert_eq!((&empty["id"], &empty["error"]["code"]), (&Value::Null, &json!(-32600)), "{empty}");
    agent.say(&json!([ping]));
    assert_eq!(agent.hear(), json!([{ "jsonrpc": "2.0", "id": "ping", "result": {} }]), "a batch of one");
}

#[test]
fn a_batch_of_an_agent_that_stops_asking_is_answered_whole() {
    let mut agent = Agent::up(&[]);
    let sleep = |id: u32, ms: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "sleep", "arguments": { "ms": ms } } });
    agent.say(&json!([sleep(1, 1), sleep(2, 300), sleep(3, 60_000)]));
    agent.to = None;
    let heard = agent.hear();
    let mut ids: Vec<_> =
        heard.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3], "{heard}");
    assert!(heard.to_string().contains("no response arrived within 5 s"), "{heard}");
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn a_modern_agent_hears_of_the_tasks_that_its_stream_names() {
    let words = ["--", LINETENDER, "__badserver", "--era", "modern", "--tasks"];
    let mut agent = Agent::run(LINETENDER, words.iter());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let call = |tool: &str, arguments: Value| json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let begun = agent.ask(&json!("job"), "tools/call", &call("job", json!({})));
    assert_eq!(begun["result"]["taskId"], "1", "{begun}");
    let listen = json!({ "notifications": { "taskIds": ["1"] }, "_meta": meta });
    agent.send(&json!("listen"), "subscriptions/listen", &listen);
    let agreed = agent.hear();
    assert_eq!(agreed["params"]["notifications"], json!({ "taskIds": ["1"] }), "{agreed}");
    // The server may be asked to tell of it after the first of these.
    let mut heard = Value::Null;
    for round in 0..1000 {
        agent.send(&json!(round), "tools/call", &call("finish", json!({ "task": "1" })));
        while heard["method"] != "notifications/tasks" && heard["id"] != round {
            heard = agent.hear();
        }
        if heard["method"] == "notifications/tasks" {
            break;
        }
    }
    let told = &heard["params"];
    assert_eq!((&told["taskId"], &told["status"]), (&json!("1"), &json!("completed")), "{heard}");
    assert_eq!(told["_meta"]["io.modelcontextprotocol/subscriptionId"], "listen", "{heard}");
}

#[test]
fn a_server_that_cannot_start_says_so_to_the_agents_initialize() {
    let mut agent = Agent::start(&["--exit", "4", "--stderr", "no API key"]);
    let answer = agent.ask(&json!(1), "initialize", &json!({ "protocolVersion": "2025-06-18" }));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("exited with status 4") && message.contains("no API key"), "{message}");
}

#[test]
fn s58_a_server_whose_login_is_refused_logs_in_once_however_often_the_agent_asks() {
    let book = std::env::temp_dir().join(format!("linetender-login-{}", std::process::id()));
    let flags = ["--exit", "1", "--stderr", "401 Unauthorized", "--book", book.to_str().unwrap()];
    let mut agent = Agent::start(&flags);
    for id in 0..5 {
        let answer = agent.ask(&json!(id), "initialize", &json!({ "protocolVersion": "2025-06-18" }));
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("its login was refused") && message.contains("401"), "{message}");
    }
    let logins = linetender_badserver::Book::at(&book).writers().len();
    std::fs::remove_file(&book).unwrap();
    assert_eq!(logins, 1, "each start is a login");
}

#[test]
fn an_agent_that_stops_asking_still_gets_its_answers() {
    let mut agent = Agent::up(&[]);
    agent.send(&json!(1), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 300 } }));
    agent.to = None;
    assert_eq!(agent.hear()["id"], 1);
    assert!(agent.shim.wait().unwrap().success());
}

#[test]
fn a_question_of_the_servers_reaches_the_agent_and_its_answer_the_server() {
    let mut agent = Agent::up(&[]);
    agent.send(&json!("q"), "tools/call", &json!({ "name": "question", "arguments": {} }));
    let question = agent.hear();
    assert_eq!(question["method"], "roots/list");
    assert_ne!(question["id"], "roots", "two generations may use the same id");
    agent.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": ["here"] } }));
    let answer = agent.hear();
    assert_eq!(answer["id"], "q");
    let told: Value = serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(told, json!({ "jsonrpc": "2.0", "id": "roots", "result": { "roots": ["here"] } }));
}

#[test]
fn a_question_taken_back_is_taken_back_under_its_own_number() {
    let mut agent = Agent::up(&[]);
    agent.send(&json!("q"), "tools/call", &json!({ "name": "question_withdrawn", "arguments": {} }));
    let heard = [agent.hear(), agent.hear(), agent.hear()];
    let of = |method: &str| heard.iter().find(|message| message["method"] == method).unwrap();
    assert_eq!(of("notifications/cancelled")["params"]["requestId"], of("roots/list")["id"]);
    assert!(heard.iter().any(|message| message["id"] == "q"));
}

#[test]
fn progress_comes_under_the_agents_own_token_and_stops_with_the_call() {
    let mut agent = Agent::up(&[]);
    let params = json!({ "name": "progress", "arguments": { "times": 3, "ms": 1 }, "_meta": { "progressToken": "t" } });
    agent.send(&json!(1), "tools/call", &params);
    for step in 1..=3 {
        let heard = agent.hear();
        assert_eq!(heard["params"], json!({ "progressToken": "t", "progress": step, "message": "on it" }));
    }
    assert_eq!(agent.hear()["id"], 1);
    // The server reports once more after its answer: the next thing heard is another answer all the same.
    agent.send(&json!(2), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 100 } }));
    assert_eq!(agent.hear()["id"], 2);
}

#[test]
fn told_to_stop_it_passes_the_signal_on() {
    let book = std::env::temp_dir().join(format!("linetender-stop-{}", std::process::id()));
    let server = format!(
        "trap 'echo heard it >{}; exit' TERM; '{LINETENDER}' __badserver --era legacy",
        book.display()
    );
    let mut agent = Agent::run(LINETENDER, ["--", "sh", "-c", &server].iter()).greeted();
    let pid = agent.shim.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(agent.shim.wait().unwrap().code(), Some(128 + 15));
    let written = std::fs::read_to_string(&book).unwrap();
    std::fs::remove_file(&book).unwrap();
    assert_eq!(written, "heard it\n", "as if the agent had started the server itself");
}

#[test]
fn a_server_at_an_address_outlives_its_restart_for_the_agent() {
    for era in ["legacy", "modern"] {
        let mut server = WebProcess::start("0", era);
        let url = server.url.clone();
        let mut agent = Agent::run(LINETENDER, [url.as_str()].iter()).greeted();
        let echo = |agent: &mut Agent, id: u32| {
            let answer = agent.call(&json!(id), "echo", &json!({ "nonce": "n" }));
            assert!(answer["result"]["isError"].is_null(), "{answer}");
        };
        echo(&mut agent, 1);
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
        drop(server);
        server = WebProcess::start(&port, era);
        echo(&mut agent, 2);
        drop((agent, server));
    }
}

/// A badserver over HTTP.
struct WebProcess {
    process: Child,
    url: String,
}

impl WebProcess {
    fn start(port: &str, era: &str) -> Self {
        let mut process = Command::new(LINETENDER)
            .args(["__badserver", "--http", port, "--era", era])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { process, url }
    }
}

impl Drop for WebProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_new_version_on_disk_does_not_keep_the_old_one_from_working() {
    let copy = std::env::temp_dir().join(format!("linetender-copy-{}", std::process::id()));
    std::fs::copy(LINETENDER, &copy).unwrap();
    let mut agent = Agent::of(copy.to_str().unwrap(), &[]).greeted();
    std::fs::remove_file(&copy).unwrap();
    agent.call(&json!("k"), "kill", &json!({}));
    let answer = agent.call(&json!("e"), "echo", &json!({ "n": 1 }));
    assert!(answer["result"]["isError"].is_null(), "{answer}");
}

#[test]
fn an_agent_that_does_not_read_cannot_keep_it_from_stopping() {
    let mut agent = Agent::up(&[]);
    let pid = agent.shim.id().to_string();
    let mut to = agent.to.take().unwrap();
    // It asks and asks, and reads no answer: at some point it is not read any more either.
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = std::sync::Arc::clone(&asked);
    let asking = std::thread::spawn(move || {
        while writeln!(to, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).is_ok() {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let look = || asked.load(std::sync::atomic::Ordering::Relaxed);
    let mut before = u32::MAX;
    while look() != before {
        before = look();
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(agent.shim.wait().unwrap().code(), Some(128 + 15));
    drop(agent);
    asking.join().unwrap();
}

#[test]
fn it_is_gone_as_soon_as_its_agent_and_its_server_are() {
    let mut agent = Agent::up(&[]);
    let start = std::time::Instant::now();
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
    assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn when_the_agent_goes_everything_goes() {
    let mut agent = Agent::up(&[]);
    let pid = agent.shim.id();
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let reaper: u32 = children().trim().parse().unwrap();
    // End of file on its stdin is how an agent goes.
    agent.to = None;
    assert!(agent.shim.wait().unwrap().success());
    assert!(!std::path::Path::new(&format!("/proc/{reaper}")).exists(), "the reaper outlived its shim");
}

#[test]
fn s35_five_thousand_calls_at_once_are_all_answered() {
    let mut agent = Agent::up(&[]);
    for id in 0..5000 {
        agent.send(&json!(id), "tools/call", &json!({ "name": "write", "arguments": { "n": id } }));
    }
    let mut answered = std::collections::HashSet::new();
    while answered.len() < 5000 {
        let answer = agent.hear();
        assert!(answer["result"]["isError"].is_null(), "{answer}");
        answered.insert(answer["id"].as_u64().unwrap());
    }
}

#[test]
fn s35_an_agent_with_thousands_of_calls_open_is_read_on() {
    let mut agent = Agent::up(&[]);
    for id in 0..2000 {
        agent.send(&json!(id), "tools/call", &json!({ "name": "hang", "arguments": {} }));
    }
    assert_eq!(agent.ask(&json!("p"), "ping", &json!({}))["result"], json!({}), "its ping is answered");
    for id in 0..2000 {
        let params = json!({ "requestId": id });
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    let answer = agent.call(&json!("after"), "echo", &json!({}));
    assert!(answer["result"]["isError"].is_null(), "its cancellations made room: {answer}");
}

#[test]
fn s36_answers_in_the_pipe_win_against_a_deadline_that_passed_while_the_shim_was_stopped() {
    let words = ["--call-timeout", "1500ms", "--", LINETENDER, "__badserver", "--era", "legacy"];
    let mut agent = Agent::run(LINETENDER, words.iter()).greeted();
    for id in 0..5 {
        agent.send(&json!(id), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 700 } }));
    }
    // Answered, it has read those before it.
    assert_eq!(agent.ask(&json!("p"), "ping", &json!({}))["result"], json!({}));
    let echo = agent.call(&json!("e"), "echo", &json!({}));
    assert!(echo["result"]["isError"].is_null(), "the server has them: {echo}");
    let shim = rustix::process::Pid::from_child(&agent.shim);
    rustix::process::kill_process(shim, rustix::process::Signal::STOP).unwrap();
    let heard = agent.from.recv_timeout(std::time::Duration::from_millis(2500));
    assert!(heard.is_err(), "a stopped shim says nothing: {heard:?}");
    rustix::process::kill_process(shim, rustix::process::Signal::CONT).unwrap();
    for _ in 0..5 {
        let answer = agent.hear();
        assert!(answer["result"]["isError"].is_null(), "{answer}");
    }
}

#[test]
fn a_call_that_waits_for_its_turn_has_its_hard_end() {
    let flags =
        ["--call-timeout", "1s", "--in-flight", "1", "--", LINETENDER, "__badserver", "--era", "legacy"];
    let mut agent = Agent::run(LINETENDER, flags.iter()).greeted();
    // Its answer lets one in from the backlog, which has 400 ms left then, and no second of its own.
    agent.send(&json!("first"), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 600 } }));
    for id in 0..600 {
        agent.send(&json!(id), "tools/call", &json!({ "name": "hang", "arguments": {} }));
    }
    assert_eq!(agent.hear()["id"], "first");
    let mut told = Vec::new();
    for _ in 0..600 {
        let refused = agent.hear();
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        told.push(std::time::Instant::now());
    }
    let between = told[599] - told[0];
    assert!(
        between.as_millis() < 400,
        "they came at once, and the last was told {between:?} after the first"
    );
}

#[test]
fn a_call_that_outlives_its_agents_input_is_told() {
    let mut agent = Agent::up(&[]);
    agent.send(&json!("slow"), "tools/call", &json!({ "name": "sleep", "arguments": { "ms": 60_000 } }));
    agent.ask(&json!("taken"), "ping", &json!({}));
    agent.to = None;
    let told = agent.hear();
    assert_eq!(told["id"], "slow", "{told}");
    assert!(
        told.to_string().contains("unknown") && told.to_string().contains("the agent disconnected"),
        "{told}"
    );
    assert!(agent.shim.wait().unwrap().success());
}
