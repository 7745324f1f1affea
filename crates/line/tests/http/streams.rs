//! H06, H07: streams that end too early, and the server's own stream.

use std::pin::pin;
use std::time::Duration;

use linetender::{Era, Event, Kind, State};
use linetender_badserver::webserver::{Answers, Streams};
use tokio::time::timeout;

use crate::kit::{ERAS, manners, web, web_with};
use crate::look::{eventually, in_time, speaks};

#[tokio::test]
async fn h06_a_legacy_stream_is_taken_up_where_it_ended() {
    let web = web(Era::Legacy).await;
    web.server.set(|manners| {
        manners.answers = Answers::Primed;
        manners.retry_ms = Some(100);
    });
    for times in [1, 2] {
        let arguments = format!(r#"{{"nonce":"r{times}","times":{times}}}"#);
        web.call("cut_sse_resumable", &arguments).await.unwrap();
        assert_eq!(web.runs(&format!("r{times}")), 1);
    }
    let error = web.call("cut_sse_resumable", r#"{"nonce":"often","times":50}"#).await.unwrap_err();
    speaks(&error);
    assert_eq!((error.delivery.name(), web.runs("often")), ("unknown", 1), "{error}");
    assert_eq!(web.generation(), 1);
    web.leaves_nothing().await;
}

#[tokio::test]
async fn h07_a_changed_list_is_heard_of_and_told_once() {
    for era in ERAS {
        let web = web(era).await;
        let streams = || web.server.counters().gets + web.server.counters().listens;
        eventually(|| (streams() > 0).then_some(())).await;
        let mut events = web.line.events();
        web.server.change_tools();
        let added = in_time(async {
            loop {
                if let Some(Event::Changed(Kind::Tools, change)) = events.next().await {
                    return change.added.clone();
                }
            }
        })
        .await;
        assert_eq!(added.len(), 1, "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h07_a_stream_that_is_cut_is_opened_again_and_costs_no_budget() {
    for era in ERAS {
        let mut first = manners(era);
        first.streams = Streams::CutAfter(Duration::from_millis(10));
        let web = web_with(first, |server| server).await;
        let streams = || web.server.counters().gets + web.server.counters().listens;
        eventually(|| (streams() >= 3).then_some(())).await;
        web.works().await;
        // Each cut makes it suspect for as long as a probe takes.
        let status = web.until(State::Up).await;
        assert_eq!((status.generation, status.budget), (1, 5000), "{era:?}");
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h07_what_changed_while_nobody_could_be_told_is_found_out() {
    for era in ERAS {
        let mut first = manners(era);
        first.streams = Streams::CutAfter(Duration::from_millis(1));
        let web = web_with(first, |server| server).await;
        let mut events = web.line.events();
        let streams = || web.server.counters().gets + web.server.counters().listens;
        // Between two streams: nothing is open through which it could be said.
        let before = eventually(|| Some(streams()).filter(|streams| *streams > 0)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        web.server.change_tools();
        eventually(|| (streams() > before).then_some(())).await;
        // At the first call after the gap was noticed (H40): one that crosses the new stream may be too early.
        let mut told =
            pin!(async { while !matches!(events.next().await, Some(Event::Changed(Kind::Tools, _))) {} });
        in_time(async {
            while timeout(Duration::from_millis(200), &mut told).await.is_err() {
                web.works().await;
            }
        })
        .await;
        web.leaves_nothing().await;
    }
}

#[tokio::test]
async fn h17_an_empty_stream_is_no_reason_for_a_storm() {
    let mut first = manners(Era::Legacy);
    first.streams = Streams::Empty;
    let web = web_with(first, |server| server).await;
    for _ in 0..30 {
        web.works().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Half a second, then one, two, four: how often in an hour is a test of `Reopen`.
    let gets = web.server.counters().gets;
    assert!((1..=4).contains(&gets), "{gets}");
    web.leaves_nothing().await;
}

#[tokio::test]
async fn a_server_without_a_stream_is_asked_once() {
    let mut first = manners(Era::Legacy);
    first.streams = Streams::Refused;
    let web = web_with(first, |server| server).await;
    for _ in 0..30 {
        web.works().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(web.server.counters().gets, 1);
    web.leaves_nothing().await;
}
