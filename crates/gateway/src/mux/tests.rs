use std::sync::Arc;

use bytes::Bytes;
use linetender::Rig;
use linetender_wire::frame::{self, Frame, Passed};
use serde_json::{Value, json};

use super::State;
use super::acts::Act;
use crate::config::{Settings, load};
use crate::ends::Ended;
use crate::failed::{Failed, Full};
use crate::listing::{Berth, Listing, View};
use crate::principal::Principal;

/// Two servers that are never dialled: what a message leads to needs neither.
fn view() -> Arc<View> {
    let config = load("t", "[servers.a]\ncommand='x'\n[servers.b]\ncommand='x'\nscope='session'", &|_| None);
    let rig = Rig::new();
    let berths = config.unwrap().servers.into_iter().zip(0..).map(|(entry, number)| {
        let line = rig.lazy(entry.server.clone());
        Arc::new(Berth { number, entry, line })
    });
    let berths: Vec<_> = berths.collect();
    Arc::clone(&Listing::of(&berths, &Settings::default(), None).seen_by(&Principal::user(1)).all)
}

fn said(text: &str) -> Frame {
    frame::parse(&Bytes::from(text.to_owned()), frame::Limits { length: 10_000, depth: 64 }).unwrap()
}

fn request(id: &Value, method: &str, params: &Value) -> Frame {
    said(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
}

fn legacy(view: &View) -> State {
    let mut state = State::default();
    state.agent_said(&request(&json!(0), "initialize", &json!({ "protocolVersion": "2025-11-25" })), view);
    state
}

fn read(text: &Passed) -> Value {
    serde_json::from_slice(text.text()).unwrap()
}

fn told(acts: &[Act]) -> Value {
    match acts {
        [Act::Tell(text) | Act::End(text, _)] => read(text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn only_the_name_of_a_call_is_changed_and_its_answer_finds_back() {
    let view = view();
    let mut state = legacy(&view);
    let text = r#"{ "id":"x\u00e9", "jsonrpc":"2.0","extra":[1.50], "method":"tools/call","params":{"arguments":{"name":"a__t","n":1e400},"name":"b__t__u"} }"#;
    let acts = state.agent_said(&said(text), &view);
    let [Act::Ask { to: 1, id, frame: sent }] = &*acts else { panic!("{acts:?}") };
    assert_eq!(&**id, r#""x\u00e9""#);
    assert_eq!(sent.text(), &text.replace(r#""b__t__u""#, r#""t__u""#), "every other byte stays");
    assert!(state.is_busy(1));
    let answer = r#"{"jsonrpc":"2.0","id":"x\u00e9","result":{"content":[],"n":1.50}}"#;
    assert_eq!(state.line_said(1, &said(answer), &view), [Act::Tell(said(answer).into())]);
    assert!(!state.is_busy(1));
    assert_eq!(state.line_said(1, &said(answer), &view), [], "nobody waits for it a second time");
}

#[tokio::test]
async fn addresses_that_will_be_handed_back_are_the_ones_that_the_agent_knows() {
    let view = view();
    let mut state = legacy(&view);
    for (method, params, result, expected) in [
        (
            "tools/call",
            json!({ "name": "a__t" }),
            r#"{"content":[{"type":"text","text":"see \"uri\" x:1"},{"type":"resource_link","uri":"x:1","n":1.50},{"type":"resource","resource":{"uri":"x:2","text":""}}],"structuredContent":{"uri":"x:3"}}"#,
            r#"{"content":[{"type":"text","text":"see \"uri\" x:1"},{"type":"resource_link","uri":"linetender://a/x:1","n":1.50},{"type":"resource","resource":{"uri":"linetender://a/x:2","text":""}}],"structuredContent":{"uri":"x:3"}}"#,
        ),
        (
            "prompts/get",
            json!({ "name": "a__p" }),
            r#"{"messages":[{"content":{"type":"resource","resource":{"uri":"x:1"}}}]}"#,
            r#"{"messages":[{"content":{"type":"resource","resource":{"uri":"linetender://a/x:1"}}}]}"#,
        ),
        (
            "resources/read",
            json!({ "uri": "linetender://a/x:1" }),
            r#"{"contents":[{"uri":"x:1","text":"t"}]}"#,
            r#"{"contents":[{"uri":"linetender://a/x:1","text":"t"}]}"#,
        ),
    ] {
        state.agent_said(&request(&json!(1), method, &params), &view);
        let acts =
            state.line_said(0, &said(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)), &view);
        let expected = said(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{expected}}}"#));
        assert_eq!(acts, [Act::Tell(expected.into())]);
    }
    let updated = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}"#;
    assert_eq!(told(&state.line_said(1, &said(updated), &view))["params"]["uri"], "linetender://b/x:1");
    for twice in [r#"{"uri":"x:1","uri":"x:2"}"#, r#"{"uri":"x:1","URI":"x:2"}"#] {
        let updated = updated.replace(r#"{"uri":"x:1"}"#, twice);
        assert_eq!(state.line_said(1, &said(&updated), &view), [], "two readers would read two addresses");
    }
}

#[tokio::test]
async fn questions_of_two_servers_under_the_same_number_are_told_apart() {
    let view = view();
    let mut state = legacy(&view);
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    assert_eq!(told(&state.line_said(0, &said(question), &view))["id"], 1);
    assert_eq!(told(&state.line_said(1, &said(question), &view))["id"], 2);
    let acts = state.agent_said(&said(r#"{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}"#), &view);
    assert_eq!(acts, [Act::IfOpen(1, said(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).into())]);
    assert_eq!(state.agent_said(&said(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#), &view), [], "once");
    let back =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}"#;
    assert_eq!(
        told(&state.line_said(0, &said(back), &view))["params"],
        json!({ "requestId": 1, "reason": "r" })
    );
    assert_eq!(state.line_said(0, &said(back), &view), [], "it was taken back");
}

#[tokio::test]
async fn a_cancellation_goes_where_its_request_went() {
    let view = view();
    let mut state = legacy(&view);
    state.agent_said(&request(&json!(5), "tools/call", &json!({ "name": "b__t" })), &view);
    let cancel = said(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    assert_eq!(state.agent_said(&cancel, &view), [Act::IfOpen(1, cancel.clone().into())]);
    let unknown = said(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}"#);
    assert_eq!(state.agent_said(&unknown, &view), []);
    assert!(state.is_idle(), "nobody waits for what was taken back");
    state.agent_said(&request(&json!(7), "tools/call", &json!({ "name": "b__t" })), &view);
    let left = state.gone();
    assert!(matches!(&*left, [Act::IfOpen(1, text)] if read(text)["params"]["requestId"] == 7), "{left:?}");
}

#[tokio::test]
async fn who_takes_much_back_is_served_on() {
    let view = view();
    let mut state = legacy(&view);
    for id in 0..2 * super::OPEN {
        let asked = request(&json!(id), "tools/call", &json!({ "name": "a__t" }));
        assert!(matches!(&*state.agent_said(&asked, &view), [Act::Ask { .. }]), "{id}");
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        state.agent_said(&said(&cancel.to_string()), &view);
    }
}

#[tokio::test]
async fn a_new_way_to_a_server_begins_with_who_the_agent_is_and_what_it_wants() {
    let view = view();
    let mut state = legacy(&view);
    let level = state.agent_said(&request(&json!(1), "logging/setLevel", &json!({ "level": "info" })), &view);
    assert!(matches!(&*level, [Act::End(..), Act::Say(0, _), Act::IfOpen(1, _)]), "{level:?}");
    let uri = json!({ "uri": "linetender://b/x:1" });
    state.agent_said(&request(&json!(2), "resources/subscribe", &uri), &view);
    let first: Vec<_> = state.opening(1, "b").into_iter().map(|text| read(&text.into())).collect();
    let methods: Vec<_> = first.iter().map(|one| one["method"].as_str().unwrap()).collect();
    let wanted = ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"];
    assert_eq!(methods, wanted);
    assert_eq!(
        (&first[0]["params"]["protocolVersion"], &first[3]["params"]["uri"]),
        (&json!("2025-11-25"), &json!("x:1"))
    );
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, first[0]["id"]);
    assert_eq!(state.line_said(1, &said(&answer), &view), [], "what we asked is answered to nobody");
}

#[tokio::test]
async fn what_belongs_to_nobody_is_refused_with_a_reason() {
    let view = view();
    let mut state = legacy(&view);
    let mut ask =
        |method: &str, params: Value| told(&state.agent_said(&request(&json!(1), method, &params), &view));
    assert_eq!(ask("tools/call", json!({ "name": "c__t" }))["result"]["isError"], true);
    assert_eq!(ask("prompts/get", json!({ "name": "t" }))["error"]["data"]["servers"], json!(["a", "b"]));
    assert_eq!(ask("tools/call", json!({}))["error"]["code"], -32602);
    assert_eq!(ask("tasks/get", json!({ "taskId": "1" }))["error"]["code"], -32602);
    assert_eq!(ask("tasks/odd", json!({ "taskId": "1" }))["error"]["code"], -32601);
    assert_eq!(ask("ping", json!({}))["result"], json!({}));
    for id in 0..super::OPEN {
        let params = json!({ "name": "a__t" });
        assert!(matches!(
            &*state.agent_said(&request(&json!(id), "tools/call", &params), &view),
            [Act::Ask { .. }]
        ));
    }
    let refused = told(&state.agent_said(&request(&json!("more"), "ping", &json!({})), &view));
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["delivery"]),
        (&json!(7002), &json!("not executed"))
    );
    let call = told(&state.agent_said(&request(&json!("more"), "tools/call", &json!({})), &view));
    assert_eq!(
        (&call["result"]["isError"], &call["result"]["_meta"]["linetender"]["retryAfter"]),
        (&json!(true), &json!(1)),
        "a model reads it too"
    );
    assert_eq!(state.lost(0, "a").len(), super::OPEN, "each is told when its server is taken away");
}

#[tokio::test]
async fn whatever_ends_here_says_where_why_and_what_now() {
    const MEMBERS: [&str; 7] = ["source", "server", "phase", "cause", "delivery", "reason", "nextTry"];
    let view = view();
    for (method, params) in
        [("tools/call", json!({ "name": "a__t" })), ("prompts/get", json!({ "name": "a__t" }))]
    {
        let mut state = legacy(&view);
        let mut ask = |id: u32| {
            let asked = state.agent_said(&request(&json!(id), method, &params), &view);
            assert!(matches!(&*asked, [Act::Ask { .. }]), "{asked:?}");
        };
        ask(1);
        ask(2);
        let (text, ended) = state.not_taken("1", &Failed::full(Full::Lines).of(Some("a")));
        assert_eq!(ended, Ended::Refused(linetender::Code::Overloaded.number()));
        let refused = [Act::Tell(text.into())];
        for (told, delivery) in [(told(&refused), "not executed"), (told(&state.lost(0, "a")), "unknown")] {
            let data = match method {
                "tools/call" => &told["result"]["_meta"]["linetender"],
                _ => &told["error"]["data"],
            };
            for member in MEMBERS {
                assert!(data[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {told}");
            }
            assert_eq!((&data["server"], &data["delivery"]), (&json!("a"), &json!(delivery)), "{told}");
        }
    }
}
