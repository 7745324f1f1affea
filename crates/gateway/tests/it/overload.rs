//! Too much at once, and agents that do not read.

use crate::kit::{Answer, House, in_time, text};
use linetender::State;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Twelve at once: four with the server, eight that wait.
const NARROW: &str = r#"
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
policy = { limits = { in_flight = 4, queue = 8 } }
"#;

const ONE: &str = r#"
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
"#;

/// So many calls of a tool in one message.
fn burst(calls: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    (0..calls)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
        .collect()
}

/// Whether a call was refused because there was too much; a refusal says all that it has to.
fn is_shed(answer: &Value) -> bool {
    let result = &answer["result"];
    let shed = result["isError"] == true;
    if shed {
        let why = &result["_meta"]["linetender"];
        assert_eq!((&why["delivery"], &why["retryAfter"]), (&json!("not executed"), &json!(1)), "{answer}");
        assert!(text(answer).contains("retry in 1 s"), "{answer}");
    }
    shed
}

/// Reads answers until so many were refused; how many were not.
async fn until_shed(answers: &mut Answer, wanted: u64) -> u64 {
    let (mut shed, mut answered) = (0, 0);
    while shed < wanted {
        let event = answers.event().await.expect("refusals").data;
        match event["id"].is_u64() {
            true if is_shed(&event) => shed += 1,
            true => answered += 1,
            false => {}
        }
    }
    answered
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_ten_times_too_much_is_refused_at_once_with_a_time_to_come_back() {
    let house = House::up(NARROW).await;
    for (path, tool) in [("/mcp", "bad__hang"), ("/mcp/bad", "hang")] {
        let agent = house.agent(path).await;
        let mut answers = agent.post(&burst(120, tool, &json!({}))).await;
        assert_eq!(
            until_shed(&mut answers, 108).await,
            0,
            "four run, eight wait, and the rest knows at once"
        );
        let mut soonest = Duration::MAX;
        for _ in 0..20 {
            let begun = Instant::now();
            assert!(is_shed(&agent.call(tool, json!({})).await));
            soonest = soonest.min(begun.elapsed());
        }
        // The best of them: others use this machine too.
        assert!(soonest < Duration::from_millis(5), "{soonest:?}");
        assert_eq!(
            agent.ask("ping", json!({})).await["result"],
            json!({}),
            "what needs no server is answered"
        );
        agent.delete().await;
    }
    let line = &house.gateway.lines()[0];
    assert_eq!((line.status().state, line.status().generation), (State::Up, 1), "nobody died of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_an_agent_that_asks_for_everything_does_not_keep_another_from_its_turn() {
    let house = House::up(NARROW).await;
    let (greedy, modest) = (house.agent("/mcp").await, house.agent("/mcp").await);
    let mut answers = greedy.post(&burst(120, "bad__sleep", &json!({ "ms": 1500 }))).await;
    assert_eq!(until_shed(&mut answers, 108).await, 0);
    let mine = async {
        let one = || modest.call("bad__sleep", json!({ "ms": 1 }));
        let (one, two, three) = tokio::join!(one(), one(), one());
        assert!(![one, two, three].iter().any(is_shed), "room was made for each");
        Instant::now()
    };
    let theirs = async {
        let (mut shed, mut answered) = (0, 0);
        while let Some(event) = answers.event().await {
            if event.data["id"].is_u64() {
                *if is_shed(&event.data) { &mut shed } else { &mut answered } += 1;
            }
        }
        (shed, answered, Instant::now())
    };
    let (mine, (shed, answered, theirs)) = tokio::join!(mine, theirs);
    assert_eq!((shed, answered), (3, 9), "its newest made room, and the others were answered");
    assert!(mine < theirs, "it did not wait behind all of them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_as_much_as_there_is_room_for_is_refused_to_nobody() {
    let house = House::up(ONE).await;
    let agent = house.agent("/mcp").await;
    let answers = agent.post(&burst(300, "bad__sleep", &json!({ "ms": 100 }))).await.all().await;
    assert!(!answers.iter().any(is_shed));
    assert_eq!(answers.iter().filter(|answer| answer["id"].is_u64()).count(), 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o06_a_listener_that_does_not_read_holds_up_nobody_and_is_told_what_it_missed() {
    let house = House::up(ONE).await;
    let busy = house.agent("/mcp").await;
    let uri = format!("note://{}", "a".repeat(4000));
    let public = format!("linetender://bad/{uri}");
    let wants = json!({ "notifications": { "resourceSubscriptions": [public] } });
    let mut deaf = house.narrow().modern("/mcp", "subscriptions/listen", wants).await;
    deaf.event().await.unwrap();
    // More than the sockets between take, and than is kept: some are lost.
    for _ in 0..55 {
        in_time(busy.post(&burst(40, "bad__touch", &json!({ "uri": uri }))).await.last()).await;
    }
    assert_eq!(text(&busy.call("bad__echo", json!({})).await), "{}", "nobody else was held up");
    let mut heard = 0;
    let end = in_time(async {
        loop {
            let event = deaf.event().await.expect("it is told how it ends").data;
            if event.get("result").is_some() {
                break event;
            }
            heard += 1;
        }
    })
    .await;
    assert_eq!(end["result"]["resultType"], "complete", "{end}");
    let missed = end["result"]["_meta"]["linetender"]["missed"].as_u64().unwrap_or_default();
    assert!(heard > 0 && missed > 0, "{heard} heard, {end}");
    assert!(deaf.event().await.is_none(), "it can begin anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x02_a_batch_of_too_many_messages_is_refused_with_the_limit() {
    let house = House::up(ONE).await;
    let agent = house.agent("/mcp").await;
    let pings = |many: u64| -> Value {
        (0..many)
            .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": { "_meta": { "progressToken": id } } }))
            .collect()
    };
    let refused = agent.post(&pings(1025)).await;
    assert_eq!(refused.status, 400);
    let refused = refused.json().await;
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("a batch of more than 1024 messages"),
        "{refused}"
    );
    let answers = agent.post(&pings(1024)).await.all().await;
    let answered = answers.iter().filter(|answer| answer["result"] == json!({})).count();
    assert_eq!(answered, 1024);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x01_a_server_with_too_many_tools_is_listed_up_to_the_limit_and_delays_nobody() {
    let house = House::up(
        r#"
[servers.bad]
{bad}
args = ["--era", "legacy", "--full"]
[servers.many]
{bad}
args = ["--era", "legacy", "--full", "--more-tools", "30000", "--restless"]
"#,
    )
    .await;
    let agent = house.agent("/mcp").await;
    let slowest = in_time(async {
        let mut slowest = Duration::ZERO;
        loop {
            let begun = Instant::now();
            assert_eq!(text(&agent.call("bad__echo", json!({})).await), "{}");
            slowest = slowest.max(begun.elapsed());
            let listed = agent.ask("tools/list", json!({})).await;
            let tools = listed["result"]["tools"].as_array().map_or(0, Vec::len);
            if tools >= 20_000 {
                return slowest;
            }
        }
    })
    .await;
    // In one pass it takes a debug build well below a second; searched once per entry it took minutes.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let many = house.gateway.lines().into_iter().find(|line| line.name() == "many").unwrap();
    let catalogue = many.catalogues().borrow().clone();
    assert!(catalogue.is_cut(linetender::Kind::Tools));
    assert_eq!(catalogue.list(linetender::Kind::Tools).count(), 20_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x05_a_large_list_is_passed_on_without_a_copy_and_is_the_same_in_both_eras() {
    let house = House::up("[servers.many]\n{bad}\nargs = ['--full', '--more-tools', '3000']\n").await;
    let agent = house.agent("/mcp").await;
    let legacy = agent.ask("tools/list", json!({})).await;
    let modern = house.modern("/mcp", "tools/list", json!({})).await.json().await;
    assert!(legacy["result"]["tools"].as_array().unwrap().len() > 3000);
    assert_eq!(legacy["result"]["tools"], modern["result"]["tools"]);
    assert_eq!(modern["result"]["resultType"], "complete");
    assert!(legacy["result"].get("resultType").is_none());
}
