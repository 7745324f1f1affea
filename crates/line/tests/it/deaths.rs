//! S04–S11, S18–S23, S25: servers that die, and what is left.

use std::time::Duration;

#[cfg(target_os = "linux")]
use linetender::State;
use linetender::{CallErrorKind, Event, Kind, Raw};
#[cfg(unix)]
use linetender::{Line, Server};

use crate::kit::{Dir, bad, bad_with};
use crate::look::{KILLED, children, eventually, in_time, kill, lives, policy, speaks, stopwatch};

#[cfg(target_os = "linux")]
fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

/// How much lies unread in the pipe to a process.
#[cfg(target_os = "linux")]
fn unread(pid: i32) -> u64 {
    let pipe = std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap();
    rustix::io::ioctl_fionread(&pipe).unwrap()
}

#[tokio::test]
async fn s04_a_killed_idle_server_is_back_with_the_next_generation() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    let tools = in_time(bad.line.list_tools()).await.unwrap();
    kill("-9", pid);
    let status = bad.back(1).await;
    assert_eq!(status.generation, 2);
    bad.works().await;
    let again = eventually(|| {
        let line = bad.line.clone();
        (line.status().generation == 2).then_some(line)
    })
    .await;
    assert_eq!(in_time(again.list_tools()).await.unwrap(), tools, "the list is the same, byte for byte");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s05_twenty_calls_in_flight_each_get_one_outcome_at_once() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let line = bad.line.clone();
            tokio::task::spawn(async move {
                let arguments = format!(r#"{{"nonce":"n{number}"}}"#);
                (number, line.call_tool("hang", Raw(&arguments)).await)
            })
        })
        .collect();
    eventually(|| (bad.book.runs().len() == 20).then_some(())).await;
    let start = stopwatch();
    kill("-9", pid);
    for call in calls {
        let (_, outcome) = in_time(call).await.unwrap();
        let error = outcome.unwrap_err();
        speaks(&error);
        assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"));
        assert!(error.cause.contains(KILLED), "{error}");
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    bad.works().await;
    assert!(bad.book.runs().values().all(|runs| *runs == 1));
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s05_what_the_dead_server_never_read_is_run_by_the_next_one_unseen() {
    // Reads byte by byte, does one thing at a time, and is killed while it sleeps: the rest lies in the pipe.
    let bad = bad(&["--careful", "--single-threaded"]);
    let pid = bad.up().await;
    let line = bad.line.clone();
    let first =
        tokio::task::spawn(
            async move { line.call_tool("sleep", Raw(r#"{"nonce":"first","ms":60000}"#)).await },
        );
    eventually(|| bad.book.runs().contains_key("first").then_some(())).await;
    let rest: Vec<_> = (0..10)
        .map(|number| {
            let line = bad.line.clone();
            tokio::task::spawn(async move {
                line.call_tool("write", Raw(&format!(r#"{{"nonce":"r{number}"}}"#))).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    kill("-9", pid);
    assert_eq!(in_time(first).await.unwrap().unwrap_err().delivery.name(), "unknown");
    for call in rest {
        in_time(call).await.unwrap().expect("it was provably not executed, so it is sent again");
    }
    let runs = bad.book.runs();
    assert!((0..10).all(|number| runs[&format!("r{number}")] == 1), "{runs:?}");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s06_a_grandchild_that_holds_the_pipes_hides_nothing() {
    let bad = bad(&["--grandchild"]);
    let pid = bad.up().await;
    let line = bad.line.clone();
    let call = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"a"}"#)).await });
    eventually(|| bad.book.runs().contains_key("a").then_some(())).await;
    let start = stopwatch();
    kill("-9", pid);
    assert_eq!(in_time(call).await.unwrap().unwrap_err().delivery.name(), "unknown");
    assert!(start.elapsed() < Duration::from_secs(2));
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s07_a_closed_output_ends_calls_at_once() {
    let bad = bad(&[]);
    bad.up().await;
    let start = stopwatch();
    let error = bad.call("close_stdout", r#"{"nonce":"a"}"#).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    speaks(&error);
    assert!(error.cause.contains("closed its stdout"), "{error}");
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s08_a_closed_input_is_noticed_by_the_next_call_which_works_all_the_same() {
    let bad = bad(&["--single-threaded"]);
    bad.up().await;
    bad.call("close_stdin", r#"{"nonce":"a"}"#).await.unwrap();
    // It answers before it closes its input. Nothing on Windows proves that a call which came in between was not read: the end is
    // waited for there, which no call is needed to notice.
    if cfg!(windows) {
        bad.back(1).await;
    }
    bad.works().await;
    assert_eq!(bad.line.status().generation, 2);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s09_a_stopped_server_is_found_out_and_replaced() {
    let quick = policy(|settings| {
        settings.call.limit = Duration::from_millis(200);
        settings.call.abandoned_after = Duration::from_millis(300);
        settings.probe.timeout = Duration::from_millis(100);
        settings.probe.keepalive = Duration::from_millis(100);
    });
    let bad = bad_with(&[], |server| server.policy(quick));
    let pid = bad.up().await;
    kill("-STOP", pid);
    let error = bad.call("write", r#"{"nonce":"a"}"#).await.unwrap_err();
    speaks(&error);
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::TimedOut, "unknown"));
    // It is replaced for somebody who waits, and not before.
    in_time(async { while bad.call("echo", r#"{"nonce":"b"}"#).await.is_err() {} }).await;
    assert_eq!(bad.line.status().generation, 2);
    assert!(!lives(pid));
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s09_a_busy_server_is_left_alone() {
    let quick = policy(|settings| {
        settings.probe.timeout = Duration::from_millis(50);
        settings.probe.keepalive = Duration::from_millis(50);
    });
    let bad = bad_with(&["--single-threaded"], |server| server.policy(quick));
    bad.up().await;
    bad.call("sleep", r#"{"nonce":"a","ms":1000}"#).await.unwrap();
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s10_a_server_that_never_reads_blocks_nobody() {
    let quick = policy(|settings| settings.call.limit = Duration::from_millis(300));
    let bad = bad_with(&["--single-threaded"], |server| server.policy(quick));
    bad.up().await;
    let line = bad.line.clone();
    let hang = tokio::task::spawn(async move { line.call_tool("hang", Raw(r#"{"nonce":"a"}"#)).await });
    eventually(|| bad.book.runs().contains_key("a").then_some(())).await;
    let large = format!(r#"{{"nonce":"b","x":"{}"}}"#, "x".repeat(40_000));
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (line, large) = (bad.line.clone(), large.clone());
            tokio::task::spawn(async move { line.call_tool("write", Raw(&large)).await })
        })
        .collect();
    let mut not_executed = 0;
    for call in calls {
        let error = in_time(call).await.unwrap().unwrap_err();
        speaks(&error);
        not_executed += u32::from(error.not_executed());
    }
    assert!(not_executed >= 15, "what never left the queue was not executed: {not_executed}");
    let _ = in_time(hang).await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s11_half_a_line_of_its_own_is_no_answer() {
    let bad = bad(&[]);
    bad.up().await;
    let error = bad.call("half", r#"{"nonce":"a"}"#).await.unwrap_err();
    speaks(&error);
    assert_eq!(error.delivery.name(), "unknown");
    bad.works().await;
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s11_a_line_of_ours_that_was_half_read_was_not_executed() {
    // It sleeps while we write a line that is longer than its pipe: at most half of it can have been read.
    let bad = bad(&["--careful", "--single-threaded"]);
    let pid = bad.up().await;
    let line = bad.line.clone();
    let first =
        tokio::task::spawn(
            async move { line.call_tool("sleep", Raw(r#"{"nonce":"first","ms":60000}"#)).await },
        );
    eventually(|| bad.book.runs().contains_key("first").then_some(())).await;
    let line = bad.line.clone();
    let long = format!(r#"{{"nonce":"half","x":"{}"}}"#, "x".repeat(200_000));
    let half = tokio::task::spawn(async move { line.call_tool("write", Raw(&long)).await });
    // The pipe takes 64 KiB of it, and no more.
    eventually(|| (unread(pid) > 60_000).then_some(())).await;
    kill("-9", pid);
    assert_eq!(in_time(first).await.unwrap().unwrap_err().delivery.name(), "unknown");
    in_time(half).await.unwrap().expect("half a line runs nothing, so it is sent again");
    assert_eq!(bad.book.runs()["half"], 1);
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s25_a_reaper_that_is_killed_while_the_line_closes_leaves_nothing_either() {
    let slow = policy(|settings| settings.close.stdin = Duration::from_secs(60));
    let bad = bad_with(&["--ignore-eof"], |server| server.policy(slow));
    let pid = bad.up().await;
    let line = bad.line.clone();
    let closing = tokio::task::spawn(async move { line.close().await });
    bad.until(State::Ending).await;
    assert!(lives(pid));
    kill("-9", parent(pid));
    in_time(closing).await.unwrap();
    assert!(!lives(pid), "it was not gone, only unwatched");
    bad.leaves_nothing().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_redial_that_fails_says_why() {
    let dir = Dir::new();
    let gone = dir.file("badserver");
    std::fs::copy(crate::look::badserver(), &gone).unwrap();
    let server = Server::stdio("bad", [&gone]).reaper(crate::look::badserver());
    let line = Line::open(server);
    in_time(line.ready()).await.unwrap();
    std::fs::remove_file(&gone).unwrap();
    let asked: Vec<_> = (0..10)
        .map(|_| {
            let line = line.clone();
            tokio::task::spawn(async move { line.redial().await })
        })
        .collect();
    for ask in asked {
        let error = in_time(ask).await.unwrap().unwrap_err();
        speaks(&error);
        assert!(error.cause.contains("cannot run"), "{error}");
    }
    assert_eq!(line.status().generation, 2, "ten that ask are one dial");
    in_time(line.close()).await;
}

#[tokio::test]
async fn s18_a_server_that_ignores_end_of_file_and_term_is_killed_and_that_is_free() {
    let quick = policy(|settings| {
        settings.close.stdin = Duration::from_millis(100);
        settings.close.term = Duration::from_millis(100);
    });
    let bad = bad_with(&["--ignore-eof"], |server| server.policy(quick));
    bad.up().await;
    bad.works().await;
    in_time(bad.line.redial()).await.unwrap();
    bad.back(1).await;
    assert_eq!(bad.line.status().budget, 5000);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s19_planned_teardowns_are_free_and_keep_their_distance() {
    let bad = bad(&[]);
    bad.up().await;
    for generation in 1..=10 {
        bad.works().await;
        in_time(bad.line.redial()).await.unwrap();
        bad.back(generation).await;
    }
    let status = bad.line.status();
    assert_eq!((status.budget, status.generation), (5000, 11));
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s20_fifty_redials_at_once_are_one_dial() {
    let bad = bad(&[]);
    bad.up().await;
    bad.works().await;
    let asked: Vec<_> = (0..50)
        .map(|_| {
            let line = bad.line.clone();
            tokio::task::spawn(async move { line.redial().await })
        })
        .collect();
    for ask in asked {
        assert_eq!(in_time(ask).await.unwrap().unwrap(), 2, "all are told what came of it");
    }
    assert_eq!(bad.line.status().generation, 2);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s22_a_list_that_really_changed_is_told_once() {
    let dir = Dir::new();
    let file = dir.file("tool");
    let bad = bad_with(&["--changing", file.to_str().unwrap()], |server| server);
    bad.up().await;
    in_time(bad.line.list_tools()).await.unwrap();
    let mut events = bad.line.events();
    for (generation, content) in [(1, ""), (2, "fresh"), (3, "fresh")] {
        std::fs::write(&file, content).unwrap();
        kill("-9", bad.pid().await);
        bad.back(generation).await;
        eventually(|| {
            let line = bad.line.clone();
            (line.status().generation == generation + 1).then_some(())
        })
        .await;
        // The list is read after the line is up.
        let line = bad.line.clone();
        in_time(async {
            while line.catalogue().await.unwrap().generation <= generation {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    let mut changes = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
        if let Event::Changed(kind, change) = event {
            changes.push((kind, change.added.clone(), change.removed.clone(), change.changed.clone()));
        }
    }
    assert_eq!(changes, [(Kind::Tools, vec!["fresh".to_owned()], vec![], vec![])]);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_log_level_and_subscriptions_outlive_their_generation() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    for (method, params) in
        [("logging/setLevel", r#"{"level":"debug"}"#), ("resources/subscribe", r#"{"uri":"a"}"#)]
    {
        in_time(bad.line.request(method, Raw(params), linetender::Options::default())).await.unwrap();
    }
    kill("-9", pid);
    bad.back(1).await;
    eventually(|| {
        let runs = bad.book.runs();
        let twice = |asked: &str| runs.get(asked) == Some(&2);
        (twice(r#"logging/setLevel:{"level":"debug"}"#) && twice(r#"resources/subscribe:{"uri":"a"}"#))
            .then_some(())
    })
    .await;
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s25_a_killed_reaper_ends_the_line_and_the_server_and_it_comes_back() {
    let bad = bad(&[]);
    let pid = bad.up().await;
    kill("-9", parent(pid));
    bad.back(1).await;
    assert!(!lives(pid));
    bad.works().await;
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn s25_a_child_of_the_server_in_its_own_session_goes_with_a_killed_reaper() {
    let bad = bad(&["--escapee"]);
    let pid = bad.up().await;
    let below = eventually(|| Some(crate::look::descendants(pid)).filter(|below| !below.is_empty())).await;
    kill("-9", parent(pid));
    bad.back(1).await;
    assert!(below.iter().all(|child| !lives(*child)), "{below:?}");
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stopped_reaper_does_not_keep_a_line_from_coming_back() {
    let quick = policy(|settings| settings.close.kill = Duration::from_millis(300));
    let bad = bad_with(&[], |server| server.policy(quick));
    let pid = bad.up().await;
    kill("-STOP", parent(pid));
    // Nobody reports its death: what is noticed is that its pipes are closed.
    kill("-9", pid);
    bad.back(1).await;
    bad.works().await;
    bad.leaves_nothing().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn helpers_that_a_server_leaves_to_themselves_are_buried() {
    let bad = bad(&[]);
    let reaper = parent(bad.up().await);
    bad.call("orphan", r#"{"nonce":"a","times":10}"#).await.unwrap();
    eventually(|| (crate::look::descendants(reaper).len() == 1).then_some(())).await;
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn one_list_that_cannot_be_read_hides_no_other() {
    let dir = Dir::new();
    let file = dir.file("tool");
    let bad = bad_with(&["--no-prompts", "--changing", file.to_str().unwrap()], |server| server);
    let tools = in_time(bad.line.list_tools()).await.unwrap();
    let mut events = bad.line.events();
    std::fs::write(&file, "fresh").unwrap();
    bad.call("flood_list_changed", r#"{"nonce":"a","times":1}"#).await.unwrap();
    in_time(async {
        loop {
            if let Some(Event::Changed(Kind::Tools, change)) = events.next().await {
                assert_eq!(change.added, ["fresh"]);
                return;
            }
        }
    })
    .await;
    assert_eq!(in_time(bad.line.list_tools()).await.unwrap().len(), tools.len() + 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn dropping_the_last_handle_leaves_nothing_behind() {
    let bad = bad(&["--grandchild"]);
    bad.up().await;
    drop(bad);
    eventually(|| children().is_empty().then_some(())).await;
}

/// A job, a process, a wait and three pipes for each of them: none stays. Wine does not count handles, but gives a new one the lowest
/// number that is free: the highest of many new ones tells.
#[cfg(windows)]
#[tokio::test]
async fn a_hundred_crashes_leave_no_handle_behind() {
    use std::os::windows::io::AsRawHandle as _;
    let open = |_| std::fs::File::open(crate::look::badserver()).unwrap();
    let next = || {
        let many: Vec<_> = (0..100).map(open).collect();
        many.iter().map(|file| file.as_raw_handle().addr() / 4).max().unwrap()
    };
    let often = policy(|settings| {
        settings.budget.tokens = 200;
        (settings.backoff.base, settings.backoff.cap) = (Duration::from_millis(1), Duration::from_millis(1));
        settings.backoff.useful_base = Duration::from_millis(1);
        settings.backoff.useful_cap = Duration::from_millis(1);
    });
    let bad = bad_with(&[], |server| server.policy(often));
    let mut at_ten = 0;
    for generation in 1..=100 {
        kill("-9", bad.up().await);
        bad.back(generation).await;
        if generation == 10 {
            at_ten = next();
        }
    }
    let now = next();
    println!("handle {at_ten} after ten crashes, {now} after a hundred");
    assert!(now <= at_ten + 20, "handle {at_ten} after ten crashes, {now} after a hundred");
    bad.leaves_nothing().await;
}
