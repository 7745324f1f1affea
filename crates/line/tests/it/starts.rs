//! S01–S03: servers that do not start, or take their time; and the eras.

use std::time::Duration;

use linetender::{CallErrorKind, Era, Eras, Line, NextTry, Raw, Refusal, Server, State};

use crate::kit::{Dir, bad, bad_with};
use crate::look::{in_time, policy, speaks, stopwatch};

#[tokio::test]
async fn s01_a_command_that_is_not_there_parks_at_once_and_says_what_was_searched() {
    let server = Server::stdio("bad", ["linetender-no-such-command"]).reaper(crate::look::badserver());
    let line = Line::open(server);
    let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
    assert_eq!(status.budget, 5000, "no budget is spent on it");
    let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    assert!(
        error.cause.contains("linetender-no-such-command") && error.cause.contains("PATH searched"),
        "{error}"
    );
    assert!(error.not_executed());
    let NextTry::In(wait) = error.next_try else { panic!("{}", error.next_try) };
    assert!((290..=300).contains(&wait.as_secs()), "{}", error.next_try);
    in_time(line.close()).await;
}

#[tokio::test]
async fn s02_an_exit_before_the_first_reply_is_told_with_status_and_stderr() {
    let bad = bad(&["--exit", "3", "--stderr", "no API key"]);
    let error = bad.call("echo", "{}").await.unwrap_err();
    speaks(&error);
    assert!(error.cause.contains("exited with status 3"), "{error}");
    assert_eq!(error.stderr.as_deref(), Some("no API key"));
    assert!(bad.line.status().budget < 5000);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s03_a_slow_first_start_is_waited_for() {
    let bad = bad(&["--start-delay-ms", "1500"]);
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_start_that_takes_too_long_is_ended() {
    let quick = policy(|settings| settings.dial.start = Duration::from_millis(200));
    let bad = bad_with(&["--deaf"], |server| server.policy(quick));
    let error = bad.call("echo", "{}").await.unwrap_err();
    speaks(&error);
    assert!(error.cause.contains("within the start timeout") || error.cause.contains("in time"), "{error}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn either_era_is_found_and_remembered() {
    for (era, generation) in [("both", 1), ("legacy", 1), ("modern", 1), ("exit-on-discover", 2)] {
        let bad = bad_with(&["--era", era], |server| server.eras(Eras::Auto));
        bad.works().await;
        let status = bad.line.status();
        assert_eq!(status.generation, generation, "{era}");
        assert_eq!(status.budget, 5000, "{era}: the one respawn after a probe is free");
        let pid = bad.pid().await;
        crate::look::kill("-9", pid);
        bad.back(status.generation).await;
        assert_eq!(bad.line.status().generation, generation + 1, "{era}: what it speaks is known by then");
        bad.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_server_that_is_silent_when_asked_for_its_era_is_asked_otherwise() {
    let quick = policy(|settings| {
        settings.dial.start = Duration::from_millis(800);
        settings.dial.probe_wait = Duration::from_millis(100);
    });
    let bad = bad_with(&["--era", "silent-on-discover"], |server| server.eras(Eras::Auto).policy(quick));
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1, "on the same pipe");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_modern_only_server_refuses_a_legacy_line_with_its_own_words() {
    let bad = bad_with(&["--era", "modern"], |server| server.eras(Eras::Only(Era::Legacy)));
    let error = bad.call("echo", "{}").await.unwrap_err();
    assert!(error.cause.contains("modern only"), "{error}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s16_a_crash_loop_is_parked_and_refuses_at_once() {
    // It has answered once: what never did is started seldom (S58).
    let dir = Dir::new();
    let fixed = dir.file("fixed");
    std::fs::write(&fixed, "").unwrap();
    let bad = bad(&["--until-fixed", fixed.parent().unwrap().to_str().unwrap()]);
    let pid = bad.up().await;
    std::fs::remove_file(&fixed).unwrap();
    crate::look::kill("-9", pid);
    bad.until(State::Parked).await;
    assert_eq!(bad.line.status().generation, 6);
    let start = stopwatch();
    let error = bad.call("echo", "{}").await.unwrap_err();
    let took = start.elapsed();
    speaks(&error);
    assert!(matches!(error.kind, CallErrorKind::Refused(_)));
    assert_eq!(error.stderr.as_deref(), Some("no API key"));
    assert!(took.as_millis() < 50, "{took:?}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s33_a_folder_that_is_not_there_parks_at_once_and_is_named() {
    let server = Server::stdio("bad", [crate::look::badserver()]).reaper(crate::look::badserver());
    let line = Line::open(server.dir("/nowhere/at/all"));
    let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    assert!(error.cause.contains("cannot enter the working directory /nowhere/at/all: "), "{error}");
    #[cfg(unix)]
    assert!(error.cause.contains("/nowhere/at/all: no such file or directory"), "{error}");
    let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
    assert_eq!(status.budget, 5000, "no budget is spent on it");
    in_time(line.close()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn s33_a_program_that_is_no_mcp_server_is_named_within_a_second() {
    let utf_16 = r#"printf '{\0"\0j\0s\0o\0n\0r\0p\0c\0"\0}\0\n\0'; exec sleep 600"#;
    for (argv, said) in
        [(&["cat"][..], "it echoes its input"), (&["sh", "-c", utf_16], "it writes UTF-16, and MCP is UTF-8")]
    {
        let took = stopwatch();
        let line = Line::open(Server::stdio("bad", argv).reaper(crate::look::badserver()));
        let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
        speaks(&error);
        assert!(error.cause.contains("not an MCP server") && error.cause.contains(said), "{error}");
        assert!(took.elapsed().as_secs() < 5, "{:?}", took.elapsed());
        let status = in_time(line.wait_for(|status| status.state == State::Parked)).await;
        assert_eq!(status.budget, 5000, "no budget is spent on it");
        in_time(line.close()).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn s33_what_a_banner_said_is_in_the_handshakes_error() {
    let quick = policy(|settings| settings.dial.handshake = Duration::from_millis(300));
    let banner = ["sh", "-c", "echo Usage: frobnicate FILE; exec sleep 600"];
    let line = Line::open(Server::stdio("bad", banner).reaper(crate::look::badserver()).policy(quick));
    let error = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    speaks(&error);
    assert!(error.cause.contains("Usage: frobnicate FILE"), "{error}");
    in_time(line.close()).await;
}

#[tokio::test]
async fn s58_a_server_whose_login_is_refused_logs_in_once_however_often_an_agent_calls() {
    let flags = ["--exit", "1", "--stderr", "Error: 401 Unauthorized"];
    let bad = bad_with(&flags, |server| server.eras(Eras::Auto));
    for _ in 0..5 {
        let error = bad.call("echo", "{}").await.unwrap_err();
        speaks(&error);
        assert_eq!(error.kind, CallErrorKind::Refused(Refusal::LoginRefused), "{error}");
        assert!(error.not_executed(), "{error}");
        assert_eq!(error.stderr.as_deref(), Some("Error: 401 Unauthorized"));
        let model = error.for_model();
        assert!(model.contains("status 1") && model.contains("linetender redial bad"), "{model}");
        let NextTry::In(wait) = error.next_try else { panic!("{}", error.next_try) };
        assert!((570..=600).contains(&wait.as_secs()), "{}", error.next_try);
    }
    assert_eq!(bad.book.writers().len(), 1, "each start is a login");
    in_time(bad.line.redial()).await.unwrap_err();
    assert_eq!(bad.book.writers().len(), 2, "an operator's word starts it at any time");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s58_calls_do_not_hurry_a_server_that_never_answered() {
    let bad = bad(&["--exit", "3", "--stderr", "no network"]);
    for _ in 0..5 {
        let error = bad.call("echo", "{}").await.unwrap_err();
        speaks(&error);
        assert_eq!(error.kind, CallErrorKind::Refused(Refusal::Waiting), "{error}");
        let NextTry::In(wait) = error.next_try else { panic!("{}", error.next_try) };
        assert!(wait <= Duration::from_secs(10), "{}", error.next_try);
        assert!(error.cause.contains("status 3"), "{error}");
        assert_eq!(error.stderr.as_deref(), Some("no network"));
    }
    assert_eq!(bad.book.writers().len(), 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s58_a_start_that_waits_for_a_person_goes_on_while_its_caller_is_told() {
    let quick = policy(|settings| {
        settings.dial.start = Duration::from_millis(300);
        settings.call.wait_for_line = Duration::from_millis(100);
    });
    let flags = ["--start-delay-ms", "1500", "--stderr", "Please visit https://auth.example/authorize"];
    let bad = bad_with(&flags, |server| server.policy(quick));
    let told = bad.call("echo", "{}").await.unwrap_err();
    speaks(&told);
    assert_eq!(told.kind, CallErrorKind::HeldTooLong);
    assert_eq!(told.next_try, NextTry::UnderWay);
    assert!(told.cause.contains("still starting"), "{told}");
    assert!(told.stderr.as_ref().unwrap().contains("https://auth.example/authorize"), "{told:?}");
    bad.until(State::Up).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 1);
    assert_eq!(bad.book.writers().len(), 1);
    bad.leaves_nothing().await;
}
