//! A config that changes while agents are there.

use std::cell::Cell;

use crate::kit::{House, config, in_time, is_answered, names, text};
use serde_json::json;

const BEFORE: &str =
    "[servers.stays]\n{bad}\n[servers.goes]\n{bad}\n[servers.changes]\n{bad}\nstate = 'none'";
const AFTER: &str = "[servers.stays]\n{bad}\n[servers.changes]\n{bad}\nstate = 'none'\nargs = ['--noise']\n[servers.comes]\n{bad}";

/// Far less than the policy leaves calls that are under way.
const DRAINED: std::time::Duration = std::time::Duration::from_secs(10);

#[tokio::test]
async fn what_is_unchanged_keeps_its_generation_and_agents_find_the_rest() {
    let house = House::up(BEFORE).await;
    let agent = house.agent("/mcp").await;
    let alone = house.agent("/mcp/changes").await;
    let stays = house.gateway.lines().into_iter().find(|line| line.name() == "stays").unwrap();
    let pid = stays.pid();
    for server in ["stays", "goes", "changes"] {
        agent.call(&format!("{server}__echo"), json!({})).await;
    }
    let mut own = agent.stream(None).await;
    let change = house.gateway.apply(config(AFTER));
    assert_eq!(
        (change.added.len(), change.replaced.len(), change.removed.len(), change.kept.len()),
        (1, 1, 1, 1)
    );
    for server in ["stays", "changes", "comes"] {
        assert_eq!(text(&agent.call(&format!("{server}__echo"), json!({})).await), "{}", "{server}");
    }
    assert!(
        text(&agent.call("goes__echo", json!({})).await)
            .contains("configured servers: stays, changes, comes")
    );
    assert_eq!((stays.pid(), stays.status().generation), (pid, 1));
    in_time(async {
        while own.event().await.unwrap().data["method"] != "notifications/tools/list_changed" {}
        while !names(&agent.ask("tools/list", json!({})).await, "tools").contains(&"comes__echo".into()) {}
    })
    .await;
    assert_eq!(alone.request(1, "ping", json!({})).await.status, 404, "it begins anew with the new server");
}

#[tokio::test]
async fn whoever_listens_to_a_server_that_is_another_now_may_listen_anew() {
    let house = House::up(BEFORE).await;
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    for (server, ends) in [("changes", true), ("goes", true), ("stays", false)] {
        let mut listens =
            house.modern(&format!("/mcp/{server}"), "subscriptions/listen", listen.clone()).await;
        listens.event().await.unwrap();
        house.gateway.apply(config(AFTER));
        if ends {
            let last = in_time(listens.event()).await.unwrap().data;
            assert_eq!(last["result"]["resultType"], "complete", "{server}: {last}");
            assert!(in_time(listens.event()).await.is_none());
        } else {
            let call = json!({ "name": "echo", "arguments": {} });
            assert!(is_answered(&house.modern("/mcp/stays", "tools/call", call).await.json().await));
            tokio::select! {
                biased;
                event = listens.event() => panic!("the others listen on: {:?}", event.map(|event| event.data)),
                () = std::future::ready(()) => {}
            }
        }
        house.gateway.apply(config(BEFORE));
    }
}

#[tokio::test]
async fn whoever_listens_where_something_is_hidden_is_told_that_the_server_is_gone() {
    let hides = BEFORE.replace("[servers.goes]", "[servers.goes]\ntools = { exclude = ['write'] }");
    let house = House::up(&hides).await;
    let listen = json!({ "notifications": { "resourceSubscriptions": ["x:1"] } });
    let mut listens = house.modern("/mcp/goes", "subscriptions/listen", listen).await;
    listens.event().await.unwrap();
    house.gateway.apply(config(AFTER));
    let last = in_time(listens.event()).await.unwrap().data;
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert!(in_time(listens.event()).await.is_none());
}

#[tokio::test]
async fn g03_a_server_in_use_that_is_taken_away_or_changed_answers_what_it_has_begun() {
    let house = House::up(BEFORE).await;
    let agent = house.agent("/mcp").await;
    let generation = |name: &str| {
        house.gateway.lines().iter().find(|line| line.name() == name).unwrap().status().generation
    };
    let slow = |server: &str| json!({ "name": format!("{server}__sleep"), "arguments": { "ms": 700, "of": server } });
    let under_way = async |id: u64, server: &str| {
        let answer = agent.request(id, "tools/call", slow(server)).await.last().await;
        assert!(is_answered(&answer), "{answer}");
        assert!(text(&answer).contains(server), "{answer}");
    };
    let reload = async {
        // Each has begun when a ping that was sent behind it is answered.
        agent.ask("ping", json!({})).await;
        for server in ["stays", "goes", "changes"] {
            agent.call(&format!("{server}__echo"), json!({})).await;
        }
        let change = house.gateway.apply(config(AFTER));
        assert_eq!((change.removed.len(), change.replaced.len(), change.kept.len()), (1, 1, 1));
    };
    tokio::join!(under_way(1, "stays"), under_way(2, "goes"), under_way(3, "changes"), reload);
    assert_eq!(generation("stays"), 1, "nothing happened to it");
    // Nothing of anybody's is under way any more: what we ask of the server ourselves is no reason to wait for its time.
    let changed = agent.call("changes__echo", json!({ "now": 1 }));
    let changed =
        tokio::time::timeout(DRAINED, changed).await.expect("the old one is gone when its calls are");
    assert_eq!(text(&changed), r#"{"now":1}"#);
    assert_eq!(generation("changes"), 1, "it is another line, which was planned: nothing was charged");
    in_time(async { while house.gateway.lines().iter().any(|line| line.name() == "goes") {} }).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn g11_a_server_that_comes_back_before_its_calls_have_ended_never_runs_twice() {
    for scope in ["shared", "identity"] {
        let mark = format!("G11-{scope}-{}", std::process::id());
        let stays = "[servers.stays]\n{bad}\n";
        let with = |more: &str| {
            let goes =
                format!("[servers.goes]\n{{bad}}\nscope = '{scope}'\nenv = {{ MARK = '{mark}' }}\n{more}");
            format!("{stays}{goes}")
        };
        let house = House::up(&with("")).await;
        let agent = house.agent("/mcp").await;
        let slow = json!({ "name": "goes__sleep", "arguments": { "ms": 1500 } });
        let under_way = async { agent.request(1, "tools/call", slow).await.last().await };
        let pid = async || {
            let call = json!({ "name": "pid", "arguments": {} });
            text(&house.modern("/mcp/goes", "tools/call", call).await.last().await).to_owned()
        };
        let first = pid().await;
        let reload = async {
            // It has begun when what was sent behind it is answered.
            agent.ask("ping", json!({})).await;
            agent.call("goes__echo", json!({})).await;
            // Gone, there again, another one, and there again: each waits for all before it.
            let gone = stays.to_owned();
            for text in [gone.clone(), with(""), gone, with("args = ['--noise']\n"), with("")] {
                house.gateway.apply(config(&text));
            }
            let seen = async {
                loop {
                    // Where each principal has its own, there is one more, whose lists are shown.
                    let servers = servers_of(&mark);
                    assert!(servers.len() <= if scope == "identity" { 2 } else { 1 }, "{scope}: {servers:?}");
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                second = pid() => second,
                never = seen => never,
            }
        };
        let (answer, second) = tokio::join!(under_way, reload);
        assert!(is_answered(&answer), "{scope}: {answer}");
        assert!(second != first && second.parse::<u32>().is_ok(), "{scope}: {first} {second}");
    }
}

/// The trees of processes whose environment holds this mark, by the number of the last: a server and its reaper are one.
#[cfg(target_os = "linux")]
fn servers_of(mark: &str) -> Vec<String> {
    let all = processes(&format!("MARK={mark}"));
    let parent = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().find_map(|line| Some(line.strip_prefix("PPid:")?.trim().to_owned()))
    };
    let parents: Vec<String> = all.iter().filter_map(parent).collect();
    all.into_iter().filter(|pid| !parents.contains(pid)).collect()
}

/// A config with two servers that stay, and one that is there, another, or not there.
fn round(number: u32) -> String {
    let stays = "[servers.a]\n{bad}\n[servers.b]\n{bad}\nargs = ['--era', 'legacy']\n";
    match number % 3 {
        0 => stays.to_owned(),
        1 => format!("{stays}[servers.c]\n{{bad}}\n"),
        _ => format!("[servers.c]\n{{bad}}\nargs = ['--noise']\n{stays}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reloads_under_load_are_nothing_to_the_others() {
    let house = House::up(&round(0)).await;
    let pids = || {
        house
            .gateway
            .lines()
            .iter()
            .filter(|line| line.name() != "c")
            .map(linetender::Line::pid)
            .collect::<Vec<_>>()
    };
    let (before, over, calls) = (pids(), Cell::new(false), Cell::new(0_u32));
    let calling = async |path: &str, tools: [&str; 2]| {
        let agent = house.agent(path).await;
        while !over.get() {
            for tool in tools {
                let answer = agent.call(tool, json!({ "n": calls.get() })).await;
                assert!(is_answered(&answer), "{answer}");
                let params = json!({ "name": tool, "arguments": {} });
                let answer = house.modern(path, "tools/call", params).await.last().await;
                assert!(is_answered(&answer), "{answer}");
                calls.set(calls.get() + 2);
            }
        }
    };
    let reloading = async {
        let agent = house.agent("/mcp").await;
        for number in 1..=300 {
            let called = calls.get();
            house.gateway.apply(config(&round(number)));
            if number % 3 != 0 {
                // The one that comes and goes is used too, so that there is something to drain.
                agent.call("c__echo", json!({})).await;
            }
            in_time(async {
                while calls.get() == called {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        over.set(true);
    };
    tokio::join!(
        calling("/mcp", ["a__echo", "b__echo"]),
        calling("/mcp", ["b__echo", "a__echo"]),
        calling("/mcp/a", ["echo", "echo"]),
        calling("/mcp/b", ["echo", "echo"]),
        reloading,
    );
    let generations: Vec<_> = house.gateway.lines().iter().map(|line| line.status().generation).collect();
    assert_eq!(
        (pids(), generations),
        (before, vec![1, 1]),
        "the same processes served all {} calls",
        calls.get()
    );
}

/// The processes whose environment holds this, by number: servers and their reapers.
fn processes(mark: &str) -> Vec<String> {
    let marked = |pid: &String| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids: Vec<String> =
        all.filter_map(|entry| entry.file_name().into_string().ok()).filter(marked).collect();
    pids.sort();
    pids
}

#[tokio::test]
async fn g05_a_changed_filter_replaces_no_process_and_agents_are_told() {
    let mark = format!("G05-{}", std::process::id());
    let with = |filter: &str| {
        format!(
            "[servers.s]\n{{bad}}\nscope = 'session'\nenv = {{ MARK = '{mark}' }}\n{filter}\n\
             [servers.shared]\n{{bad}}\nenv = {{ MARK = '{mark}' }}\n{filter}"
        )
    };
    let (open, hides) = (with(""), with("tools = { exclude = ['sleep'] }"));
    let house = House::up(&open).await;
    let (all, own) = (house.agent("/mcp").await, house.agent("/mcp/s").await);
    let mut streams = [all.stream(None).await, own.stream(None).await];
    let agents = [(&all, "s__", "s__sleep"), (&all, "shared__", "shared__sleep"), (&own, "", "sleep")];
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listens = house.modern("/mcp/shared", "subscriptions/listen", listen).await;
    listens.event().await.unwrap();
    for (agent, prefix, hidden) in agents {
        assert!(is_answered(&agent.call(&format!("{prefix}echo"), json!({})).await));
        assert!(is_answered(&agent.call(hidden, json!({ "ms": 1 })).await));
    }
    let before = processes(&format!("MARK={mark}"));
    for (round, filtered) in [true, false, true].into_iter().enumerate() {
        let change = house.gateway.apply(config(if filtered { &hides } else { &open }));
        assert_eq!((change.kept.len(), change.replaced.len()), (2, 0));
        for stream in &mut streams {
            in_time(async {
                while stream.event().await.unwrap().data["method"] != "notifications/tools/list_changed" {}
            })
            .await;
        }
        for (agent, prefix, hidden) in agents {
            let listed = names(&agent.ask("tools/list", json!({})).await, "tools");
            assert!(listed.contains(&format!("{prefix}echo")), "round {round}: {listed:?}");
            assert_eq!(listed.contains(&hidden.to_owned()), !filtered, "round {round}: {listed:?}");
            assert!(is_answered(&agent.call(&format!("{prefix}echo"), json!({})).await), "round {round}");
            let answer = agent.call(hidden, json!({ "ms": 1 })).await;
            assert_eq!(is_answered(&answer), !filtered, "round {round}: {answer}");
        }
        assert_eq!(processes(&format!("MARK={mark}")), before, "round {round}");
    }
    let last = in_time(listens.event()).await.unwrap().data;
    assert_eq!(
        last["result"]["resultType"], "complete",
        "it listens anew, and reads the lists again: {last}"
    );
}
