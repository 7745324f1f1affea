//! That the measuring client measures what it says: real servers, and calls that fail are no figures.

use super::endpoint::{Endpoint, Measured};
use super::speech::Era;
use super::table::Table;
use super::{Load, pipe, process, relay};
use linetender_badserver::webserver::{Config, Speaks, WebServer};
use tokio::task::JoinSet;

const LOAD: Load = Load { bytes: 100, in_flight: 3, calls: 9 };

#[tokio::test]
async fn both_eras_are_measured_directly_and_through_the_relay() {
    for (era, speaks) in [(Era::Legacy, Speaks::Legacy), (Era::Modern, Speaks::Modern)] {
        let web = WebServer::start(Config::default()).unwrap();
        web.set(|manners| manners.speaks = speaks);
        let (through, served) = relay::listen(&web.url()).await.unwrap();
        let mut relay = JoinSet::new();
        relay.spawn(served);
        for url in [web.url(), through] {
            let before = web.counters().calls;
            let mut endpoint = Endpoint::open(&format!("endpoint={url}"), era).await.unwrap();
            let measured = endpoint.measure(LOAD).await.unwrap();
            assert_eq!(web.counters().calls - before, 9, "{era:?}: as many calls as were asked for");
            assert!(
                measured.p50 > 0.0 && measured.p50 <= measured.p99 && measured.rate > 0.0,
                "{measured:?}"
            );
        }
        assert!(web.counters().connections <= 8, "connections are kept");
    }
}

#[tokio::test]
async fn a_call_that_fails_is_no_measurement() {
    let web = WebServer::start(Config::default()).unwrap();
    let mut endpoint = Endpoint::open(&format!("endpoint:no__={}", web.url()), Era::Modern).await.unwrap();
    let failed = endpoint.measure(LOAD).await.unwrap_err();
    assert!(failed.starts_with("endpoint: a call failed"), "{failed}");
    assert!(Endpoint::open("endpoint=http://127.0.0.1:1/mcp", Era::Legacy).await.is_err());
}

#[test]
fn an_answer_on_a_pipe_finds_its_call_wherever_its_id_stands() {
    let late = format!(r#"{{"result":{{"text":"{}"}},"jsonrpc":"2.0","id":7}}"#, "x".repeat(1000));
    for (line, id) in
        [(r#"{"id":5,"jsonrpc":"2.0"}"#, Some(5)), (&*late, Some(7)), (r#"{"method":"m"}"#, None)]
    {
        assert_eq!(pipe::id_of(line.as_bytes()), id, "{line}");
    }
}

#[test]
fn the_last_gate_is_held_against_the_others() {
    let measured = |p50| Measured { p50, p99: p50, rate: 1.0, processor: None };
    let mut table = Table::new(LOAD, ["direct", "relay", "serve"].map(str::to_owned).into());
    for noise in [0.0, 1.0, 2.0] {
        // What all have in common is in none of the differences.
        table.push([10.0, 30.0, 40.0].map(|p50| measured(p50 + noise)).into());
    }
    let [_, relay, serve] = &table.rows()[..] else { panic!("three endpoints") };
    let share = serve.adds_to_second.unwrap();
    assert_eq!((relay.p50, relay.adds.median, serve.adds.between), (31.0, 20.0, (30.0, 30.0)));
    assert_eq!((share.median, share.between, relay.adds_to_second.is_none()), (1.5, (1.5, 1.5), true));
    let shown = table.to_string();
    let line = "| 100 | 3 | serve | 41.0 | 41.0 | 1 | 30.0 (30.0 … 30.0) | 1.50 (1.50 … 1.50) | 1.00 (1.00 … 1.00) |  |";
    assert_eq!(shown.lines().last(), Some(line));
    let head =
        Table::head(&["direct=http://a".into(), "relay@7=http://b".into(), "serve:x__=http://c".into()]);
    let columns = |line: &str| line.matches('|').count();
    assert_eq!(head.lines().map(columns).collect::<Vec<_>>(), [columns(line); 2], "{head}");
    assert!(head.contains("adds, to what relay adds | serve to it"), "{head}");
    assert_eq!(table.to_json()["endpoints"][2]["adds_to_second"]["median"], 1.5);
}

#[test]
fn a_process_says_what_it_holds_and_how_long_it_ran() {
    let before = process::processor(std::process::id()).unwrap();
    let held = process::held(std::process::id()).unwrap();
    assert!(held.rss >= held.pss && held.pss > 100 && held.threads > 0 && held.descriptors > 2, "{held:?}");
    while process::processor(std::process::id()).unwrap() <= before {}
    assert!(process::held(u32::MAX).is_err());
}
