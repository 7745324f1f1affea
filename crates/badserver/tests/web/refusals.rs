//! Answers that are no answer.

use std::collections::BTreeMap;

use linetender_badserver::webserver::Fault;
use serde_json::json;

use crate::kit::{ask, call, exchange, plain, post};

#[tokio::test]
async fn statuses_come_with_what_belongs_to_them_and_run_nothing() {
    let web = plain();
    for code in [404, 405, 413, 429, 500, 502, 503, 504] {
        let heard = web.call("status", json!({ "code": code, "retry_after": 3 })).await;
        assert_eq!((heard.status(), heard.header("retry-after")), (code, Some("3")));
        assert!(!heard.body().contains("jsonrpc"));
    }
    let heard = web.call("status", json!({ "code": 400, "with_id": true, "error": -32020 })).await;
    assert_eq!((heard.status(), heard.json()["id"].as_i64()), (400, Some(7)));
    assert_eq!(heard.json()["error"]["code"], -32020);
    let heard = web.call("status", json!({ "code": 401 })).await;
    assert!(heard.header("www-authenticate").unwrap().starts_with("Bearer resource_metadata="));
    let heard = web.call("status", json!({ "code": 401, "challenge": false })).await;
    assert_eq!(heard.header("www-authenticate"), None);
    let heard = web.call("status", json!({ "code": 403, "scope": "files" })).await;
    assert!(heard.header("www-authenticate").unwrap().contains("scope=\"files\""));
    assert_eq!(web.runs(), 0);
    web.call("status", json!({ "code": 500, "run": true })).await;
    assert_eq!(web.runs(), 1, "a tool that failed may have run");
}

/// Whether a call ran is drawn apart from what is answered: each status comes with both.
#[tokio::test]
async fn an_answer_says_nothing_of_whether_the_call_ran() {
    let web = plain();
    let (mut seen, mut runs) = (BTreeMap::<u16, [u32; 2]>::new(), 0);
    for seed in 0..600 {
        let heard = web.call("any", json!({ "seed": seed, "challenges": true })).await;
        let ran = web.runs() - runs;
        runs += ran;
        if !heard.text.is_empty() && !heard.body().contains("\"result\"") {
            seen.entry(heard.status()).or_default()[ran as usize] += 1;
        }
    }
    for status in [200, 307, 308, 400, 401, 403, 404, 405, 413, 429, 500, 502, 503] {
        let [not, ran] = seen.get(&status).copied().unwrap_or_default();
        assert!(not > 0 && ran > 0, "{status}: {not} did not run, {ran} did; {seen:?}");
    }
}

#[tokio::test]
async fn other_media_and_other_ids() {
    let web = plain();
    let heard = web.call("html", json!({})).await;
    assert_eq!((heard.status(), heard.header("content-type")), (200, Some("text/html")));
    let heard = web.call("accepted", json!({})).await;
    assert_eq!((heard.status(), heard.body()), (202, ""));
    let heard = web.call("wrong_id", json!({})).await;
    assert_eq!(heard.json()["id"], 999_999);
    for (tool, status) in [("no_id", 400), ("no_id_200", 200)] {
        let heard = web.call(tool, json!({})).await;
        assert_eq!(heard.status(), status);
        assert!(heard.json().get("id").is_none() && heard.json()["error"]["code"].is_i64());
    }
}

#[tokio::test]
async fn a_redirect_leads_to_an_answer_or_elsewhere() {
    let web = plain();
    let heard = web.call("redirect", json!({})).await;
    assert_eq!((heard.status(), heard.header("location")), (307, Some("/moved")));
    let moved = post("connection: close\r\n", &call("redirect", json!({}))).replace("/mcp", "/moved");
    assert_eq!(exchange(web.addr(), &moved).await.json()["id"], 7);
    let heard = web.call("redirect", json!({ "to": "http://127.0.0.1:1/mcp", "code": 308 })).await;
    assert_eq!((heard.status(), heard.header("location")), (308, Some("http://127.0.0.1:1/mcp")));
}

#[tokio::test]
async fn any_method_can_meet_a_fault_and_only_so_often() {
    let web = plain();
    let fault = Fault::new("status", json!({ "code": 503 })).times(2);
    web.server.set(|manners| manners.fault_on("initialize", fault));
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(web.post("", &ask("initialize")).await.status());
    }
    assert_eq!(statuses, [503, 503, 200]);
    assert_eq!(web.server.counters().initializes, 3);
}

#[tokio::test]
async fn a_refused_stream_closes_a_connection_that_has_no_streams() {
    let web = plain();
    let heard = web.call("refused", json!({})).await;
    assert_eq!(heard.text, "");
    assert_eq!((web.reads(), web.runs()), (1, 0));
}
