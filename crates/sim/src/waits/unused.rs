//! What linetender asks of a server somewhere else that nobody uses: nothing (H39), and its lists when a call comes (H40).

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::{World, secs, within};
use crate::web::{Manners, Own};

/// What was asked of a host in this time, without calls.
async fn asked_in(world: &World, time: Duration) -> Vec<String> {
    let before = world.web().requests().len();
    sleep(time).await;
    world.web().requests().split_off(before)
}

/// A proxy cuts its stream every minute, as many do; and a machine that sleeps asks nothing either.
#[tokio::test(start_paused = true)]
async fn h39_a_server_that_nobody_uses_is_asked_nothing() {
    for modern in [false, true] {
        let manners = Manners { modern, own: Own::Lasts(60_000), ..Manners::good(10) };
        let world = World::across_the_network(manners);
        let mut agent = world.agent().await;
        agent.works("a").await;
        let first = asked_in(&world, secs(615)).await;
        assert!((5..=12).contains(&first.len()), "{first:?}");
        let stream = if modern { "subscriptions/listen" } else { "GET" };
        assert!(first.iter().all(|asked| asked == stream), "only the stream is opened again: {first:?}");
        // What was open ends.
        sleep(secs(95)).await;
        assert_eq!(asked_in(&world, secs(3600)).await, [""; 0], "modern: {modern}");
        world.line.slept().await;
        assert_eq!(asked_in(&world, secs(3600)).await, [""; 0], "modern: {modern}");
        // The next call does not wait for anything, and has the stream opened and the lists read that might have changed.
        let before = world.web().requests().len();
        within(agent.works("b").await, Duration::ZERO, secs(1));
        sleep(secs(5)).await;
        let mut woken = world.web().requests().split_off(before);
        woken.sort();
        let mut expected = [stream, "tools/list", "tools/call"];
        expected.sort_unstable();
        assert_eq!(woken, expected, "modern: {modern}");
        assert_eq!(world.line.status().generation, 1);
    }
}

/// Whoever subscribed to a resource wants to hear of it without asking.
#[tokio::test(start_paused = true)]
async fn h39_a_stream_that_an_agent_subscribed_on_is_opened_again() {
    let world = World::across_the_network(Manners { own: Own::Lasts(60_000), ..Manners::good(10) });
    let mut agent = world.agent().await;
    let id = agent.ask("resources/subscribe", json!({ "uri": "memo://a" })).await;
    let (_, answer) = agent.end(id).await;
    assert!(answer["result"].is_object(), "{answer}");
    sleep(secs(3600)).await;
    let asked = asked_in(&world, secs(3600)).await;
    assert!((50..=60).contains(&asked.len()) && asked.iter().all(|asked| asked == "GET"), "{asked:?}");
}

/// What might have changed while no stream was open is looked at when somebody comes, and not before.
#[tokio::test(start_paused = true)]
async fn h40_streams_that_are_cut_every_minute_have_no_list_read_until_a_call_comes() {
    let world = World::across_the_network(Manners { own: Own::Lasts(60_000), ..Manners::good(10) });
    let mut agent = world.agent().await;
    agent.works("a").await;
    let lists = |asked: &[String]| asked.iter().filter(|asked| asked.ends_with("/list")).count();
    sleep(secs(10)).await;
    assert_eq!(lists(&asked_in(&world, secs(300)).await), 0);
    let before = world.web().requests().len();
    for number in 0..10 {
        agent.works(&format!("b{number}")).await;
    }
    sleep(secs(1)).await;
    let read = lists(&world.web().requests().split_off(before));
    assert_eq!(read, 1, "once, however many gaps there were and calls come");
}
