//! One bad server never touches another.

use crate::kit::{House, in_time, is_answered, names, text};
use linetender::State;
use serde_json::json;

const MIXED: &str = r#"
[servers.good]
{bad}
args = ["--era", "legacy"]
[servers.slow]
{bad}
args = ["--start-delay-ms", "3000"]
[servers.hung]
{bad}
args = ["--deaf"]
[servers.dead]
{bad}
args = ["--exit", "3", "--stderr", "no licence"]
[servers.missing]
command = "/does/not/exist"
"#;

#[tokio::test]
async fn g04_a_slow_hung_or_dead_server_delays_nobody_and_appears_when_it_is_there() {
    let house = House::open(MIXED).await;
    let line = |name: &str| house.gateway.lines().into_iter().find(|line| line.name() == name).unwrap();
    let slow = line("slow");
    in_time(line("good").catalogue()).await.unwrap();
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "good__echo", "arguments": {} })),
    ] {
        let answer = house.modern("/mcp", method, params).await.json().await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    let agent = house.agent("/mcp").await;
    let mut own = agent.stream(None).await;
    in_time(async {
        while !names(&agent.ask("tools/list", json!({})).await, "tools").contains(&"good__echo".into()) {}
    })
    .await;
    assert_eq!(text(&agent.call("good__echo", json!({})).await), "{}");
    assert_eq!(slow.status().state, State::Dialing, "nobody waited for it");
    loop {
        let event = own.event().await.expect("it is told when there is more");
        if event.data["method"] == "notifications/tools/list_changed"
            && names(&agent.ask("tools/list", json!({})).await, "tools").contains(&"slow__echo".into())
        {
            break;
        }
    }
    let why = agent.call("dead__echo", json!({})).await;
    assert!(text(&why).contains("no licence"), "{why}");
    let why = agent.call("missing__anything", json!({})).await;
    assert!(text(&why).contains("/does/not/exist"), "{why}");
    let ready = house.send(http::Method::GET, "/readyz", &[], String::new()).await.json().await;
    assert_eq!((&ready["ready"], &ready["servers"]["good"]), (&json!(true), &json!("up")));
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_when_the_policy_says_so() {
    let house = House::up("[servers.a]\n{bad}\npolicy = { call = { limit = 300 } }").await;
    let agent = house.agent("/mcp").await;
    let modern = house.modern("/mcp/a", "tools/call", json!({ "name": "hang", "arguments": {} }));
    let (legacy, modern) =
        tokio::join!(agent.call("a__hang", json!({})), async { modern.await.last().await });
    for told in [legacy, modern] {
        let fields = &told["result"]["_meta"]["linetender"];
        assert_eq!(fields["delivery"], "unknown", "{told}");
        assert!(text(&told).contains("no response within 300 ms"), "{told}");
    }
}

#[tokio::test]
async fn a_server_that_dies_keeps_its_tools_listed_and_the_others_undisturbed() {
    let house = House::up("[servers.a]\n{bad}\n[servers.b]\n{bad}").await;
    let agent = house.agent("/mcp").await;
    let before = agent.ask("tools/list", json!({})).await;
    let (killed, slept) = tokio::join!(
        agent.call("a__kill", json!({})),
        agent.request(8, "tools/call", json!({ "name": "b__sleep", "arguments": { "ms": 300 } })),
    );
    assert!(text(&killed).contains("SIGKILL"), "{killed}");
    assert!(is_answered(&slept.last().await));
    assert_eq!(agent.ask("tools/list", json!({})).await["result"], before["result"]);
    assert_eq!(text(&agent.call("a__echo", json!({})).await), "{}", "it is back by itself");
    let generations: Vec<_> = house.gateway.lines().iter().map(|line| line.status().generation).collect();
    assert_eq!(generations, [2, 1]);
}

#[tokio::test]
async fn a_server_that_is_down_is_not_listed_where_that_is_wanted() {
    let text = "[gateway]\nkeep_listed = false\n[servers.a]\n{bad}\n[servers.b]\n{bad}";
    let house = House::up(text).await;
    let tools = async |path: &str| {
        let listed = house.modern(path, "tools/list", json!({})).await.json().await;
        names(&listed, "tools").into_iter().filter(|name| name.ends_with("echo")).collect::<Vec<_>>()
    };
    assert_eq!(tools("/mcp").await, ["a__echo", "b__echo"]);
    assert_eq!(tools("/mcp/a").await, ["echo"]);
    let line = house.gateway.lines().into_iter().find(|line| line.name() == "a").unwrap();
    line.close().await;
    in_time(async { while tools("/mcp").await != ["b__echo"] {} }).await;
    assert_eq!(tools("/mcp/a").await, Vec::<String>::new());
    let agent = house.agent("/mcp/a").await;
    assert_eq!(names(&agent.ask("tools/list", json!({})).await, "tools"), Vec::<String>::new());
}

#[tokio::test]
async fn many_agents_share_one_process_unless_each_is_to_have_its_own() {
    let text = "[servers.shared]\n{bad}\nargs=['--era','legacy']\n[servers.own]\n{bad}\nscope='session'\nargs=['--era','legacy','--die-on-call','2']";
    let house = House::up(text).await;
    let pid = house.gateway.lines().iter().find(|line| line.name() == "shared").unwrap().pid();
    let agents = [house.agent("/mcp").await, house.agent("/mcp").await];
    for agent in &agents {
        agent.call("shared__echo", json!({})).await;
        // Each process dies on its second call, and none of these is one.
        assert!(is_answered(&agent.call("own__echo", json!({})).await));
    }
    assert_eq!(house.gateway.lines().iter().find(|line| line.name() == "shared").unwrap().pid(), pid);
}

#[tokio::test]
async fn sessions_that_nobody_uses_are_forgotten() {
    let house = House::up("[gateway]\nsession_idle = 300\n[servers.a]\n{bad}").await;
    let agent = house.agent("/mcp").await;
    in_time(async {
        while agent.request(1, "ping", json!({})).await.status != 404 {
            // A ping is use: only one that comes late enough finds nobody.
            tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_agent_ever_hears_what_is_meant_for_another() {
    let text = "[servers.a]\n{bad}\nargs=['--era','legacy']\n[servers.b]\n{bad}\nargs=['--era','modern']";
    let house = House::up(text).await;
    let one = async |number: u64| {
        let agent = house.agent("/mcp").await;
        for call in 0..10 {
            let server = if (number + call).is_multiple_of(2) { "a" } else { "b" };
            // All use the same ids and the same token.
            let params = json!({ "name": format!("{server}__progress"), "arguments": { "times": 2, "ms": 1, "of": number, "call": call }, "_meta": { "progressToken": 1 } });
            let mut answer = agent.request(1, "tools/call", params).await;
            let mut told = 0;
            let last = loop {
                let event = answer.event().await.expect("an answer").data;
                told += u32::from(event["method"] == "notifications/progress");
                if event.get("result").is_some() {
                    break event;
                }
            };
            let mine: serde_json::Value = serde_json::from_str(crate::kit::text(&last)).unwrap();
            assert_eq!((&mine["of"], &mine["call"], told), (&json!(number), &json!(call), 2));
        }
    };
    let mut all: Vec<_> = (0..16).map(|number| Box::pin(one(number))).collect();
    in_time(std::future::poll_fn(|context| {
        all.retain_mut(|agent| agent.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
    .await;
    let generations: Vec<_> = house.gateway.lines().iter().map(|line| line.status().generation).collect();
    assert_eq!(generations, [1, 1], "two processes served them all");
}
