//! A server that nobody uses is stopped, and the next call starts it.

use std::time::Duration;

#[cfg(unix)]
use linetender::{Era, Eras, Server};
use linetender::{Kind, Line, Options, Raw, State};
#[cfg(unix)]
use linetender_badserver::Book;

#[cfg(unix)]
use crate::kit::Dir;
use crate::kit::bad_with;
#[cfg(unix)]
use crate::look::{badserver, descendants, kill};
use crate::look::{eventually, in_time, lives};

const SOON: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_server_that_nobody_uses_is_stopped_and_the_next_call_starts_it() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    let pid = bad.up().await;
    bad.works().await;
    let tools = |line: &Line| line.catalogues().borrow().list(Kind::Tools).count();
    let (budget, listed) = (bad.line.status().budget, tools(&bad.line));
    assert!(listed > 0);
    let stopped = bad.until(State::Idle).await;
    assert!(!lives(pid), "nothing of it is left");
    assert_eq!(stopped.budget, budget, "planned: not charged");
    assert_eq!(tools(&bad.line), listed, "its lists stay");
    bad.works().await;
    assert_eq!(bad.line.status().generation, 2);
    // And so on.
    bad.until(State::Idle).await;
    bad.works().await;
    assert_eq!(bad.line.status().generation, 3);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn a_call_under_way_is_use_however_long_it_takes() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    bad.up().await;
    let slow = bad.call("sleep", r#"{"nonce":"slow","ms":1500}"#).await;
    assert!(slow.is_ok(), "{slow:?}");
    assert_eq!(bad.line.status().generation, 1);
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn whoever_wants_to_hear_of_a_resource_uses_its_server() {
    let bad = bad_with(&[], |server| server.idle_stop(SOON));
    let pid = bad.up().await;
    let wish = bad.line.request("resources/subscribe", Raw(r#"{"uri":"test://one"}"#), Options::default());
    in_time(wish).await.unwrap();
    tokio::time::sleep(SOON * 4).await;
    assert!(lives(pid), "it is watched");
    in_time(bad.line.request("resources/unsubscribe", Raw(r#"{"uri":"test://one"}"#), Options::default()))
        .await
        .unwrap();
    eventually(|| (!lives(pid)).then_some(())).await;
    bad.leaves_nothing().await;
}

/// A server below a wrapper that exits with 0 when the server is killed.
#[cfg(unix)]
fn wrapped() -> (Line, Book, Dir) {
    let dir = Dir::new();
    let book = Book::at(dir.file("book"));
    let argv = ["sh", "-c", "\"$@\"; exit 0", "sh", badserver(), "--book", book.path().to_str().unwrap()];
    let server = Server::stdio("bad", argv).reaper(badserver()).eras(Eras::Only(Era::Legacy));
    (Line::open(server), book, dir)
}

#[cfg(unix)]
async fn kill_below(line: &Line) {
    let wrapper = eventually(|| line.pid()).await;
    let server = eventually(|| descendants(wrapper).first().copied()).await;
    kill("-9", server);
}

#[cfg(unix)]
#[tokio::test]
async fn s60_a_server_that_exits_after_its_work_is_started_by_the_next_call() {
    let (line, _book, _dir) = wrapped();
    in_time(line.wait_for(|status| status.state == State::Up)).await;
    in_time(line.call_tool("echo", Raw(r#"{"nonce":"one"}"#))).await.unwrap();
    let budget = line.status().budget;
    for generation in 2..10 {
        kill_below(&line).await;
        let ended = in_time(line.wait_for(|status| status.state == State::Idle)).await;
        assert_eq!(ended.budget, budget, "planned: not charged");
        assert_eq!(ended.generation, generation - 1);
        in_time(line.call_tool("echo", Raw(r#"{"nonce":"next"}"#))).await.unwrap();
        assert_eq!(line.status().generation, generation);
    }
    in_time(line.close()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn s60_a_server_that_exits_during_a_call_or_before_any_is_restarted() {
    let (line, book, _dir) = wrapped();
    in_time(line.wait_for(|status| status.state == State::Up)).await;
    kill_below(&line).await;
    in_time(line.wait_for(|status| status.state == State::Up && status.generation == 2)).await;
    in_time(line.call_tool("echo", Raw(r#"{"nonce":"one"}"#))).await.unwrap();
    let call = line.call_tool("sleep", Raw(r#"{"nonce":"slow","ms":60000}"#));
    let end = async {
        eventually(|| book.runs().contains_key("slow").then_some(())).await;
        kill_below(&line).await;
    };
    let (lost, ()) = in_time(Box::pin(async { tokio::join!(call, end) })).await;
    lost.unwrap_err();
    in_time(line.wait_for(|status| status.state == State::Up && status.generation == 3)).await;
    in_time(line.close()).await;
}
