//! Legacy sessions: given, asked for, forgotten.

use linetender_badserver::webserver::{Ending, UnknownSession};
use serde_json::{Value, json};

use crate::kit::{Web, ask, call, exchange, get, web};

async fn opened(web: &Web) -> String {
    let heard = web.post("", &ask("initialize")).await;
    assert_eq!(heard.status(), 200);
    format!("mcp-session-id: {}\r\n", heard.header("mcp-session-id").unwrap())
}

#[tokio::test]
async fn a_session_is_asked_for_and_can_be_ended() {
    let web = web(|_| {});
    let session = opened(&web).await;
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(web.post(&session, &note).await.status(), 202);
    assert_eq!(web.post(&session, &call("echo", json!({}))).await.status(), 200);
    let heard = web.post("", &call("echo", json!({}))).await;
    assert_eq!((heard.status(), heard.json()["id"].is_null()), (400, true));
    let delete = get(&format!("connection: close\r\n{session}")).replace("GET", "DELETE");
    assert_eq!(exchange(web.addr(), &delete).await.status(), 200);
    assert_eq!(web.post(&session, &ask("ping")).await.status(), 404);
    assert_eq!(web.server.counters().deletes, 1);
    assert_ne!(opened(&web).await, session);
}

#[tokio::test]
async fn a_lost_session_is_told_in_all_the_ways_of_the_field() {
    let web = web(|_| {});
    let session = opened(&web).await;
    web.server.forget_sessions();
    for (how, status, id, code) in [
        (UnknownSession::NotFound, 404, Value::Null, Some(-32001)),
        (UnknownSession::BadRequest, 400, Value::Null, Some(-32000)),
        (UnknownSession::Error(-32600), 200, json!(7), Some(-32600)),
    ] {
        web.server.set(|manners| manners.unknown_session = how);
        let heard = web.post(&session, &ask("ping")).await;
        assert_eq!((heard.status(), &heard.json()["id"]), (status, &id));
        assert_eq!(heard.json()["error"]["code"].as_i64(), code);
    }
    for (how, status) in [(UnknownSession::Unauthorized, 401), (UnknownSession::Unavailable, 503)] {
        web.server.set(|manners| manners.unknown_session = how);
        assert_eq!(web.post(&session, &ask("ping")).await.status(), status);
    }
    assert_eq!(web.runs(), 0);
}

#[tokio::test]
async fn a_restart_keeps_the_port_and_forgets_the_sessions() {
    let mut web = web(|_| {});
    let session = opened(&web).await;
    let before = web.addr();
    web.server.restart(Ending::Reset).await.unwrap();
    assert_eq!(web.addr(), before);
    assert_eq!(web.post(&session, &ask("ping")).await.status(), 404);
    opened(&web).await;
    assert_eq!(web.server.counters().initializes, 2);
    let seen = web.server.seen();
    assert_eq!(seen[1].header("mcp-session-id"), Some(session[16..].trim()));
}
