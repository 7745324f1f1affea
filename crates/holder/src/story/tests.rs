#![allow(clippy::needless_pass_by_value, reason = "entries are written where they are passed")]

use std::time::{Duration, SystemTime};

use super::{DEATHS, Story};
use crate::holder::LineReport;
use crate::journal::Entry;
use serde_json::{Value, json};

fn at(second: u32) -> String {
    format!("2026-11-17T03:{:02}:{:02}.000Z", second / 60, second % 60)
}

fn noon() -> SystemTime {
    linetender_wire::wall::from_rfc3339("2026-11-17T04:00:00.000Z").unwrap()
}

fn entry(second: u32, generation: u64, state: &str, more: Value) -> Entry {
    let mut entry = json!({ "v": 1, "at": at(second), "holder": 7, "door": "run", "what": "state", "server": "git",
        "generation": generation, "state": state, "budget_millis": 4000 });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    serde_json::from_value(entry).unwrap()
}

fn exit(status: i32, stderr: &str) -> Value {
    json!({ "cause": { "text": format!("the server process exited with status {status}"), "leaves": ["exit"], "seen": "exited",
        "status": status, "stderr": stderr }, "charge": { "paid": true, "left_millis": 4000, "most_millis": 5000 } })
}

fn live(state: &str, more: Value) -> LineReport {
    let mut report = json!({ "server": "git", "state": state, "generation": 2, "since": at(0), "since_millis": 61_000,
        "budget_millis": 4000, "budget_most_millis": 5000 });
    for (key, value) in more.as_object().unwrap() {
        report[key] = value.clone();
    }
    serde_json::from_value(report).unwrap()
}

fn told(entries: &[Entry], live: Option<&LineReport>) -> Story {
    Story::of("git", entries, live, noon(), DEATHS)
}

#[test]
fn a_death_says_how_long_it_had_served_what_it_cost_and_when_it_was_back() {
    let entries = [
        entry(0, 1, "dialing", json!({})),
        entry(1, 1, "up", json!({})),
        entry(61, 1, "ending", exit(3, "no token\n")),
        entry(61, 1, "waiting", json!({})),
        entry(62, 2, "dialing", json!({})),
        entry(65, 2, "up", json!({})),
    ];
    let story = told(&entries, Some(&live("up", json!({}))));
    let [death] = story.deaths.as_slice() else { panic!("{:?}", story.deaths) };
    assert_eq!((death.served_millis, death.back_millis), (Some(60_000), Some(4_000)));
    assert_eq!((death.generation, death.times, death.planned), (1, 1, false));
    assert_eq!(death.stderr, ["no token"]);
    assert!(death.cost.contains("one of the server's 5 restarts: 4 left"), "{}", death.cost);
    let text = story.to_string();
    assert!(text.contains("git is in service (for 1 min 1 s)"), "{text}");
    assert!(text.contains("It was back after 4.0 s"), "{text}");
    let wrapped = story.wrapped(80);
    assert!(wrapped.iter().all(|line| line.chars().count() <= 80), "{wrapped:?}");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&wrapped.join("\n")), words(&text), "nothing is lost");
}

#[test]
fn the_same_again_is_told_once() {
    let mut entries = Vec::new();
    for number in 1..=6 {
        let second = u32::try_from(number).unwrap();
        entries.push(entry(second, number, "dialing", json!({})));
        entries.push(entry(second, number, "ending", exit(1, "boom")));
    }
    let last = json!({ "cause": exit(1, "boom")["cause"], "charge": { "paid": false, "left_millis": 0, "most_millis": 5000 } });
    entries.push(entry(8, 7, "ending", last));
    let parked = live("parked", json!({ "next_try": "in 22.0 s", "cause": exit(1, "boom")["cause"] }));
    let story = told(&entries, Some(&parked));
    let [death] = story.deaths.as_slice() else { panic!("{:?}", story.deaths) };
    assert_eq!((death.times, death.first.as_str(), death.served_millis), (7, at(1).as_str(), None));
    let text = story.to_string();
    assert!(text.contains("All 5 restarts were used up"), "{text}");
    assert!(text.contains("tries it again by itself in 22.0 s"), "{text}");
    assert!(text.contains("linetender redial git"), "{text}");
}

#[test]
fn a_server_elsewhere_may_live_on_and_a_container_name_is_for_one() {
    let cause = json!({ "cause": { "text": "the server process exited with status 255", "leaves": ["exit"], "seen": "exited",
        "status": 255, "far_side": "ssh" } });
    let text = told(&[entry(1, 1, "up", json!({})), entry(2, 1, "ending", cause)], None).to_string();
    assert!(text.contains("what it started on the other side may live on"), "{text}");
    let taken = json!({ "cause": { "text": "the container name mcp is in use", "leaves": ["exit"], "seen": "name-taken" } });
    let text = told(&[entry(1, 1, "ending", taken)], None).to_string();
    assert!(text.contains("docker ps --all") && !text.contains("other side"), "{text}");
}

#[test]
fn what_became_known_later_is_told_and_a_plan_does_not_hide_a_failure() {
    let closed = json!({ "cause": { "text": "the server closed its stdout", "leaves": ["transport"], "seen": "closed-pipe" } });
    let known = json!({ "cause": { "text": "the server process was killed by signal 9 (SIGKILL)", "leaves": ["transport"],
        "seen": "exited", "signal": 9 } });
    let parked = json!({ "cause": { "text": "parked by an operator", "leaves": ["park"], "seen": "asked" } });
    let entries = [
        entry(1, 1, "up", json!({})),
        entry(2, 1, "ending", closed),
        entry(3, 1, "waiting", known),
        entry(4, 1, "parked", parked.clone()),
    ];
    let story = told(&entries, Some(&live("parked", parked)));
    assert!(story.deaths[0].what.contains("SIGKILL"), "{:?}", story.deaths);
    let text = story.to_string();
    assert!(text.contains("an operator took it out of service"), "{text}");
    assert!(text.contains("linetender wake git") && !text.contains("redial"), "{text}");
}

#[test]
fn that_an_agent_left_is_no_death_and_a_planned_stop_costs_nothing() {
    let planned = |leaf: &str| json!({ "cause": { "text": "stopped by linetender", "leaves": [leaf], "seen": "asked" } });
    let entries = [
        entry(1, 1, "up", json!({})),
        entry(2, 1, "ending", planned("recycle")),
        entry(3, 2, "up", json!({})),
        entry(4, 2, "ending", planned("close")),
        entry(4, 2, "closed", json!({})),
    ];
    let story = told(&entries, None);
    let [death] = story.deaths.as_slice() else { panic!("{:?}", story.deaths) };
    assert!(death.planned && death.cost.contains("planned"), "{death:?}");
    assert!(story.advice.is_empty(), "{:?}", story.advice);
    assert!(story.now.text.contains("shut down"), "{:?}", story.now);
}

#[test]
fn deaths_of_other_processes_and_other_servers_are_kept_apart() {
    let mut of_another = entry(3, 1, "up", json!({}));
    of_another.holder = 8;
    let mut killed = entry(5, 1, "ending", exit(1, "boom"));
    killed.holder = 8;
    let mut other_server = entry(6, 1, "ending", exit(1, "boom"));
    if let crate::journal::What::State { server, .. } = &mut other_server.what {
        *server = "other".to_owned();
    }
    let entries = [
        entry(1, 1, "up", json!({})),
        entry(2, 1, "ending", exit(1, "boom")),
        of_another,
        killed,
        other_server,
    ];
    let story = told(&entries, None);
    assert_eq!(
        story.deaths.iter().map(|death| (death.holder, death.times)).collect::<Vec<_>>(),
        [(8, 1), (7, 1)]
    );
    assert_eq!(story.deaths[1].back_millis, None, "the other process's server is another one");
    assert!(story.to_string().contains("under linetender pid 8"), "{story}");
}

#[test]
fn only_so_many_are_told_and_the_rest_is_counted() {
    let entries: Vec<_> = (1..=9)
        .map(|second| entry(second, u64::from(second), "ending", exit(second.cast_signed(), "")))
        .collect();
    let story = Story::of("git", &entries, None, noon(), 2);
    assert_eq!((story.deaths.len(), story.older), (2, 7));
    assert!(story.to_string().contains("7 older ends are not shown"), "{story}");
}

#[test]
fn what_a_server_wrote_is_no_command_to_the_terminal_and_bounded() {
    let hostile = format!("\u{1b}[2J{}\n", "x".repeat(5000)).repeat(50);
    let mut cause = exit(1, &hostile);
    cause["cause"]["text"] = "\u{1b}]0;owned\u{7}".repeat(1000).into();
    let entries = [entry(1, 1, "ending", cause)];
    let name = "a'b; rm -rf \u{1b}[31m";
    let entries = entries.map(|mut entry| {
        if let crate::journal::What::State { server, .. } = &mut entry.what {
            *server = name.to_owned();
        }
        entry
    });
    let text = Story::of(name, &entries, Some(&live("parked", json!({}))), noon(), DEATHS).to_string();
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    assert!(text.len() < 10_000, "{}", text.len());
    assert!(text.contains(r"linetender redial 'a'\''b; rm -rf"), "{text}");
}

#[test]
fn an_entry_of_an_older_version_is_told_without_its_meaning() {
    let old = json!({ "cause": { "text": "the server process exited with status 3", "leaves": ["exit"] } });
    let story = told(&[entry(1, 1, "ending", old)], None);
    assert!(story.deaths[0].what.contains("status 3") && story.deaths[0].meaning.is_empty());
    let nothing = told(&[], None);
    assert!(nothing.to_string().contains("no entry"), "{nothing}");
    assert!(nothing.deaths.is_empty() && noon() > SystemTime::UNIX_EPOCH + Duration::from_secs(1));
}

#[test]
fn a_command_is_never_made_of_what_a_server_said() {
    let login = |words: &str| {
        let text = format!("the server requires authentication: run `{words}`");
        let cause = json!({ "cause": { "text": text, "leaves": ["auth"], "seen": "wants-auth" } });
        let story = told(&[entry(1, 1, "ending", cause.clone())], Some(&live("needs-auth", cause)));
        story.advice.iter().find_map(|advice| advice.command.clone()).unwrap()
    };
    assert_eq!(login("linetender login https://example.com/mcp"), "linetender login https://example.com/mcp");
    assert_eq!(login("linetender login x; rm -rf ~"), "linetender login URL");
    assert_eq!(login("linetender login $(id)"), "linetender login URL");
}
