//! Servers that refuse a single request for its key, with 401, and take the same key for others.

use std::time::Duration;

use linetender::{Answer, CallError, Delivery, Eras, HttpServer, NoKey, Raw, Redacted, ServerRefusal, State};
use linetender_badserver::webserver::Wants;
use tokio::task::JoinHandle;

use crate::desk::{Desk, Given, bearer, key, login};
use crate::keys::{TYPE, opened, up};
use crate::kit::{ERAS, Web, manners, web_with};
use crate::look::{eventually, in_time};

/// It takes these keys, and none for the tool `write`.
fn forbids_write(keys: impl IntoIterator<Item = u32>) -> Wants {
    Wants {
        keys: keys.into_iter().map(bearer).collect(),
        challenges: true,
        forbidden_tool: Some("write".into()),
        ..Wants::default()
    }
}

/// No key can be had for so long that nobody waits for one.
fn much_later(words: &str) -> Given {
    let after = Some(Duration::from_secs(3600));
    Err(NoKey::Later { words: Redacted::head(words, 200), after })
}

impl Web {
    /// A call that is running at the server, and takes a while.
    async fn slow_call(&self) -> JoinHandle<Result<Answer, CallError>> {
        let line = self.line.clone();
        let before = self.server.seen().len();
        let call =
            tokio::spawn(async move { line.call_tool("sleep", Raw(r#"{"nonce":"slow","ms":1500}"#)).await });
        eventually(|| (self.server.seen().len() > before).then_some(())).await;
        call
    }
}

#[tokio::test]
async fn a_tool_that_is_refused_with_401_fails_alone_while_other_calls_go_on_with_the_same_key() {
    let no_other: [fn() -> Given; 3] = [|| login(TYPE), || key(1), || much_later("down")];
    for (number, era) in (0..no_other.len()).flat_map(|number| ERAS.map(|era| (number, era))) {
        let desk = Desk::with(key(1), [no_other[number]()]);
        let web = up(era, 1, &desk).await;
        web.server.set(|manners| manners.wants = Some(forbids_write([1])));
        let slow = web.slow_call().await;
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert_eq!(error.delivery, Delivery::Refused(ServerRefusal::Auth), "{error}");
        if number == 0 {
            assert!(error.for_model().contains(TYPE), "{}", error.for_model());
        }
        web.works().await;
        in_time(slow).await.unwrap().unwrap();
        for _ in 0..5 {
            web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
            web.works().await;
        }
        assert_eq!((web.generation(), web.runs("slow"), web.runs("n")), (1, 1, 0), "{era:?} {number}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_tool_that_is_refused_with_every_new_key_fails_alone_however_often_it_is_called() {
    for era in ERAS {
        let desk = Desk::with(key(1), (2..1000).map(key));
        let web = up(era, 1, &desk).await;
        web.server.set(|manners| manners.wants = Some(forbids_write(1..1000)));
        let slow = web.slow_call().await;
        for number in 0..40 {
            web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
            if number % 4 == 3 {
                web.works().await;
            }
        }
        web.works().await;
        in_time(slow).await.unwrap().unwrap();
        assert_eq!((web.generation(), web.runs("n")), (1, 0), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_protected_tool_of_an_open_server_fails_alone_where_nobody_is_logged_in() {
    for era in ERAS {
        let desk = Desk::with(Ok(None), [login(TYPE)]);
        let web = opened(era, 1, &desk, |manners| {
            manners.wants = Some(Wants { only: vec!["none".into()], ..forbids_write([1]) });
        });
        in_time(web.line.ready()).await.unwrap();
        web.works().await;
        let slow = web.slow_call().await;
        let error = web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        assert!(error.for_model().contains(TYPE), "{}", error.for_model());
        web.works().await;
        in_time(slow).await.unwrap().unwrap();
        assert_eq!(web.generation(), 1, "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn fixed_credentials_that_one_tool_refuses_serve_the_others_until_they_are_refused_for_all() {
    for era in ERAS {
        let mut manners = manners(era);
        manners.wants = Some(forbids_write([1]));
        let fixed = |server: HttpServer| server.eras(Eras::Only(era)).header("authorization", &bearer(1));
        let web = web_with(manners, fixed).await;
        let slow = web.slow_call().await;
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        web.works().await;
        in_time(slow).await.unwrap().unwrap();
        assert_eq!(web.generation(), 1, "{era:?}");
        web.server.set(|manners| manners.wants = Some(Wants::key(bearer(2))));
        web.call("echo", "{}").await.unwrap_err();
        web.until(State::NeedsAuth).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_key_that_was_refused_for_one_tool_and_later_for_all_is_renewed_then() {
    for era in ERAS {
        let desk = Desk::with(key(1), [key(1)]);
        let web = up(era, 1, &desk).await;
        web.server.set(|manners| manners.wants = Some(forbids_write([1])));
        web.call("write", r#"{"nonce":"n"}"#).await.unwrap_err();
        web.works().await;
        web.server.set(|manners| manners.wants = Some(Wants::key(bearer(2))));
        desk.quietly(key(2), [key(2)]);
        // It comes back by itself, if not at once: the desk has just said that there is no other.
        let works = || async { web.call("echo", r#"{"nonce":"again"}"#).await.is_ok() };
        in_time(async { while !works().await {} }).await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_token_that_is_renewed_in_its_file_after_it_was_refused_is_found_within_seconds() {
    for era in ERAS {
        let desk = Desk::with(key(1), [login(TYPE)]);
        let web = up(era, 1, &desk).await;
        web.wants(2);
        web.call("echo", "{}").await.unwrap_err();
        web.until(State::NeedsAuth).await;
        desk.quietly(key(2), [key(2)]);
        web.until(State::Up).await;
        web.works().await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn a_login_that_brings_the_same_token_brings_the_server_back() {
    for (era, next) in ERAS.into_iter().zip([login(TYPE), key(1)]) {
        let desk = Desk::with(key(1), [next.clone()]);
        let web = up(era, 1, &desk).await;
        web.wants(2);
        web.call("echo", "{}").await.unwrap_err();
        web.until(State::NeedsAuth).await;
        web.wants(1);
        let start = tokio::time::Instant::now();
        desk.change(key(1), [next]);
        web.until(State::Up).await;
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        web.works().await;
        web.leaves_nothing().await;
    }
}
