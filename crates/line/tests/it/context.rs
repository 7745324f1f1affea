//! S53: what a server keeps in memory is gone with its process, and the agent is told before it does harm elsewhere.

use std::time::Duration;

use linetender::{CallError, CallErrorKind, Policy, ServerState, State};

use crate::kit::{Bad, bad_with};
use crate::look::{eventually, in_time, kill, policy, speaks};

fn keeps(state: ServerState) -> Policy {
    policy(|settings| settings.state = state)
}

/// A server that may keep something in memory, up, with its lists read.
async fn perhaps(flags: &[&str]) -> Bad {
    let bad = bad_with(flags, |server| server.policy(keeps(ServerState::Unknown)));
    bad.up().await;
    in_time(bad.line.list_tools()).await.unwrap();
    bad
}

impl Bad {
    async fn uses_test(&self) {
        self.call("use", r#"{"nonce":"use","what":"test"}"#).await.unwrap();
    }

    /// Kills the process, and waits for the next one.
    async fn replaced(&self) {
        let generation = self.line.status().generation;
        kill("-9", self.pid().await);
        self.back(generation).await;
    }

    async fn drop_all(&self, nonce: &str) -> Result<String, CallError> {
        let answer = self.call("drop_all", &format!(r#"{{"nonce":"{nonce}"}}"#)).await?;
        Ok(answer.text())
    }

    /// The call is refused with a notice, and was not run.
    async fn refuses(&self, nonce: &str) -> CallError {
        let error = self.drop_all(nonce).await.unwrap_err();
        assert!(!self.book.runs().contains_key(nonce), "{nonce} ran");
        is_notice(&error);
        error
    }
}

fn is_notice(error: &CallError) {
    speaks(error);
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::ContextReplaced, "not executed"));
    assert_eq!((error.code().number(), error.fields()["reason"].as_str()), (7001, Some("context-replaced")));
    let text = error.for_model();
    for said in
        ["was not executed", "The server was replaced at", "is gone", "set it up first; then call again"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("safe"), "{text}");
}

/// Until a notice that was told has ended.
async fn notice_ends() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

#[tokio::test]
async fn s53_a_call_after_a_crash_is_refused_until_its_agent_knows() {
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    assert_eq!(bad.drop_all("a").await.unwrap(), "dropped test");
    bad.replaced().await;
    let error = bad.refuses("b").await;
    assert!(error.cause.contains("was replaced (the server process was killed"), "{error}");
    notice_ends().await;
    bad.uses_test().await;
    assert_eq!(bad.drop_all("c").await.unwrap(), "dropped test", "and the agent has set it up again");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_batch_is_refused_as_a_whole() {
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    bad.replaced().await;
    in_time(Box::pin(async {
        tokio::join!(bad.refuses("1"), bad.refuses("2"), bad.refuses("3"), bad.refuses("4"), bad.refuses("5"))
    }))
    .await;
    bad.refuses("6").await;
    notice_ends().await;
    assert_eq!(bad.drop_all("7").await.unwrap(), "dropped prod");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_notice_outlives_further_restarts() {
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    bad.replaced().await;
    bad.replaced().await;
    notice_ends().await;
    bad.refuses("a").await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_tool_that_only_reads_is_called_unchanged_and_ends_no_notice() {
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    bad.replaced().await;
    in_time(bad.line.wait_for(|status| status.state == State::Up)).await;
    bad.works().await;
    notice_ends().await;
    let error = bad.refuses("a").await;
    assert!(error.for_model().contains("Run since in the new one: echo."), "{}", error.for_model());
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_who_only_read_has_nothing_to_lose() {
    let bad = perhaps(&[]).await;
    bad.works().await;
    bad.replaced().await;
    assert_eq!(bad.drop_all("a").await.unwrap(), "dropped prod");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_what_the_user_calls_safe_crosses_and_is_a_use() {
    let bad = bad_with(&[], |server| server.policy(keeps(ServerState::Unknown)).safe_tool("write"));
    bad.up().await;
    bad.uses_test().await;
    bad.replaced().await;
    bad.call("write", r#"{"nonce":"w"}"#).await.unwrap();
    bad.refuses("a").await;
    notice_ends().await;
    bad.replaced().await;
    bad.refuses("b").await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_call_that_was_cancelled_ends_no_notice() {
    let bad = perhaps(&["--start-delay-ms", "500"]).await;
    bad.uses_test().await;
    kill("-9", bad.pid().await);
    bad.until(State::Dialing).await;
    let cancelled = tokio::time::timeout(Duration::from_millis(100), bad.drop_all("a")).await;
    assert!(cancelled.is_err(), "it waits for the next process: {cancelled:?}");
    bad.back(1).await;
    notice_ends().await;
    bad.refuses("b").await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_call_that_dies_with_its_context_tells_of_it() {
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    let error = bad.call("kill", r#"{"nonce":"a"}"#).await.unwrap_err();
    assert_eq!((error.kind, error.delivery.name()), (CallErrorKind::Lost, "unknown"), "{error}");
    assert!(error.for_model().contains("kept in memory"), "{}", error.for_model());
    bad.refuses("b").await;
    notice_ends().await;
    assert_eq!(bad.drop_all("c").await.unwrap(), "dropped prod");
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_an_idle_stop_and_a_recycle_lose_as_much_as_a_crash() {
    let bad = bad_with(&[], |server| {
        server.policy(keeps(ServerState::Unknown)).idle_stop(Duration::from_millis(300))
    });
    bad.up().await;
    bad.uses_test().await;
    bad.until(State::Idle).await;
    bad.refuses("a").await;
    bad.leaves_nothing().await;

    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    in_time(bad.line.recycle()).await;
    bad.back(1).await;
    bad.refuses("b").await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_server_that_exits_after_its_only_answer_kept_nothing() {
    let bad = perhaps(&[]).await;
    for _ in 0..3 {
        bad.call("leave", r#"{"nonce":"a"}"#).await.unwrap();
    }
    bad.leaves_nothing().await;

    // After more than one answer, exit 0 is an end like any other.
    let bad = perhaps(&[]).await;
    bad.uses_test().await;
    bad.call("leave", r#"{"nonce":"a"}"#).await.unwrap();
    bad.until(State::Idle).await;
    bad.refuses("b").await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_of_a_server_with_state_even_reading_waits_for_the_notice() {
    let bad = bad_with(&[], |server| server.policy(keeps(ServerState::Process)));
    bad.up().await;
    in_time(bad.line.list_tools()).await.unwrap();
    bad.works().await;
    bad.replaced().await;
    is_notice(&bad.call("echo", r#"{"nonce":"a"}"#).await.unwrap_err());
    notice_ends().await;
    bad.works().await;
    bad.leaves_nothing().await;
}

#[tokio::test]
async fn s53_a_server_without_state_is_replaced_unseen() {
    let bad = bad_with(&[], |server| server.policy(keeps(ServerState::None)));
    bad.up().await;
    bad.uses_test().await;
    bad.replaced().await;
    assert_eq!(bad.drop_all("a").await.unwrap(), "dropped prod");
    bad.leaves_nothing().await;
}

/// It may have set something up, and what it has set up is lost with the process.
#[tokio::test]
async fn s53_a_call_that_was_given_up_is_a_use() {
    let bad = perhaps(&[]).await;
    let call = bad.call("hang", r#"{"nonce":"given-up"}"#);
    let given_up = async { eventually(|| bad.book.runs().contains_key("given-up").then_some(())).await };
    tokio::select! {
        answer = call => panic!("{answer:?}"),
        () = given_up => {}
    }
    bad.replaced().await;
    bad.refuses("a").await;
    bad.leaves_nothing().await;
}
