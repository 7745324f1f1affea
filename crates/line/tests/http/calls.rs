//! H03, H05, H10–H12, H16: one exchange goes wrong, and its call alone ends.

use std::time::Duration;

use linetender::{CallErrorKind, Deadline, Delivery, Era, Options, Raw, RetryReason, ServerRefusal};
use linetender_badserver::webserver::Fault;

use crate::kit::{ERAS, manners, web, web_with};
use crate::look::{eventually, in_time, policy, speaks, stopwatch};

#[tokio::test]
async fn calls_work_in_both_eras_and_every_kind_of_answer() {
    use linetender_badserver::webserver::Answers;
    for era in ERAS {
        for answers in [Answers::Json, Answers::Sse, Answers::Primed] {
            let web = web_with(manners(era), |server| server).await;
            web.server.set(|manners| manners.answers = answers);
            for _ in 0..3 {
                web.works().await;
            }
            assert_eq!(web.generation(), 1);
            web.leaves_nothing().await;
        }
    }
}

/// A tool, what becomes of its call, and how often it ran.
const ENDS: &[(&str, &str, &str, &str)] = &[
    ("reset_after_run", "{}", "unknown", "H03"),
    ("half_body", "{}", "unknown", "H05"),
    ("cut_sse", "{}", "unknown", "H06"),
    ("html", "{}", "unknown", "H13"),
    ("accepted", "{}", "unknown", "202"),
    ("bomb", r#"{"bytes":10000000}"#, "unknown", "H16"),
    ("status", r#"{"code":500}"#, "unknown", "H12"),
    ("status", r#"{"code":502}"#, "unknown", "H12"),
    ("status", r#"{"code":504}"#, "unknown", "H12"),
    ("status", r#"{"code":503,"retry_after":1}"#, "unknown", "H11"),
    ("status", r#"{"code":413}"#, "refused", "H32"),
    ("status", r#"{"code":413,"run":true}"#, "refused", "H32"),
    ("status", r#"{"code":405,"run":true}"#, "refused", "H32"),
    ("status", r#"{"code":429,"run":true}"#, "refused", "H32"),
    ("status", r#"{"code":503,"run":true}"#, "unknown", "H32"),
];

#[tokio::test]
async fn a_failed_exchange_ends_its_call_alone_with_what_is_known() {
    for era in ERAS {
        let web = web(era).await;
        let other = web.line.clone();
        let busy =
            tokio::task::spawn(
                async move { other.call_tool("sleep", Raw(r#"{"nonce":"s","ms":2000}"#)).await },
            );
        for (tool, arguments, delivery, row) in ENDS {
            let nonce = arguments.replacen('{', r#"{"nonce":"n","#, 1).replace(",}", "}");
            let start = stopwatch();
            let error = web.call(tool, &nonce).await.expect_err(row);
            assert!(start.elapsed() < Duration::from_secs(5), "{row}");
            speaks(&error);
            let kind =
                if *delivery == "refused" { CallErrorKind::ServerRefused } else { CallErrorKind::Lost };
            assert_eq!(error.kind, kind, "{row} {error}");
            assert!(!error.for_model().contains("safe"), "{}", error.for_model());
            assert_eq!(error.delivery.name(), *delivery, "{row} {tool} {arguments} {error}");
            assert!(web.runs("n") <= 1, "{row} ran twice");
            std::fs::write(web.book.path(), "").unwrap();
            web.works().await;
        }
        in_time(busy).await.unwrap().expect("nobody else is disturbed");
        assert_eq!(web.generation(), 1, "the line lives on");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h12_an_error_status_that_carries_our_id_is_an_answer() {
    for era in ERAS {
        let web = web(era).await;
        let answer = web.call("status", r#"{"nonce":"n","code":500,"with_id":true}"#).await.unwrap_err();
        assert_eq!(answer.kind, CallErrorKind::ErrorAnswer);
        let answer = web.call("no_id_200", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert_eq!(answer.kind, CallErrorKind::ErrorAnswer, "an error without an id still ends its own call");
        web.leaves_nothing().await;
    }
}

/// What a server answers to a call with 429, whether or not it has executed it.
fn throttles(run: bool, retry_after: u32) -> Fault {
    Fault::new("status", serde_json::json!({ "code": 429, "retry_after": retry_after, "run": run }))
}

#[tokio::test]
async fn h32_a_throttled_call_is_refused_and_not_sent_again_whether_it_ran_or_not() {
    for (era, run) in ERAS.into_iter().flat_map(|era| [(era, false), (era, true)]) {
        let web = web(era).await;
        web.server.set(|manners| manners.fault_on("tools/call", throttles(run, 1)));
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        speaks(&error);
        assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::RateLimited), "{error}");
        assert_eq!((web.runs("n"), web.generation()), (u32::from(run), 1));
        let text = error.for_model();
        for words in ["says that it did not execute the call", "cannot check", "asked to retry in 1 s"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(error.fields()["retryAfter"], 1);
        web.server.set(|manners| manners.faults.clear());
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h11_with_permission_a_throttled_call_waits_as_long_as_it_was_told_and_runs_once() {
    for era in ERAS {
        let permitted =
            policy(|settings| settings.retry_on = settings.retry_on.with(RetryReason::RateLimited));
        let web = web_with(manners(era), |server| server.policy(permitted)).await;
        web.server.set(|manners| manners.fault_on("tools/call", throttles(false, 1).times(1)));
        let start = stopwatch();
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(900), "{:?}", start.elapsed());
        assert_eq!(web.runs("n"), 1);
        // Longer than the call has: it is told at once.
        web.server.set(|manners| manners.fault_on("tools/call", throttles(false, 20)));
        let options = Options::default().deadline(Deadline::after(Duration::from_secs(5)));
        let params = r#"{"name":"write","arguments":{"nonce":"m"}}"#;
        let start = stopwatch();
        let error = in_time(web.line.request("tools/call", Raw(params), options)).await.unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2));
        speaks(&error);
        assert_eq!(error.delivery.name(), "refused", "{error}");
        assert_eq!((web.runs("m"), web.generation()), (0, 1));
        web.server.set(|manners| manners.faults.clear());
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h10_a_header_that_the_server_wants_otherwise_is_mended_unseen() {
    let web = web(Era::Modern).await;
    web.call("routed", r#"{"nonce":"a","region":"north"}"#).await.unwrap();
    let sent = web.server.seen().into_iter().rev().find(|seen| seen.header("mcp-param-region").is_some());
    assert!(sent.is_some(), "the argument is in a header");
    web.server.set(|manners| manners.param_header = "Zone".into());
    web.call("routed", r#"{"nonce":"b","region":"north"}"#).await.unwrap();
    assert_eq!((web.runs("b"), web.generation()), (1, 1));
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h16_slow_and_endless_bodies_end_by_deadline_or_cap() {
    let small = policy(|settings| {
        settings.limits.message = 1_000_000;
        settings.call.limit = Duration::from_secs(2);
        settings.call.cap = Duration::from_secs(2);
    });
    for era in ERAS {
        let web = web_with(manners(era), |server| server.policy(small)).await;
        let before = resident();
        for tool in ["endless_body", "endless_event"] {
            let start = stopwatch();
            let error = web.call(tool, r#"{"nonce":"n"}"#).await.unwrap_err();
            speaks(&error);
            assert!(error.cause.contains("longer than 1000000"), "{tool}: {error}");
            assert!(start.elapsed() < Duration::from_secs(5));
        }
        let error = web.call("drip", r#"{"nonce":"n","ms":100}"#).await.unwrap_err();
        assert_eq!(error.kind, CallErrorKind::TimedOut, "{error}");
        assert!(resident() < before + 64 * 1024, "{} KiB", resident() - before);
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Elsewhere memory is not looked at.
#[cfg(not(target_os = "linux"))]
const fn resident() -> u64 {
    0
}

#[tokio::test]
async fn a_cancelled_call_ends_at_the_server_as_its_era_wants() {
    for era in ERAS {
        let web = web(era).await;
        let line = web.line.clone();
        let dropped =
            tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"h"}"#)).await });
        eventually(|| web.book.runs().contains_key("h").then_some(())).await;
        // A call that was given up is followed by a probe, which may open a connection.
        let closed = || {
            let counters = web.server.counters();
            counters.connections - counters.open as u64
        };
        let before = closed();
        dropped.abort();
        match era {
            Era::Legacy => {
                let told = || {
                    let seen = web.server.seen();
                    seen.iter()
                        .any(|seen| seen.method.as_deref() == Some("notifications/cancelled"))
                        .then_some(())
                };
                eventually(told).await;
            }
            Era::Modern => {
                // Its connection is closed; those that are left are idle ones, and the stream that listens.
                let start = stopwatch();
                eventually(|| (closed() > before).then_some(())).await;
                assert!(
                    start.elapsed() < Duration::from_secs(2),
                    "that was an idle one, which was old enough"
                );
                let seen = web.server.seen();
                assert!(!seen.iter().any(|seen| seen.method.as_deref() == Some("notifications/cancelled")));
            }
        }
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn progress_comes_on_the_calls_own_stream() {
    use linetender_badserver::webserver::Answers;
    for era in ERAS {
        let web = web(era).await;
        web.server.set(|manners| manners.answers = Answers::Sse);
        let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let options = Options::default().on_progress(move |params| tell.send(params.to_owned()).unwrap());
        let params = r#"{"name":"progress","arguments":{"nonce":"p","n":3,"ms":1}}"#;
        in_time(web.line.request("tools/call", Raw(params), options)).await.unwrap();
        let mut told = 0;
        while heard.try_recv().is_ok() {
            told += 1;
        }
        assert_eq!(told, 3);
        web.leaves_nothing().await;
    }
}
