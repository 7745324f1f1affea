//! H08, H09, H13, H15: sessions that are lost, servers that come back as something else.

use linetender::Era;
use linetender_badserver::webserver::{Answers, Config, Fault, Speaks, UnknownSession};
use serde_json::json;

use crate::kit::in_both_eras;
use crate::told::{assert_full, told};
use crate::web::Web;

/// How servers in the field say that they do not know a session, and whether that proves that nothing ran.
const WAYS: &[(UnknownSession, bool)] = &[
    (UnknownSession::NotFound, true),
    (UnknownSession::NotFoundById, true),
    (UnknownSession::BadRequest, true),
    (UnknownSession::Unauthorized, false),
    (UnknownSession::Error(-32600), false),
    (UnknownSession::Error(-32001), false),
];

#[test]
fn h08_a_lost_session_is_renewed_once_for_all_and_nothing_runs_twice() {
    for (unknown, proves) in WAYS {
        let web = Web::start(Era::Legacy);
        let mut door = web.shut(&["--stateless", &web.server.url()], &[]);
        door.greets();
        door.works();
        web.server.set(|manners| manners.unknown_session = *unknown);
        web.server.forget_sessions();
        let nonces = door.begin_all(20, "write", json!({}));
        for nonce in &nonces {
            let answer = door.answer(nonce);
            if told(&answer).is_err() {
                assert_full(&answer);
            }
            let works = answer["result"]["isError"].is_null() && answer.get("result").is_some();
            assert!(works || !proves, "{unknown:?}: nobody notices anything: {answer}");
        }
        door.works_again();
        assert_eq!(web.server.counters().initializes, 2, "{unknown:?}: one new session for all");
        web.closes(door);
    }
}

#[test]
fn h08_a_session_lost_twenty_times_is_renewed_twenty_times_for_it_served_each_time() {
    let web = Web::start(Era::Legacy);
    let mut door = web.door();
    for _ in 0..20 {
        door.works();
        web.server.forget_sessions();
    }
    door.works();
    assert_eq!(web.server.counters().initializes, 21);
    web.closes(door);
}

#[test]
fn h08_streams_that_are_open_run_on() {
    let web = Web::start(Era::Legacy);
    let mut door = web.door();
    door.works();
    web.server.set(|manners| manners.answers = Answers::Sse);
    door.begin("slow", "sleep", json!({ "ms": 1000 }));
    door.running("slow");
    web.server.forget_sessions();
    door.works();
    assert_eq!(web.server.counters().initializes, 2);
    let answer = door.answer("slow");
    assert!(told(&answer).is_ok(), "it had an answer coming, and got it: {answer}");
    web.closes(door);
}

#[test]
fn h09_a_restarted_server_is_found_again_unseen() {
    in_both_eras(|era| {
        let mut web = Web::start(era);
        let mut door = web.door();
        for _ in 0..3 {
            door.works();
            web.restart();
            door.works();
        }
        web.closes(door);
    });
}

#[test]
fn h13_a_web_page_is_no_mcp_endpoint_and_is_shown() {
    in_both_eras(|era| {
        let web = Web::with(era, |mut config: Config| {
            for method in ["initialize", "server/discover"] {
                config.manners.fault_on(method, Fault::new("html", json!({})));
            }
            config
        });
        let mut door = web.shut(&[&web.server.url()], &[]);
        let failure = assert_full(&door.greet());
        assert!(failure.cause.contains("MCP endpoint") && failure.cause.contains("Sign in"), "{failure}");
        assert!(failure.next_try.starts_with("in 29") || failure.next_try.starts_with("in 300"), "{failure}");
        assert!(door.fails("a", "write", json!({})).not_executed());
        web.server.set(|manners| manners.faults.clear());
        door.works_again();
        web.closes(door);
    });
}

#[test]
fn h13_a_page_in_the_middle_of_a_session_ends_its_call_alone() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        door.works();
        let failure = door.fails("a", "html", json!({}));
        assert_eq!(failure.delivery, "unknown", "{failure}");
        door.works();
        web.closes(door);
    });
}

#[test]
fn h15_a_server_that_changes_its_era_is_asked_once_more_and_serves_on() {
    for (before, after) in [(Speaks::Modern, Speaks::Legacy), (Speaks::Legacy, Speaks::Modern)] {
        in_both_eras(|era| {
            let mut web = Web::with(era, |mut config| {
                config.manners.speaks = before;
                config
            });
            let mut door = web.door();
            door.works();
            web.server.set(|manners| manners.speaks = after);
            web.restart();
            // The call that finds out may fail; the line must not.
            door.works_again();
            let counters = web.server.counters();
            let asked = counters.initializes + counters.discovers;
            assert!(asked <= 8, "{before:?} to {after:?}: no loop: {asked} handshakes");
            web.closes(door);
        });
    }
}
