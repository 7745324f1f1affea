//! H01, H04, H14: what lies between, and who is at the other end.

use linetender::Era;
use linetender_badserver::proxy::Fault;
use linetender_badserver::webserver::{Config, WebServer};
use serde_json::json;

use crate::kit::{Door, in_both_eras};
use crate::look::Dir;
use crate::told::assert_full;
use crate::web::{Web, manners};

#[test]
fn h01_a_refused_connection_runs_nothing_and_the_server_is_found_when_it_is_back() {
    in_both_eras(|era| {
        let mut web = Web::start(era);
        let mut door = web.door();
        door.works();
        web.stop();
        let failure = door.fails("a", "write", json!({}));
        assert!(failure.not_executed() && failure.cause.contains("connect"), "{failure}");
        web.restart();
        door.works_again();
        assert!(!door.book.runs().contains_key("a"));
        web.closes(door);
    });
}

#[test]
fn h01_a_server_that_is_down_at_the_start_is_found_when_it_is_there() {
    in_both_eras(|era| {
        let mut web = Web::start(era);
        web.stop();
        let mut door = web.shut(&[&web.server.url()], &[]);
        let failure = assert_full(&door.greet());
        assert!(failure.not_executed() && failure.cause.contains("connect"), "{failure}");
        web.restart();
        door.works_again();
        door.greets();
        web.closes(door);
    });
}

#[test]
fn h02b_a_peer_that_falls_silent_ends_its_call_by_the_hard_time() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let (proxy, url) = web.network();
        let mut door = web.shut(&["--call-timeout", "500ms", &url], &[]);
        door.greets();
        door.works();
        web.set(&proxy, Fault::Silence);
        let failure = door.fails("a", "write", json!({}));
        assert_eq!(failure.delivery, "unknown", "{failure}");
        web.set(&proxy, Fault::None);
        door.works_again();
        web.closes(door);
    });
}

#[test]
fn h01_a_name_that_is_nowhere_is_said_to_be() {
    let mut door = Door::open(Era::Legacy, &["http://no-such-host.invalid/mcp"], &[], Dir::new());
    let failure = assert_full(&door.greet());
    assert!(failure.not_executed() && failure.cause.contains("no-such-host.invalid"), "{failure}");
    door.fails("a", "write", json!({}));
    door.closes();
}

#[test]
fn h01_an_untrusted_certificate_is_a_matter_of_configuration_and_a_trusted_one_works() {
    in_both_eras(|era| {
        let web = Web::with(era, |config| Config { tls: true, ..config });
        let mut door = web.shut(&[&web.server.url()], &[]);
        let failure = assert_full(&door.greet());
        assert!(failure.not_executed() && failure.cause.to_lowercase().contains("certificate"), "{failure}");
        assert!(failure.next_try.starts_with("in 29") || failure.next_try.starts_with("in 300"), "{failure}");
        web.closes(door);

        let dir = Dir::new();
        let roots = dir.file("roots.pem");
        std::fs::write(&roots, web.server.certificate_pem().unwrap()).unwrap();
        let mut door = web.shut(&[&web.server.url()], &[("SSL_CERT_FILE", roots.to_str().unwrap())]);
        door.greets();
        door.works();
        web.closes(door);
    });
}

#[test]
fn h04_a_connection_that_went_stale_in_the_pool_costs_no_call() {
    in_both_eras(|era| {
        let web = Web::start(era);
        let mut door = web.door();
        for number in 0..20 {
            // It answers, and closes the connection without having said so.
            door.answers(&format!("e{number}"), "early_close", json!({}));
            let nonce = format!("w{number}");
            let answer = door.call(&nonce, "write", json!({}));
            if crate::told::told(&answer).is_err() {
                // It was closed in the very moment in which it was used: nobody can know.
                assert_eq!(assert_full(&answer).delivery, "unknown", "{answer}");
            }
        }
        door.works();
        web.closes(door);
    });
}

#[test]
fn h14_a_redirect_to_another_origin_is_refused_and_no_credential_goes_there() {
    in_both_eras(|era| {
        let elsewhere = Web::start(era);
        let web = Web::start(era);
        let words = ["--header", "Authorization: $DOOR_SECRET", &web.server.url()];
        let mut door = web.shut(&words, &[("DOOR_SECRET", "Bearer tell-nobody")]);
        door.greets();
        web.fault("redirect", json!({ "to": "/moved", "code": 307 }), Some(1));
        door.answers("a", "write", json!({}));
        for code in [301, 302, 307, 308] {
            web.fault("redirect", json!({ "to": elsewhere.server.url(), "code": code }), Some(1));
            let answer = door.call(&format!("m{code}"), "write", json!({}));
            assert!(assert_full(&answer).cause.contains("redirect"), "{answer}");
            assert!(!answer.to_string().contains("tell-nobody"), "{answer}");
        }
        door.works();
        assert!(
            web.server.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer tell-nobody"))
        );
        assert_eq!(elsewhere.server.counters().connections, 0, "nobody went there");
        web.closes(door);
    });
}

#[test]
fn h14_a_redirect_from_https_to_http_is_refused() {
    let web = Web::with(Era::Modern, |config| Config { tls: true, ..config });
    let plain = {
        let _entered = web.runtime.enter();
        WebServer::start(Config { manners: manners(Era::Modern), ..Config::default() }).unwrap()
    };
    let dir = Dir::new();
    let roots = dir.file("roots.pem");
    std::fs::write(&roots, web.server.certificate_pem().unwrap()).unwrap();
    let mut door = web.shut(&[&web.server.url()], &[("SSL_CERT_FILE", roots.to_str().unwrap())]);
    door.greets();
    web.fault("redirect", json!({ "to": plain.url(), "code": 307 }), Some(1));
    let failure = door.fails("a", "write", json!({}));
    assert!(failure.cause.contains("redirect"), "{failure}");
    assert_eq!(plain.counters().connections, 0);
    door.works();
    web.closes(door);
}
