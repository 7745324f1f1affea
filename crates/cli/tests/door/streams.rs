//! H06, H07, H17: streams that end too early, and the server's own stream.

use std::time::Duration;

use linetender::Era;
use linetender_badserver::webserver::{Answers, Config, Seen, Streams};
use serde_json::json;

use crate::kit::in_both_eras;
use crate::look::eventually;
use crate::web::Web;

fn with_streams(era: Era, streams: Streams) -> Web {
    Web::with(era, |mut config: Config| {
        config.manners.streams = streams;
        config
    })
}

/// How often the server's own stream was opened.
fn opened(web: &Web) -> u64 {
    let counters = web.server.counters();
    counters.gets + counters.listens
}

/// How often the list of tools was read, by whomever.
fn readings(web: &Web) -> usize {
    let reads = |seen: &&Seen| seen.method.as_deref() == Some("tools/list");
    web.server.seen().iter().filter(reads).count()
}

#[test]
fn h06_a_stream_that_ends_without_the_answer_leaves_its_call_unknown() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        for (nonce, abrupt) in [("closed", false), ("cut", true)] {
            let failure = door.fails(nonce, "cut_sse", json!({ "abrupt": abrupt }));
            assert_eq!(failure.delivery, "unknown", "{failure}");
            door.works();
        }
        web.closes(door);
    });
}

#[test]
fn h06_a_legacy_stream_with_an_event_id_is_taken_up_where_it_ended() {
    let web = Web::start(Era::Legacy);
    web.server.set(|manners| {
        manners.answers = Answers::Primed;
        manners.retry_ms = Some(100);
    });
    let mut door = web.door();
    for times in [1, 2] {
        door.answers(&format!("r{times}"), "cut_sse_resumable", json!({ "times": times }));
    }
    let failure = door.fails("often", "cut_sse_resumable", json!({ "times": 50 }));
    assert_eq!(failure.delivery, "unknown", "{failure}");
    door.works();
    web.closes(door);
}

#[test]
fn h07_a_changed_list_is_told_once_through_the_servers_own_stream() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        if era == Era::Modern {
            door.listens();
        }
        door.ask("tools/list", json!({}));
        // The line has read the list for itself, as it was, and listens.
        eventually("two readings", || (readings(&web) >= 2).then_some(()));
        eventually("a stream", || (web.server.listeners() > 0).then_some(()));
        door.works();
        web.server.change_tools();
        door.hears("notifications/tools/list_changed");
        door.changes = 1;
        assert!(door.ask("tools/list", json!({})).contains("extra_1"));
        door.works();
        web.closes(door);
    });
}

#[test]
fn h07_a_stream_that_is_cut_again_and_again_disturbs_no_call_and_hides_no_change() {
    in_both_eras(|era| {
        let web = with_streams(era, Streams::CutAfter(Duration::from_millis(5)));
        let mut door = web.door();
        if era == Era::Modern {
            door.listens();
        }
        door.ask("tools/list", json!({}));
        eventually("two readings", || (readings(&web) >= 2).then_some(()));
        door.works();
        let before = eventually("a stream", || Some(opened(&web)).filter(|opened| *opened > 0));
        web.server.change_tools();
        eventually("a stream that is opened again", || (opened(&web) > before + 1).then_some(()));
        // At the first call after the gap was noticed (H40).
        eventually("a call that tells of the change", || {
            door.works();
            door.has_heard("notifications/tools/list_changed").then_some(())
        });
        door.changes = 1;
        door.works();
        assert!(web.server.counters().initializes <= 1, "it never touches the line's budget");
        web.closes(door);
    });
}

#[test]
fn h17_an_empty_stream_is_no_reason_for_a_storm() {
    in_both_eras(|era| {
        let web = with_streams(era, Streams::Empty);
        let mut door = web.door();
        for number in 0..4 {
            door.answers(&format!("n{number}"), "sleep", json!({ "ms": 400 }));
        }
        // Half a second, then one, two, four.
        let opened = opened(&web);
        assert!((1..=5).contains(&opened), "{opened}");
        web.closes(door);
    });
}
