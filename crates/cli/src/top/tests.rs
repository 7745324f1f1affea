//! What the screen looks like, and what keys do to it: no terminal, no process.

use linetender_holder::holder::{Act, Found, Reply, Silence};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};

use super::keys::{Wish, press};
use super::looks::Looked;
use super::model::{Detail, Model, Order, Over, View};
use super::row::Key;

fn line(server: &str, state: &str, history: &[(&str, u64)]) -> Value {
    let history: Vec<_> =
        history.iter().map(|(state, ago)| json!({ "state": state, "ago_millis": ago * 1000 })).collect();
    json!({ "server": server, "state": state, "generation": 3, "since": "-", "since_millis": 61_000,
        "budget_millis": 5000, "budget_most_millis": 5000, "pid": 4001, "history": history })
}

/// answered, tool error, refused, not executed, unknown, cancelled
fn counts(server: &str, verdicts: [u64; 6]) -> Value {
    let [answered, tool_error, refused, not_executed, unknown, cancelled] = verdicts;
    json!({ "server": server,
        "tool_calls": { "answered": answered, "tool_error": tool_error, "refused": refused,
            "not_executed": not_executed, "unknown": unknown, "cancelled": cancelled },
        "other_requests": { "answered": 12, "tool_error": 0, "refused": 0, "not_executed": 0, "unknown": 0, "cancelled": 0 },
        "own": 0, "retries": { "not-executed": 2 }, "under_way": 2, "bytes_sent": 1, "bytes_received": 1, "starts": 3,
        "ends": { "exit": 2 }, "planned_ends": 1, "p50_micros": 1400, "p99_micros": 83_000,
        "slowest": [{ "what": "commit", "millis": 2400, "ended_millis": 42_000, "verdict": "answered" },
            { "what": "push", "millis": 900, "ended_millis": 11_000, "verdict": "unknown" }] })
}

fn found(pid: u32, age: u64, lines: &[Value], servers: &[Value]) -> Found {
    let report = json!({ "version": 1,
        "holder": { "pid": pid, "door": "serve", "version": "1", "began": "-", "began_millis": age },
        "lines": lines, "servers": servers });
    Found { pid, reply: Reply::Report(serde_json::from_value(report).unwrap()) }
}

fn looked(found: Vec<Found>) -> Looked {
    let tree = json!([{ "server": "git", "generation": 3, "memory_bytes": 47_185_920, "processes": [
        { "pid": 4001, "parent": 0, "name": "npx", "memory_bytes": 12_582_912 },
        { "pid": 4002, "parent": 4001, "name": "node", "memory_bytes": 34_603_008 }] }]);
    Looked { found, trees: [(4000, serde_json::from_value(tree).unwrap())].into(), ..Looked::default() }
}

fn quiet() -> Vec<Found> {
    let up = [("dialing", 4000), ("up", 3999)];
    let lines =
        [line("git", "up", &up), line("search", "up", &up), line("calendar", "idle", &[("idle", 4000)])];
    let servers = [counts("git", [120, 1, 0, 0, 0, 3]), counts("search", [9, 0, 0, 0, 0, 0])];
    vec![found(4000, 7_300_000, &lines, &servers)]
}

fn storm() -> Vec<Found> {
    let deaths = [
        ("up", 250),
        ("ending", 200),
        ("waiting", 199),
        ("dialing", 190),
        ("up", 188),
        ("ending", 60),
        ("waiting", 60),
    ];
    let mut git = line("git", "waiting", &deaths);
    git["budget_millis"] = json!(1200);
    git["next_try"] = json!("in 4.2 s");
    git["cause"] = json!({ "text": "the server process was killed by signal 9 (SIGKILL)", "leaves": ["exit"],
        "stderr": "loading index\nfatal: out of memory\n" });
    let mut mail = line("mail", "parked", &[("up", 900), ("ending", 120), ("parked", 119)]);
    mail["budget_millis"] = json!(0);
    mail["next_try"] = json!("in 22 s");
    mail["cause"] = json!({ "text": "the server process exited with status 1", "leaves": ["exit"] });
    let mut crm = line("crm", "needs-auth", &[("dialing", 31), ("needs-auth", 30)]);
    crm["cause"] = json!({ "text": "the server requires a login: linetender login crm", "leaves": ["auth"] });
    let well = line("search", "up", &[("up", 3999)]);
    let servers = [
        counts("git", [1200, 1, 3, 7, 2, 0]),
        counts("mail", [40_000, 0, 12, 5, 0, 0]),
        counts("search", [9, 0, 0, 0, 0, 0]),
    ];
    let silent = Found { pid: 4100, reply: Reply::Silent(Silence::Stopped) };
    vec![found(4000, 7_300_000, &[git, mail, crm, well], &servers), silent]
}

fn model(found: Vec<Found>) -> Model {
    let mut model = Model::new(true);
    model.looked(looked(found));
    model
}

fn drawn(model: &Model, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| super::draw::draw(model, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(|y| row(y) + "\n").collect()
}

fn typed(model: &mut Model, keys: &str) -> Wish {
    let mut wish = Wish::Nothing;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            character => KeyCode::Char(character),
        };
        wish = press(model, KeyEvent::new(code, KeyModifiers::NONE));
    }
    wish
}

fn opened(found: Vec<Found>, server: &str) -> Model {
    let mut model = model(found);
    let key = Key { pid: 4000, server: Some(server.to_owned()) };
    let entry = |at: &str, state: &str, generation: u64, calls: Value| {
        json!({ "v": 1, "at": at, "holder": 4000, "door": "serve", "what": "state", "server": server, "generation": generation,
            "state": state, "budget_millis": 1200, "calls": calls,
            "cause": { "text": "the server process was killed by signal 9 (SIGKILL)", "leaves": ["exit"] } })
    };
    let lost = json!({ "answered": 4, "tool_error": 0, "refused": 0, "not_executed": 3, "unknown": 2, "cancelled": 0 });
    let entries = json!([
        entry("2026-11-17T05:41:24.123Z", "ending", 1, Value::Null),
        entry("2026-11-17T05:41:24.140Z", "waiting", 1, Value::Null),
        entry("2026-11-17T05:43:36.000Z", "ending", 2, lost),
        entry("2026-11-17T05:43:36.100Z", "waiting", 2, Value::Null)
    ]);
    let calls = json!([
        { "number": 7, "server": server, "method": "tools/call", "tool": "commit", "principal": "ci", "stage": "waiting for the server", "millis": 1200 },
        { "number": 8, "server": server, "method": "tools/list", "stage": "queued", "millis": 12 }]);
    model.detail = Some(Detail {
        key: key.clone(),
        calls: serde_json::from_value(calls).unwrap(),
        entries: serde_json::from_value(entries).unwrap(),
    });
    model.view = View::One { key, scroll: 0 };
    model
}

#[test]
fn a_quiet_day() {
    insta::assert_snapshot!(drawn(&model(quiet()), (140, 18)));
}

#[test]
fn a_server_of_a_fleet_says_which_gateway_runs_it() {
    let mut found = quiet();
    let Reply::Report(report) = &mut found[0].reply else { panic!("silent") };
    let placed = |server: &str, at: &str| json!({ "server": server, "runs_at": at, "here": at == "gw-1", "moves": false });
    let nodes =
        ["gw-1", "gw-2"].map(|node| json!({ "node": node, "version": "1", "runs": 1, "leaves": false }));
    let fleet = json!({ "fleet": "prod", "node": "gw-1", "connected": true, "nodes": nodes,
        "servers": [placed("git", "gw-2"), placed("search", "gw-1")] });
    report.fleet = Some(serde_json::from_value(fleet).unwrap());
    let all = drawn(&model(found.clone()), (140, 18));
    assert!(all.contains("git @gw-2 ") && !all.contains("search @"), "{all}");
    let one = drawn(&opened(found, "git"), (140, 36));
    assert!(one.contains("runs at       gateway gw-2; fleet prod, 2 gateways"), "{one}");
}

#[test]
fn a_storm_shows_what_needs_somebody_first() {
    insta::assert_snapshot!(drawn(&model(storm()), (200, 18)));
}

#[test]
fn the_smallest_terminal_shows_every_verdict() {
    insta::assert_snapshot!(drawn(&model(storm()), (60, 15)));
}

#[test]
fn eighty_columns() {
    insta::assert_snapshot!(drawn(&model(storm()), (80, 15)));
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    insta::assert_snapshot!(drawn(&model(storm()), (40, 10)));
}

#[test]
fn one_server_in_a_storm_with_what_its_last_death_took_along() {
    insta::assert_snapshot!(drawn(&opened(storm(), "git"), (140, 36)));
}

#[test]
fn one_server_in_a_narrow_terminal_is_scrolled() {
    let mut model = opened(storm(), "git");
    model.size = (60, 15);
    insta::assert_snapshot!("narrow", drawn(&model, (60, 15)));
    typed(&mut model, "G");
    let end = drawn(&model, (60, 15));
    insta::assert_snapshot!("narrow_end", end);
    typed(&mut model, "k");
    assert_ne!(drawn(&model, (60, 15)), end, "one line up from the end, not from far behind it");
}

#[test]
fn a_parked_server_and_one_that_needs_a_login_say_what_to_do() {
    insta::assert_snapshot!("parked", drawn(&opened(storm(), "mail"), (100, 20)));
    insta::assert_snapshot!("needs_auth", drawn(&opened(storm(), "crm"), (100, 20)));
}

#[test]
fn two_hundred_servers_are_scrolled_and_the_selected_one_stays_in_sight() {
    let lines: Vec<_> = (0..200).map(|at| line(&format!("server-{at:03}"), "up", &[("up", 400)])).collect();
    let mut model = model(vec![found(4000, 1000, &lines, &[])]);
    typed(&mut model, &"↓".repeat(120));
    insta::assert_snapshot!(drawn(&model, (100, 20)));
    typed(&mut model, "G");
    let end = drawn(&model, (100, 20));
    assert!(end.contains("▸server-199") && end.contains("server-185"), "{end}");
}

#[test]
fn every_size_can_be_drawn() {
    let models = [model(quiet()), model(storm()), opened(storm(), "git"), Model::new(false)];
    for (width, height) in
        [(1, 1), (60, 15), (61, 15), (79, 24), (109, 16), (110, 16), (133, 40), (171, 50), (250, 80)]
    {
        for model in &models {
            drawn(model, (width, height));
        }
    }
    let mut model = model(storm());
    typed(&mut model, "?");
    drawn(&model, (60, 15));
    typed(&mut model, " r");
    drawn(&model, (60, 15));
}

#[test]
fn help_and_questions_stand_over_the_rest() {
    let mut model = model(storm());
    typed(&mut model, "?");
    insta::assert_snapshot!("help", drawn(&model, (100, 26)));
    typed(&mut model, "?/git\nr");
    insta::assert_snapshot!("question", drawn(&model, (80, 15)));
}

#[test]
fn what_disturbs_is_asked_first_and_only_y_is_a_yes() {
    let mut model = model(storm());
    let redial = Order { pid: 4000, act: Act::Redial { server: "git".into() } };
    let park = Order { pid: 4000, act: Act::Park { server: "git".into() } };
    let wake = Order { pid: 4000, act: Act::Wake { server: "git".into() } };
    assert_eq!(typed(&mut model, "/git\nr"), Wish::Nothing);
    assert_eq!(model.over, Over::Confirm(redial.clone()));
    assert_eq!(typed(&mut model, "q"), Wish::Nothing, "the question has the keys");
    assert_eq!(typed(&mut model, "y"), Wish::Nothing, "it was answered");
    assert_eq!(typed(&mut model, "ry"), Wish::Do(redial));
    assert_eq!(typed(&mut model, "py"), Wish::Do(park));
    assert_eq!(typed(&mut model, "w"), Wish::Do(wake));
    assert_eq!(typed(&mut model, "q"), Wish::Leave);
}

#[test]
fn a_silent_process_is_told_nothing_and_names_the_servers_it_had() {
    let mut model = model(quiet());
    model.looked(looked(vec![Found { pid: 4000, reply: Reply::Silent(Silence::NoAnswer) }]));
    let shown = drawn(&model, (140, 15));
    assert!(shown.contains("calendar, git, sear…") && shown.contains("! silent"), "{shown}");
    assert_eq!(typed(&mut model, "r"), Wish::Nothing);
    assert!(model.notice.as_ref().is_some_and(|notice| notice.is_error));
    model.looked(looked(vec![Found { pid: 4000, reply: Reply::Silent(Silence::NoAnswer) }]));
    assert!(drawn(&model, (140, 15)).contains("calendar, git, sear…"), "also at the second look");
}

#[test]
fn calls_per_second_are_measured_by_the_clock_of_the_process() {
    let look = |age, calls| {
        looked(vec![found(4000, age, &[line("git", "up", &[])], &[counts("git", [calls, 0, 0, 0, 0, 0])])])
    };
    let mut model = Model::new(true);
    model.looked(look(10_000, 100));
    assert_eq!(model.all()[0].rate, None);
    model.looked(look(12_000, 150));
    assert_eq!(model.all()[0].rate, Some(25.0));
    // A process of the same number that began anew has no past.
    model.looked(look(500, 3));
    assert_eq!(model.all()[0].rate, None);
}

#[test]
fn the_selection_stays_with_its_server_when_the_order_changes() {
    let mut model = model(storm());
    typed(&mut model, "n↓↓");
    let selected = model.subject().unwrap().key.clone();
    typed(&mut model, "u");
    assert_eq!(model.subject().unwrap().key, selected);
    assert_eq!(model.shown()[0].name, "git", "it has the calls of which nobody knows");
    typed(&mut model, "u");
    assert_eq!(model.shown().last().unwrap().name, "git");
}

#[test]
fn x12_what_servers_call_themselves_is_no_command_to_the_terminal() {
    let mut evil = line("a\u{1b}[31m\u{202e}", "up\u{9b}5m", &[("\u{1b}c", 5)]);
    evil["cause"] = json!({ "text": "b\u{7}", "leaves": ["\u{1b}"], "stderr": "x\u{1b}[2J\ny\u{202e}" });
    evil["next_try"] = json!("\u{1b}[2J");
    let mut slow = counts("a\u{1b}[31m\u{202e}", [1; 6]);
    slow["slowest"][0]["what"] = json!("\u{1b}[2J");
    slow["slowest"][0]["verdict"] = json!("\u{1b}[2J");
    slow["ends"] = json!({ "\u{1b}[2J": 1 });
    let hostile = || vec![found(4000, 1, &[evil.clone()], &[slow.clone()])];
    for model in [model(hostile()), opened(hostile(), "a\u{1b}[31m\u{202e}")] {
        for size in [(60, 15), (140, 40)] {
            let shown = drawn(&model, size);
            assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{7}', '\u{202e}']), "{shown:?}");
            assert!(shown.contains(r"a\u{1b}[31"), "{shown}");
        }
    }
}

#[test]
fn without_colours_there_is_none_and_what_shouts_is_reversed() {
    let mut plain = model(storm());
    plain.colours = false;
    let mut terminal = Terminal::new(TestBackend::new(140, 20)).unwrap();
    terminal.draw(|frame| super::draw::draw(&plain, frame)).unwrap();
    let cells = &terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset)));
    assert!(cells.iter().any(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED)));
}
