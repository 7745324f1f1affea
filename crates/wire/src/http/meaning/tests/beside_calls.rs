//! What is not a caller's request: handshakes, streams, goodbyes.

use super::On::{Legacy, Modern, Session};
use super::{
    ASK, CHALLENGE, DISCOVER, ERROR, HTML, IDLESS, INIT, JSON, NO_METHOD, PAGE, Purpose, RESULT, SSE, check,
};

#[test]
fn handshakes_find_the_era_and_what_is_no_server() {
    let version = r#"{"id":7,"error":{"code":-32022,"data":{"supported":["x"]}}}"#;
    let idless = r#"answer {"code":-32000,"message":"No valid session ID"}"#;
    let refused = "refused UnsupportedVersion";
    check(&[
        ("discovered", Modern, DISCOVER, 200, &[JSON], RESULT, "answer {}", "fine"),
        ("discover: 400", Modern, DISCOVER, 400, &[JSON], IDLESS, idless, "other era"),
        ("discover: 404", Modern, DISCOVER, 404, &[HTML], PAGE, "lost", "other era"),
        ("discover: 405", Modern, DISCOVER, 405, &[], "", "refused MethodNotAllowed", "other era"),
        ("discover: 406", Modern, DISCOVER, 406, &[], "", "lost", "other era"),
        (
            "discover: no method",
            Modern,
            DISCOVER,
            200,
            &[JSON],
            NO_METHOD,
            r#"answer {"code":-32601}"#,
            "other era",
        ),
        (
            "discover: 404 no method",
            Modern,
            DISCOVER,
            404,
            &[JSON],
            NO_METHOD,
            r#"answer {"code":-32601}"#,
            "other era",
        ),
        (
            "discover: version",
            Modern,
            DISCOVER,
            400,
            &[JSON],
            version,
            "refused UnsupportedVersion",
            r#"versions ["x"]"#,
        ),
        (
            "discover: version with 200",
            Modern,
            DISCOVER,
            200,
            &[JSON],
            version,
            r#"answer {"code":-32022,"data":{"supported":["x"]}}"#,
            r#"versions ["x"]"#,
        ),
        ("discover: 500", Modern, DISCOVER, 500, &[], "", "lost", "trouble"),
        ("initialized", Legacy, INIT, 200, &[SSE], "", "stream", "fine"),
        (
            "initialize: modern only",
            Legacy,
            INIT,
            400,
            &[JSON],
            version,
            "refused UnsupportedVersion",
            "other era",
        ),
        (
            "initialize: no method",
            Legacy,
            INIT,
            404,
            &[JSON],
            NO_METHOD,
            r#"answer {"code":-32601}"#,
            "other era",
        ),
        ("initialize: 404", Legacy, INIT, 404, &[HTML], PAGE, "lost", "not mcp"),
        ("initialize: 405", Legacy, INIT, 405, &[], "", "refused MethodNotAllowed", "not mcp"),
        ("initialize: an error", Legacy, INIT, 400, &[JSON], ERROR, r#"answer {"code":-32603}"#, "fine"),
        ("H15: a modern line meets a legacy server", Modern, ASK, 400, &[JSON], IDLESS, "lost", "other era"),
        (
            "H15: a legacy line meets a modern server",
            Session,
            ASK,
            400,
            &[JSON],
            version,
            refused,
            "other era",
        ),
        ("H15: without a session", Legacy, ASK, 400, &[JSON], version, refused, "other era"),
        ("H15: or something else", Modern, ASK, 404, &[HTML], PAGE, "lost", "other era"),
        ("H13: portal", Modern, DISCOVER, 200, &[HTML], PAGE, "unusable", "not mcp"),
        ("H13: portal later", Session, ASK, 200, &[], PAGE, "unusable", "not mcp"),
        ("H13: portal without a type", Legacy, INIT, 200, &[HTML], "Welcome", "unusable", "not mcp"),
        ("another API", Legacy, INIT, 200, &[JSON], "{\"ok\":1}", "unusable", "not mcp"),
    ]);
}

#[test]
fn streams_and_goodbyes_leave_the_line_alone() {
    let (get, delete) = (Purpose::Stream, Purpose::Delete);
    check(&[
        ("GET", Session, get, 200, &[SSE], "", "stream", "fine"),
        ("H17: empty GET", Session, get, 200, &[], "", "unusable", "fine"),
        ("GET: a page", Session, get, 200, &[HTML], PAGE, "unusable", "fine"),
        ("GET: 405", Session, get, 405, &[], "", "refused MethodNotAllowed", "fine"),
        ("GET: 404", Session, get, 404, &[], "", "lost", "ping"),
        ("GET: 404 without a session", Legacy, get, 404, &[], "", "lost", "fine"),
        ("GET: 429", Session, get, 429, &["retry-after: 1"], "", "lost", "later Some(1)"),
        ("GET: 502", Session, get, 502, &[], "", "lost", "trouble"),
        ("GET: 401", Session, get, 401, &[CHALLENGE], "", "refused Auth", "auth by challenge"),
        ("DELETE", Session, delete, 200, &[], "", "accepted", "fine"),
        ("DELETE: 404", Session, delete, 404, &[], "", "accepted", "fine"),
        ("DELETE: 405", Session, delete, 405, &[], "", "lost", "fine"),
    ]);
}
