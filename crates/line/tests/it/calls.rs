//! S12, S21, and the verdicts on calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use linetender::{CallErrorKind, Deadline, Delivery, Options, Raw};

use crate::kit::{bad, bad_with};
use crate::look::{eventually, in_time, kill, policy, speaks, stopwatch};

#[tokio::test]
async fn s12_an_answer_over_the_cap_fails_its_call_alone() {
    let small = policy(|settings| settings.limits.message = 100_000);
    let bad = bad_with(&[], |server| server.policy(small));
    bad.up().await;
    let line = bad.line.clone();
    let other =
        tokio::task::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"o","ms":300}"#)).await });
    let start = stopwatch();
    let error = bad.call("big", r#"{"nonce":"a","bytes":200000}"#).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    speaks(&error);
    assert_eq!(error.kind, CallErrorKind::BadAnswer);
    assert!(error.cause.contains("longer than 100000 bytes"), "{error}");
    in_time(other).await.unwrap().unwrap();
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_at_once_and_the_server_hears_nothing_of_it() {
    let bad = bad(&[]);
    bad.up().await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for arguments in [r#"{"nonce":"a""#, "", "{} {}", &deep] {
        let error = in_time(bad.line.call_tool("echo", Raw(arguments))).await.unwrap_err();
        speaks(&error);
        assert_eq!(error.kind, CallErrorKind::Unreadable, "{error}");
        assert!(error.not_executed(), "{error}");
        let params = format!(r#"{{"name":"echo","arguments":{arguments}}}"#);
        let error = in_time(bad.line.request("tools/call", Raw(&params), Options::default())).await;
        assert_eq!(error.unwrap_err().kind, CallErrorKind::Unreadable);
    }
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s12_an_endless_answer_fails_its_call_alone() {
    let small = policy(|settings| settings.limits.message = 100_000);
    let bad = bad_with(&[], |server| server.policy(small));
    bad.up().await;
    let error = bad.call("endless", r#"{"nonce":"a","bytes":10000000}"#).await.unwrap_err();
    speaks(&error);
    assert_eq!(error.kind, CallErrorKind::BadAnswer);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s12_an_endless_line_without_an_id_ends_all_calls_in_flight_with_the_reason() {
    let small = policy(|settings| settings.limits.message = 100_000);
    let bad = bad_with(&[], |server| server.policy(small));
    bad.up().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let line = bad.line.clone();
    let other = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"o"}"#)).await });
    eventually(|| bad.book.runs().contains_key("o").then_some(())).await;
    let one = bad.call("endless_no_id", r#"{"nonce":"a","bytes":300000}"#).await.unwrap_err();
    for error in [one, in_time(other).await.unwrap().unwrap_err()] {
        speaks(&error);
        assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"));
        assert!(error.cause.contains("longer than 100000 bytes"), "{error}");
    }
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn progress_reaches_its_caller_before_the_answer_and_nobody_afterwards() {
    let bad = bad(&[]);
    bad.up().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let options = Options::default().on_progress(move |params| hears.lock().unwrap().push(params.to_owned()));
    let params =
        r#"{"name":"progress","arguments":{"nonce":"a","times":3,"ms":1},"_meta":{"progressToken":"mine"}}"#;
    in_time(bad.line.request("tools/call", Raw(params), options)).await.unwrap();
    let told = heard.lock().unwrap().clone();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|params| params.contains(r#""progressToken":"mine""#)), "{told:?}");
    // What comes after the answer is counted, and heard by nobody.
    eventually(|| (bad.line.odd().0 > 0).then_some(())).await;
    assert_eq!(heard.lock().unwrap().len(), 3);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn progress_can_be_read_as_a_stream_that_ends_with_its_call() {
    let bad = bad(&[]);
    let (options, mut progress) = Options::default().progress();
    let arguments = serde_json::json!({ "nonce": "a", "times": 3, "ms": 1 });
    let told = async {
        let mut told = Vec::new();
        while let Some(step) = progress.next().await {
            assert!(step.raw.contains("progressToken"), "{}", step.raw);
            told.push(step.progress);
        }
        told
    };
    let (answer, told) =
        in_time(async { tokio::join!(bad.line.call_tool_with("progress", arguments, options), told) }).await;
    answer.unwrap();
    assert_eq!(told, [Some(1.0), Some(2.0), Some(3.0)]);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_stream_of_progress_ends_with_its_call_although_the_call_was_never_written() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    kill("-STOP", pid);
    let full = serde_json::json!({ "nonce": "full", "more": "x".repeat(1_000_000) });
    let within = |millis| Options::default().deadline(Deadline::after(Duration::from_millis(millis)));
    let (options, mut progress) = within(200).progress();
    let calls = async {
        let full = bad.line.call_tool_with("echo", full, within(10_000));
        let queued = bad.line.call_tool_with("echo", serde_json::json!({ "nonce": "a" }), options);
        tokio::select! {
            biased;
            told = full => panic!("it cannot be written: {told:?}"),
            told = queued => assert!(told.unwrap_err().not_executed()),
        }
    };
    let progress = async { while progress.next().await.is_some() {} };
    in_time(Box::pin(async { tokio::join!(calls, progress) })).await;
    kill("-9", pid);
}

#[tokio::test]
async fn what_a_program_asks_is_typed_and_what_it_gets_can_be() {
    #[derive(serde::Serialize)]
    struct Arguments<'a> {
        nonce: &'a str,
    }
    let bad = bad(&[]);
    let answer = in_time(bad.line.call_tool("echo", Arguments { nonce: "typed" })).await.unwrap();
    assert!(answer.text().contains("typed") && !answer.is_tool_error(), "{}", answer.raw());
    assert!(answer.parse::<serde_json::Value>().unwrap()["content"].is_array());
    let echo =
        in_time(bad.line.list_tools()).await.unwrap().into_iter().find(|tool| tool.name == "echo").unwrap();
    assert!(echo.input_schema.is_some() && echo.raw().contains("\"echo\""), "{echo:?}");
    // Text that is meant as JSON, and was not said to be.
    let error = in_time(bad.line.call_tool("echo", r#"{"nonce":"text"}"#)).await.unwrap_err();
    assert_eq!((error.kind, error.not_executed()), (CallErrorKind::Unreadable, true));
    assert!(error.cause.contains("`Raw`"), "{error}");
    let error = in_time(bad.line.call_tool("echo", Raw("{nonce"))).await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Unreadable, "{error}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_its_total_time() {
    let bad = bad(&[]);
    bad.up().await;
    let within = |quiet, total| {
        let deadline =
            Deadline::Within { quiet: Duration::from_millis(quiet), total: Duration::from_millis(total) };
        Options::default().deadline(deadline).on_progress(|_| {})
    };
    let params = r#"{"name":"progress","arguments":{"nonce":"a","times":12,"ms":250}}"#;
    in_time(bad.line.request("tools/call", Raw(params), within(2_000, 20_000))).await.unwrap();
    // It goes on for a minute: an answer that is there when a late clock is looked at would win, and rightly.
    let params = r#"{"name":"progress","arguments":{"nonce":"b","times":600,"ms":100}}"#;
    let error = in_time(bad.line.request("tools/call", Raw(params), within(20_000, 600))).await.unwrap_err();
    speaks(&error);
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::TimedOut, "unknown"));
    assert!(error.cause.contains("still reported progress"), "{error}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_flood_of_list_changes_is_read_a_few_times_at_most() {
    let bad = bad(&[]);
    in_time(bad.line.list_tools()).await.unwrap();
    bad.call("flood_list_changed", r#"{"nonce":"a","times":2000}"#).await.unwrap();
    bad.works().await;
    // A flood of two thousand is a handful of readings, one at a time.
    eventually(|| (readings(&bad) >= 2).then_some(())).await;
    assert!(readings(&bad) <= 4, "{}", readings(&bad));
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_whose_lists_change_whenever_they_are_read_is_not_read_without_end() {
    let bad = bad(&["--restless"]);
    in_time(bad.line.list_tools()).await.unwrap();
    for _ in 0..100 {
        bad.works().await;
    }
    let start = stopwatch();
    eventually(|| (readings(&bad) >= 5).then_some(())).await;
    // Three at once, and then one a second.
    assert!(start.elapsed() > Duration::from_millis(500) && readings(&bad) <= 6, "{}", readings(&bad));
    bad.leaves_nothing().await;
}

fn readings(bad: &crate::kit::Bad) -> usize {
    let book = std::fs::read_to_string(bad.book.path()).unwrap();
    book.lines().filter(|line| line.starts_with("list ")).count()
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_is_refused_at_once() {
    let bad = bad(&[]);
    let answer = bad.call("question", r#"{"nonce":"a"}"#).await.unwrap();
    assert!(answer.raw().contains("-32601"), "{}", answer.raw());
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s21_a_dropped_call_is_cancelled_and_the_line_unharmed() {
    let bad = bad(&[]);
    bad.up().await;
    let dropped = tokio::time::timeout(
        Duration::from_millis(50),
        bad.line.call_tool("sleep", Raw(r#"{"nonce":"a","ms":200}"#)),
    );
    assert!(dropped.await.is_err());
    bad.works().await;
    // Its late answer disturbs nobody.
    eventually(|| (bad.line.odd().0 > 0).then_some(())).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_recycled_server_answers_what_it_has_and_the_next_one_the_rest() {
    let bad = bad(&[]);
    bad.up().await;
    let line = bad.line.clone();
    let under_way =
        tokio::task::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"s","ms":300}"#)).await });
    eventually(|| (bad.book.runs().get("s") == Some(&1)).then_some(())).await;
    in_time(bad.line.recycle()).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 2);
    assert!(in_time(under_way).await.unwrap().is_ok(), "it was given its time");
    assert_eq!(bad.line.status().budget, 5000, "and nothing was charged");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_tool_error_is_an_answer() {
    let bad = bad(&[]);
    let answer = bad.call("tool_error", "{}").await.unwrap();
    assert!(answer.raw().contains(r#""isError":true"#));
    assert!(answer.is_tool_error());
    let error = in_time(bad.line.request("no/such/method", (), Options::default())).await.unwrap_err();
    assert_eq!((error.kind, error.delivery), (CallErrorKind::ErrorAnswer, Delivery::Answered));
    assert_eq!(error.answered.unwrap().code(), Some(-32601));
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_safe_call_of_unknown_outcome_is_sent_again_and_an_unsafe_one_is_not() {
    let trusting = policy(|settings| settings.trust_annotations = true);
    // The second call kills it, each time it is started: `echo` is declared read-only, `write` is not.
    for (tool, listed, works) in [("write", false, false), ("write", true, true), ("echo", false, true)] {
        let bad = bad_with(&["--die-on-call", "2"], |server| {
            let server = server.policy(trusting);
            if listed { server.safe_tool("write") } else { server }
        });
        bad.works().await;
        in_time(bad.line.list_tools()).await.unwrap();
        let outcome = bad.call(tool, r#"{"nonce":"n"}"#).await;
        assert_eq!(outcome.is_ok(), works, "{tool} {listed}: {outcome:?}");
        if let Err(error) = outcome {
            speaks(&error);
            assert_eq!(error.delivery.name(), "unknown");
        }
        bad.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_deadline_of_ones_own_is_kept() {
    let bad = bad(&[]);
    bad.up().await;
    let options = Options::default().deadline(Deadline::after(Duration::from_millis(100)));
    let start = stopwatch();
    let params = r#"{"name":"hang","arguments":{"nonce":"a"}}"#;
    let error = in_time(bad.line.request("tools/call", Raw(params), options)).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    speaks(&error);
    assert_eq!(error.kind, CallErrorKind::TimedOut);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn too_many_calls_are_refused_at_once() {
    let narrow = policy(|settings| {
        settings.limits.in_flight = 2;
        settings.limits.queue = 3;
    });
    let bad = bad_with(&[], |server| server.policy(narrow));
    bad.up().await;
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let line = bad.line.clone();
            tokio::task::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"a","ms":200}"#)).await })
        })
        .collect();
    let mut refused = 0;
    for call in calls {
        if let Err(error) = in_time(call).await.unwrap() {
            speaks(&error);
            assert_eq!(error.kind, CallErrorKind::Overloaded);
            refused += 1;
        }
    }
    assert_eq!(refused, 5);
    bad.leaves_nothing().await;
}
