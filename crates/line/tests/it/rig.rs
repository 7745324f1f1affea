//! Several lines together: what changes, what stays, and how all of it ends.

use std::time::Duration;

use linetender::{NextTry, Raw, Rig, Server, State, StdioServer};

use crate::look::{KILLED, badserver, children, eventually, in_time, kill, lives, policy};

fn named(name: &str, flags: &[&str]) -> StdioServer {
    let argv = [badserver()].into_iter().chain(flags.iter().copied());
    Server::stdio(name, argv).reaper(badserver())
}

#[tokio::test]
async fn only_what_changed_is_touched() {
    let rig = Rig::new();
    let names = |list: &[std::sync::Arc<str>]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let change = rig.set([named("a", &[]), named("b", &[]), named("c", &[])]);
    assert_eq!(names(&change.added), ["a", "b", "c"]);
    for line in rig.held() {
        in_time(line.ready()).await.unwrap();
    }
    let (kept, old) = (rig.line("a").unwrap(), rig.line("b").unwrap());
    let change = rig.set([named("a", &[]), named("b", &["--noise"]), named("d", &[])]);
    assert_eq!(names(&change.kept), ["a"]);
    assert_eq!(names(&change.replaced), ["b"]);
    assert_eq!(names(&change.removed), ["c"]);
    assert_eq!(names(&change.added), ["d"]);
    assert!(rig.line("c").is_none());
    in_time(rig.line("b").unwrap().call_tool("echo", Raw("{}"))).await.unwrap();
    in_time(old.wait_for(|status| status.state == State::Closed)).await;
    in_time(kept.call_tool("echo", Raw("{}"))).await.unwrap();
    assert_eq!(kept.status().generation, 1);
    assert!(in_time(rig.shutdown(Duration::from_secs(20))).await);
    assert_eq!(kept.status().state, State::Closed);
    eventually(|| children().is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_server_that_takes_anothers_place_is_not_started_before_that_one_is_gone() {
    let quick = policy(|settings| {
        settings.close.stdin = Duration::from_millis(300);
        settings.close.term = Duration::from_millis(300);
    });
    let rig = Rig::new();
    rig.set([named("a", &["--ignore-eof"]).policy(quick)]);
    let old = rig.line("a").unwrap();
    in_time(old.ready()).await.unwrap();
    let pid = eventually(|| old.pid()).await;
    rig.set([named("a", &[])]);
    let new = rig.line("a").unwrap();
    let first = eventually(|| new.pid()).await;
    assert!(first != pid && !lives(pid), "two servers of one name lived at once");
    in_time(new.call_tool("echo", Raw("{}"))).await.unwrap();
    assert!(in_time(rig.shutdown(Duration::from_secs(20))).await);
}

#[tokio::test]
async fn g07_a_call_to_a_server_that_waits_for_its_turn_is_told_so() {
    let impatient = policy(|settings| settings.call.wait_for_line = Duration::from_millis(50));
    let rig = Rig::with_dials_at_once(1);
    let line = rig.open(named("a", &[]).policy(impatient));
    in_time(line.ready()).await.unwrap();
    let pid = eventually(|| line.pid()).await;
    // It says nothing for so long, and has the only turn for a while.
    let before = children().len();
    let slow = rig.open(named("slow", &["--start-delay-ms", "60000"]));
    eventually(|| (children().len() > before).then_some(())).await;
    kill("-KILL", pid);
    in_time(line.wait_for(|status| status.state == State::Dialing && status.generation == 2)).await;
    let told = in_time(line.call_tool("echo", Raw("{}"))).await.unwrap_err();
    assert!(told.cause.starts_with("waiting for a start slot"), "{told}");
    assert!(told.cause.contains(KILLED), "why it has to be started: {told}");
    assert_eq!(told.next_try, NextTry::ItsTurn);
    assert!(told.not_executed());
    assert_eq!(line.status().next_try(), Some(NextTry::ItsTurn));
    in_time(slow.close()).await;
    in_time(line.wait_for(|status| status.state == State::Up)).await;
    assert_eq!(line.status().next_try(), None);
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    assert!(in_time(rig.shutdown(Duration::from_secs(20))).await);
}

#[tokio::test]
async fn a_call_under_way_may_end_before_its_line_is_taken_out() {
    let rig = Rig::new();
    rig.set([named("a", &[])]);
    let line = rig.line("a").unwrap();
    in_time(line.ready()).await.unwrap();
    let asking = line.clone();
    let call =
        tokio::task::spawn(async move { asking.call_tool("sleep", Raw(r#"{"nonce":"s","ms":500}"#)).await });
    in_time(line.call_tool("echo", Raw("{}"))).await.unwrap();
    rig.set::<Server>([]);
    in_time(call).await.unwrap().unwrap();
    in_time(line.wait_for(|status| status.state == State::Closed)).await;
}

#[tokio::test]
async fn a_shutdown_is_over_in_its_time_whatever_a_server_does() {
    let rig = Rig::new();
    rig.set([named("stubborn", &["--ignore-eof"])]);
    in_time(rig.line("stubborn").unwrap().ready()).await.unwrap();
    let all_gone = in_time(rig.shutdown(Duration::from_millis(100))).await;
    assert!(!all_gone, "end of file and two seconds come first");
    eventually(|| children().is_empty().then_some(())).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_get_the_descriptor_limit_that_was() {
    let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let before = limit();
    let rig = Rig::new();
    assert_eq!(limit().current, limit().maximum);
    let line = rig.open(named("a", &[]));
    in_time(line.ready()).await.unwrap();
    let pid = eventually(|| line.pid()).await;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft = open_files.split_ascii_whitespace().nth(3).unwrap();
    // Another test of this process may have raised it first: then that is where it was.
    let expected = before.current.map_or_else(|| "unlimited".to_owned(), |soft| soft.to_string());
    assert_eq!(soft, expected);
    in_time(line.close()).await;
}

#[tokio::test]
async fn s32_a_healthy_server_does_not_wait_behind_twelve_that_never_answer() {
    // As many turns as two cores have.
    let rig = Rig::with_dials_at_once(4);
    let program: &[_] = if cfg!(windows) { &[badserver(), "--deaf"] } else { &["sleep", "600"] };
    let silent = (0..12).map(|n| Server::stdio(format!("silent{n}"), program).reaper(badserver()));
    rig.set(silent.chain([named("zz", &[])]));
    let line = rig.line("zz").unwrap();
    let up = tokio::time::timeout(Duration::from_secs(6), line.ready()).await;
    assert!(up.is_ok(), "twelve silent servers kept it waiting");
    for silent in rig.held().iter().filter(|line| line.name() != "zz") {
        assert_eq!(silent.status().state, State::Dialing, "{}", silent.name());
    }
    in_time(rig.shutdown(Duration::from_secs(20))).await;
}
