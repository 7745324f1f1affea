//! H18: a call that was answered is over, whatever status its answer came with. H20: after a redirect it is unknown.

use linetender_core::LossReport;

use super::On::{Legacy, Modern, Session};
use super::{ASK, CHALLENGE, Call, ERROR, HTML, JSON, Line, PAGE, RESULT, call, check, line, meaning};

const STATUSES: [u16; 14] = [400, 401, 403, 404, 405, 406, 409, 413, 418, 429, 500, 502, 503, 504];

#[test]
fn a_result_under_our_id_is_the_answer_whatever_its_status() {
    for status in STATUSES {
        for on in [Modern, Legacy, Session] {
            for headers in [&[JSON] as &[_], &[], &[JSON, CHALLENGE], &[JSON, "retry-after: 1"]] {
                let meaning = meaning(on, ASK, status, headers, RESULT);
                let got = (call(&meaning.call), line(&meaning.line));
                assert_eq!(got, ("answer {}".to_owned(), "fine".to_owned()), "{status} {on:?} {headers:?}");
            }
        }
    }
}

#[test]
fn an_error_under_our_id_is_the_answer_whatever_its_status() {
    for status in STATUSES {
        for on in [Modern, Legacy, Session] {
            let meaning = meaning(on, ASK, status, &[JSON], ERROR);
            assert_eq!(call(&meaning.call), r#"answer {"code":-32603}"#, "{status} {on:?}");
        }
    }
}

#[test]
fn refusals_that_are_sent_before_anything_runs_count_under_our_id_too() {
    let coded = |code| format!(r#"{{"id":7,"error":{{"code":{code}}}}}"#);
    let gone = r#"answer {"code":-32001}"#;
    check(&[
        ("-32020", Modern, ASK, 400, &[JSON], &coded(-32020), "refused HeaderMismatch", "headers"),
        ("-32021", Modern, ASK, 400, &[JSON], &coded(-32021), "refused MissingCapability", "fine"),
        ("-32022", Modern, ASK, 400, &[JSON], &coded(-32022), "refused UnsupportedVersion", "versions []"),
        (
            "401 with a challenge",
            Modern,
            ASK,
            401,
            &[JSON, CHALLENGE],
            ERROR,
            "refused Auth",
            "auth by challenge",
        ),
        ("404 -32001, as C# says it", Session, ASK, 404, &[JSON], &coded(-32001), gone, "ping proves"),
        ("404 -32001 without a session", Modern, ASK, 404, &[JSON], &coded(-32001), gone, "fine"),
        (
            "404 and another code",
            Session,
            ASK,
            404,
            &[JSON],
            &coded(-32002),
            r#"answer {"code":-32002}"#,
            "ping",
        ),
        (
            "-32020 with 500",
            Modern,
            ASK,
            500,
            &[JSON],
            &coded(-32020),
            r#"answer {"code":-32020}"#,
            "trouble",
        ),
    ]);
}

#[test]
fn after_a_redirect_it_is_unknown_whether_a_call_was_executed() {
    for (status, headers) in [
        (404, &[HTML] as &[_]),
        (400, &[]),
        (401, &[CHALLENGE]),
        (405, &[]),
        (413, &[]),
        (429, &["retry-after: 1"]),
    ] {
        let meaning = meaning(Session, ASK, status, headers, PAGE).after_redirect();
        assert!(matches!(meaning.call, Call::Lost { report: LossReport::Nothing, .. }), "{status}");
        assert!(!matches!(meaning.line, Line::SessionDoubted { refusal: Some(_) }), "{status}");
    }
}
