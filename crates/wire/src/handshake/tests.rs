use super::{Era, Eras, Greeting, Handshake, Hello, Next};
use crate::redact::Redacted;
use crate::seen::Seen;

fn hello() -> Hello {
    Hello::Ours { name: "linetender".into(), version: "0".into() }
}

fn asks(next: &Next) -> &'static str {
    match next {
        Next::Ask { method, .. } => method,
        other => panic!("{other:?}"),
    }
}

#[test]
fn modern_is_asked_first_unless_something_is_known() {
    let first = |eras, remembered| {
        let handshake = Handshake::new(hello(), eras, remembered);
        asks(&handshake.ask())
    };
    assert_eq!(first(Eras::Auto, None), "server/discover");
    assert_eq!(first(Eras::Auto, Some(Era::Legacy)), "initialize");
    assert_eq!(first(Eras::Auto, Some(Era::Modern)), "server/discover");
    assert_eq!(first(Eras::Only(Era::Legacy), Some(Era::Modern)), "initialize");
}

#[test]
fn a_modern_error_stays_modern_and_any_other_means_legacy() {
    for code in [-32020, -32021, -32022] {
        let mut handshake = Handshake::new(hello(), Eras::Auto, None);
        let failed = handshake.refused(&format!(r#"{{"code":{code},"message":"x"}}"#));
        assert!(matches!(failed, Next::Failed(Seen::Handshake { .. })), "{code}");
    }
    for error in [r#"{"code":-32601}"#, r#"{"code":-32602}"#, r#"{"code":0}"#, "{}", "null"] {
        let mut handshake = Handshake::new(hello(), Eras::Auto, None);
        assert_eq!(asks(&handshake.refused(error)), "initialize");
        assert_eq!(handshake.asking(), Era::Legacy);
        assert!(matches!(handshake.refused(error), Next::Failed(_)), "and that is the last");
    }
}

#[test]
fn a_version_that_the_server_lists_is_tried_again_once() {
    let refusal =
        |listed: &str| format!(r#"{{"code":-32022,"message":"x","data":{{"supported":["{listed}"]}}}}"#);
    for eras in [Eras::Auto, Eras::Only(Era::Modern)] {
        let mut handshake = Handshake::new(hello(), eras, None);
        assert_eq!(asks(&handshake.refused(&refusal("2026-07-28"))), "server/discover");
        assert!(matches!(handshake.refused(&refusal("2026-07-28")), Next::Failed(_)), "but not for ever");
        let mut handshake = Handshake::new(hello(), eras, None);
        assert!(matches!(handshake.refused(&refusal("2031-01-01")), Next::Failed(_)));
    }
}

#[test]
fn silence_and_a_sudden_end_lead_to_the_other_era_once() {
    let mut handshake = Handshake::new(hello(), Eras::Auto, None);
    assert_eq!(handshake.ended(), Some(Era::Legacy));
    assert_eq!(asks(&handshake.silent().unwrap()), "initialize");
    assert_eq!((handshake.silent(), handshake.ended()), (None, None));
    let mut only = Handshake::new(hello(), Eras::Only(Era::Modern), None);
    assert_eq!((only.silent(), only.ended()), (None, None));
    assert!(matches!(only.refused("{}"), Next::Failed(_)));
}

#[test]
fn a_result_is_a_greeting_if_it_can_be_one() {
    let mut handshake = Handshake::new(hello(), Eras::Auto, Some(Era::Legacy));
    let result = r#"{"protocolVersion":"2025-06-18"}"#;
    assert_eq!(handshake.accepted(result), Next::Done(Greeting { era: Era::Legacy, result: result.into() }));
    let mut only = Handshake::new(hello(), Eras::Only(Era::Legacy), None);
    assert!(matches!(only.accepted("null"), Next::Failed(_)));
}

#[test]
fn a_server_that_refuses_initialize_may_be_a_modern_one_and_else_its_reason_is_told() {
    let mut handshake = Handshake::new(hello(), Eras::Auto, Some(Era::Legacy));
    assert_eq!(asks(&handshake.refused(r#"{"code":-32000,"message":"no API key"}"#)), "server/discover");
    let Next::Failed(seen) = handshake.refused(r#"{"code":-32601,"message":"method not found"}"#) else {
        panic!("it was asked in both eras")
    };
    assert!(seen.to_string().contains("no API key"), "{seen}");
}

/// What the other question brought says only that the server is no modern one.
#[test]
fn h30_what_was_wrong_with_the_answer_to_initialize_is_the_reason() {
    let unknown = r#"{"code":-32601,"message":"Method not found"}"#;
    for answer in ["null", "[]"] {
        let mut handshake = Handshake::new(hello(), Eras::Auto, Some(Era::Legacy));
        assert_eq!(asks(&handshake.accepted(answer)), "server/discover");
        let Next::Failed(seen) = handshake.refused(unknown) else { panic!("it was asked in both eras") };
        assert!(seen.to_string().contains(answer), "{seen}");
    }
    let mut handshake = Handshake::new(hello(), Eras::Auto, Some(Era::Legacy));
    let broken = Seen::Broken { words: Redacted::head("invalid HTTP header", 100) };
    assert_eq!(asks(&handshake.other_after(broken.clone()).unwrap()), "server/discover");
    assert_eq!(handshake.refused(unknown), Next::Failed(broken));
}

#[test]
fn an_empty_result_is_no_modern_greeting() {
    for result in ["{}", r#"{"capabilities":null}"#, "null"] {
        let mut handshake = Handshake::new(hello(), Eras::Auto, None);
        assert_eq!(asks(&handshake.accepted(result)), "initialize");
        let mut only = Handshake::new(hello(), Eras::Only(Era::Modern), None);
        assert!(matches!(only.accepted(result), Next::Failed(_)));
    }
    for result in [r#"{"supportedVersions":[]}"#, r#"{"capabilities":{}}"#] {
        let mut handshake = Handshake::new(hello(), Eras::Auto, None);
        assert!(matches!(handshake.accepted(result), Next::Done(Greeting { era: Era::Modern, .. })));
    }
}

#[test]
fn an_agent_speaks_for_itself() {
    let params = r#"{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"a","version":"1"},"x":1}"#;
    let hello = Hello::Agent(params.into());
    let Next::Ask { params: said, .. } = Handshake::new(hello.clone(), Eras::Only(Era::Legacy), None).ask()
    else {
        panic!()
    };
    assert_eq!(said, params, "as it was spelt");
    assert_eq!(
        hello.meta()["io.modelcontextprotocol/clientCapabilities"],
        serde_json::json!({ "roots": {} })
    );
    let odd = Hello::Agent("not json".into());
    assert_eq!(odd.meta()["io.modelcontextprotocol/clientCapabilities"], serde_json::json!({}));
}
