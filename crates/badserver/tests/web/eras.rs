//! Both eras, as their specifications ask.

use linetender_badserver::webserver::Speaks;
use serde_json::json;

use crate::kit::{Web, ask, call, exchange, get, modern, plain, web};

fn only(speaks: Speaks) -> Web {
    web(|manners| manners.speaks = speaks)
}

#[tokio::test]
async fn modern_lets_in_only_what_is_complete() {
    let web = only(Speaks::Modern);
    let heard = web.modern("server/discover", json!({})).await;
    assert_eq!(heard.json()["result"]["supportedVersions"], json!(["2026-07-28"]));
    let heard = web.modern("tools/list", json!({})).await;
    assert_eq!(heard.json()["result"]["cacheScope"], "private");
    let heard = web.modern("tools/call", json!({ "name": "echo", "arguments": {} })).await;
    assert_eq!(heard.json()["result"]["resultType"], "complete");

    let heard = web.post("", &ask("tools/list")).await;
    assert_eq!((heard.status(), heard.json()["error"]["code"].as_i64()), (400, Some(-32602)));
    let heard = web.modern("nonsense", json!({})).await;
    assert_eq!((heard.status(), heard.json()["error"]["code"].as_i64()), (404, Some(-32601)));
    let heard = web.post("", &ask("initialize")).await;
    assert_eq!((heard.status(), heard.json()["error"]["code"].as_i64()), (400, Some(-32022)));
    for request in [get("connection: close\r\n"), get("connection: close\r\n").replace("GET", "DELETE")] {
        assert_eq!(exchange(web.addr(), &request).await.status(), 405);
    }
}

#[tokio::test]
async fn modern_headers_have_to_agree_with_the_body() {
    let web = only(Speaks::Modern);
    let (body, headers) = modern("tools/call", json!({ "name": "routed", "arguments": { "region": "süd" } }));
    let code = async |headers: &str| {
        let heard = web.post(headers, &body).await;
        (heard.status(), heard.json()["error"]["code"].as_i64())
    };
    assert_eq!(code(&headers).await, (400, Some(-32020)), "the argument has to be in a header");
    let complete = format!("{headers}mcp-param-region: =?base64?c8O8ZA==?=\r\n");
    assert_eq!(code(&complete).await, (200, None));
    assert_eq!(code(&complete.replace("tools/call", "tools/list")).await, (400, Some(-32020)));
    assert_eq!(code(&complete.replace("name: routed", "name: echo")).await, (400, Some(-32020)));
    assert_eq!(code(&complete.replace("2026-07-28", "2026-07-29")).await, (400, Some(-32020)));
    web.server.set(|manners| manners.param_header = "Zone".to_owned());
    assert_eq!(code(&complete).await, (400, Some(-32020)), "a client's list can become stale");
    web.server.set(|manners| manners.modern_versions = vec!["2027-01-01".to_owned()]);
    assert_eq!(code(&complete).await, (400, Some(-32022)));
}

#[tokio::test]
async fn legacy_knows_no_discovery() {
    let web = only(Speaks::Legacy);
    let heard = web.modern("server/discover", json!({})).await;
    assert_eq!((heard.status(), heard.json()["id"].is_null()), (400, true));
    let web = plain();
    web.server.set(|manners| manners.speaks = Speaks::Legacy);
    let heard = web.post("", &ask("server/discover")).await;
    assert_eq!((heard.status(), heard.json()["error"]["code"].as_i64()), (200, Some(-32601)));
}

#[tokio::test]
async fn a_version_from_the_future_is_answered_with_the_newest_legacy_one() {
    let web = only(Speaks::Legacy);
    for (asked, answered) in [("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25")] {
        let mut message = ask("initialize");
        message["params"]["protocolVersion"] = asked.into();
        assert_eq!(web.post("", &message).await.json()["result"]["protocolVersion"], answered);
    }
    let heard = web.post("", &json!([ask("ping")])).await;
    assert_eq!((heard.status(), heard.json()["error"]["code"].as_i64()), (400, Some(-32600)));
}

#[tokio::test]
async fn the_era_flips_while_it_runs() {
    let web = plain();
    assert_eq!(web.modern("server/discover", json!({})).await.status(), 200);
    assert_eq!(web.call("echo", json!({})).await.status(), 200);
    web.server.set(|manners| manners.speaks = Speaks::Legacy);
    assert_eq!(web.modern("server/discover", json!({})).await.status(), 400);
    web.server.set(|manners| manners.speaks = Speaks::Modern);
    assert_eq!(web.post("", &call("echo", json!({}))).await.status(), 400);
    assert_eq!(web.server.counters().discovers, 2);
}

#[tokio::test]
async fn both_kinds_of_answer_have_to_be_accepted() {
    let web = plain();
    let request = crate::kit::post("connection: close\r\n", &ask("ping")).replace(", text/event-stream", "");
    assert_eq!(exchange(web.addr(), &request).await.status(), 406);
}
