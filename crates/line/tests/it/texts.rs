//! What a person and a model read, for each row. Read them aloud: would you know what to do?

use std::time::Duration;

use linetender::{CallError, Line, Raw, Server, ServerState, State};

use crate::kit::{bad, bad_with};
use crate::look::{badserver, eventually, in_time, kill, policy};

/// Times, sizes and paths differ from run to run; the words do not.
fn steady(text: &str) -> String {
    let mut text = text.to_owned();
    // What stands between these is shown as three dots.
    for (from, to) in [
        ("PATH searched: ", ")"),
        ("next try: ", ")"),
        ("next try: in ", "s."),
        ("bytes (", " bytes received"),
        ("replaced at ", ";"),
    ] {
        if let Some(at) = text.find(from).map(|at| at + from.len())
            && let Some(end) = text[at..].find(to)
        {
            text.replace_range(at..at + end, "…");
        }
    }
    for when in ["now.", "under way.", "in …s.", "on the next call."] {
        text = text.replace(&format!("next try: {when}"), "next try: ….");
    }
    // A server that was killed may be back before the text is written.
    text.replace(
        "linetender is connected to the server.",
        "linetender reconnects automatically; next try: ….",
    )
}

fn show(page: &mut String, row: &str, error: &CallError) {
    use std::fmt::Write as _;
    writeln!(page, "{row}\n  person: {}", steady(&error.to_string())).unwrap();
    let model = steady(&error.for_model()).replace('\n', "\n          ");
    writeln!(page, "  model:  {model}\n").unwrap();
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let mut page = String::new();

    let line = Line::open(Server::stdio("bad", ["linetender-no-such-command"]).reaper(badserver()));
    in_time(line.wait_for(|status| status.state == State::Parked)).await;
    show(&mut page, "S01 command not found", &in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err());

    let start = bad(&["--exit", "3", "--stderr", "Error: GITHUB_TOKEN=ghp_0123456789abcdef is not valid"]);
    start.until(State::Waiting).await;
    show(&mut page, "S02, S58 exits at start", &start.call("echo", "{}").await.unwrap_err());

    let login = bad(&["--exit", "1", "--stderr", "Error: 401 Unauthorized"]);
    login.until(State::Parked).await;
    show(&mut page, "S58 its login is refused", &login.call("echo", "{}").await.unwrap_err());

    let short = policy(|settings| settings.dial.start = Duration::from_millis(300));
    let flags = ["--deaf", "--stderr", "Please visit https://auth.example/authorize"];
    let person = bad_with(&flags, |server| server.policy(short));
    show(&mut page, "S58 it waits for a person", &person.call("echo", "{}").await.unwrap_err());

    let up = bad(&[]);
    for (row, tool, arguments) in [
        ("S05 killed in mid-call", "kill", "{}"),
        ("S11 half an answer", "half", "{}"),
        ("S07 closed its output", "close_stdout", "{}"),
        ("S15 an error without an id", "no_id", "{}"),
        ("S24 neither a result nor an error", "neither", "{}"),
    ] {
        up.works().await;
        in_time(up.line.list_tools()).await.unwrap();
        show(&mut page, row, &up.call(tool, arguments).await.unwrap_err());
    }

    let slow = policy(|settings| {
        settings.call.limit = Duration::from_millis(200);
        settings.limits.message = 100_000;
    });
    let slow = bad_with(&[], |server| server.policy(slow));
    slow.works().await;
    show(&mut page, "S09 no answer in time", &slow.call("hang", "{}").await.unwrap_err());
    show(
        &mut page,
        "S12 an answer over the cap",
        &slow.call("big", r#"{"bytes":200000}"#).await.unwrap_err(),
    );

    let stateful = policy(|settings| settings.state = ServerState::Process);
    let stateful = bad_with(&[], |server| server.policy(stateful));
    let pid = stateful.up().await;
    stateful.works().await;
    kill("-9", pid);
    stateful.back(1).await;
    show(&mut page, "S53 its context was lost", &stateful.call("echo", "{}").await.unwrap_err());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    stateful.works().await;
    show(
        &mut page,
        "S53 its context was lost with the call",
        &stateful.call("kill", "{}").await.unwrap_err(),
    );

    let closed = bad(&[]);
    closed.up().await;
    in_time(closed.line.close()).await;
    show(&mut page, "closed on purpose", &closed.call("echo", "{}").await.unwrap_err());

    let waits = policy(|settings| settings.call.wait_for_line = Duration::from_millis(50));
    let waits = bad_with(&["--start-delay-ms", "1000"], |server| server.policy(waits));
    let pid = waits.up().await;
    kill("-9", pid);
    eventually(|| (waits.line.status().state == State::Dialing).then_some(())).await;
    show(&mut page, "not up again in time", &waits.call("echo", "{}").await.unwrap_err());

    let parked = bad(&[]);
    parked.up().await;
    in_time(parked.line.park()).await;
    show(&mut page, "parked by an operator", &parked.call("echo", "{}").await.unwrap_err());

    insta::assert_snapshot!("texts", page);
}
