use http::HeaderMap;
use proptest::prelude::*;

use super::{
    Ask, Invalid, LAST_EVENT_ID, PARAMS_MOST, ParamHeaders, SESSION_LIMIT, SessionId, VALUE_LIMIT, decode,
    delete_headers, encode, headers, stream_headers,
};
use crate::frame::Members;
use crate::handshake::{Era, MODERN};

const MODERN_ASK: Ask<'static> = Ask {
    era: Era::Modern,
    version: Some(MODERN),
    method: "tools/list",
    params: None,
    session: None,
    param_headers: None,
};

fn shown(map: &HeaderMap) -> Vec<String> {
    let mut all: Vec<_> =
        map.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    all.sort();
    all
}

/// Those of the modern era only.
fn metadata(ask: &Ask<'_>) -> Vec<String> {
    shown(&headers(ask)).into_iter().filter(|line| line.starts_with("mcp-")).collect()
}

#[test]
fn a_legacy_request_has_its_session_and_no_metadata() {
    let session = SessionId::new("abc").unwrap();
    let ask = Ask { era: Era::Legacy, version: None, method: "initialize", ..MODERN_ASK };
    let plain = ["accept: application/json, text/event-stream", "content-type: application/json"];
    assert_eq!(shown(&headers(&ask)), plain);
    let ask = Ask { version: Some("2025-11-25"), method: "tools/call", session: Some(&session), ..ask };
    assert_eq!(
        shown(&headers(&ask)),
        [plain[0], plain[1], "mcp-protocol-version: 2025-11-25", "mcp-session-id: abc"]
    );
}

#[test]
fn a_modern_request_names_what_it_is_about() {
    let session = SessionId::new("abc").unwrap();
    for (method, params, name) in [
        ("tools/call", r#"{"name":"get_weather","arguments":{}}"#, Some("get_weather")),
        ("prompts/get", r#"{"name":"p"}"#, Some("p")),
        ("resources/read", r#"{"uri":"file:///a b"}"#, Some("file:///a b")),
        ("tasks/get", r#"{"taskId":"t-1"}"#, Some("t-1")),
        ("tasks/cancel", r#"{"taskId":"t-1","name":"x"}"#, Some("t-1")),
        ("tools/call", r#"{"name":"a","name":"b\u0062"}"#, Some("bb")),
        ("tools/call", r#"{"name":"größe"}"#, Some("=?base64?Z3LDtsOfZQ==?=")),
        ("tools/call", r#"{"name":7}"#, None),
        ("tools/call", "[]", None),
        ("tools/list", r#"{"name":"x"}"#, None),
    ] {
        let params = Members::of(params);
        let ask = Ask { method, params: params.as_ref(), session: Some(&session), ..MODERN_ASK };
        let mut expected = vec![format!("mcp-method: {method}")];
        expected.extend(name.map(|name| format!("mcp-name: {name}")));
        expected.push(format!("mcp-protocol-version: {MODERN}"));
        assert_eq!(metadata(&ask), expected, "{method} {name:?}");
    }
}

#[test]
fn hostile_text_never_becomes_a_header_of_its_own() {
    let ask = Ask { method: "a\r\nx: y", version: Some("1\r\nx: y"), ..MODERN_ASK };
    assert_eq!(metadata(&ask), Vec::<String>::new());
    assert!(SessionId::new("a b").is_none());
    assert!(SessionId::new("a\r\nb").is_none());
    assert!(SessionId::new("").is_none());
    assert!(SessionId::new("ä").is_none());
    assert!(SessionId::new(&"s".repeat(SESSION_LIMIT)).is_some());
    assert!(SessionId::new(&"s".repeat(SESSION_LIMIT + 1)).is_none());
    assert!(stream_headers(None, None, Some("a\nb")).get(LAST_EVENT_ID).is_none());
}

#[test]
fn a_session_is_never_printed() {
    let session = SessionId::new("hunter2").unwrap();
    let ask = Ask { era: Era::Legacy, session: Some(&session), ..MODERN_ASK };
    assert!(!format!("{session:?} {ask:?} {:?}", headers(&ask)).contains("hunter2"));
    assert_eq!(session.as_str(), "hunter2");
}

#[test]
fn a_stream_is_resumed_behind_its_last_event() {
    let session = SessionId::new("abc").unwrap();
    assert_eq!(
        shown(&stream_headers(Some("2025-11-25"), Some(&session), Some("e 9"))),
        [
            "accept: text/event-stream",
            "last-event-id: e 9",
            "mcp-protocol-version: 2025-11-25",
            "mcp-session-id: abc"
        ]
    );
    assert_eq!(shown(&delete_headers(None, Some(&session))), ["mcp-session-id: abc"]);
}

#[test]
fn values_are_spelt_so_that_they_survive_a_header() {
    for (text, header) in [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b\tc", "a b\tc"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?x?=", "=?BASE64?x?="),
    ] {
        assert_eq!(encode(text).unwrap().to_str().unwrap(), header);
        assert_eq!(decode(header).as_deref(), Some(text));
    }
    assert_eq!(decode("=?base64?!?="), None);
    assert!(encode(&"x".repeat(VALUE_LIMIT + 1)).is_none());
}

fn mirrored(schema: &str, arguments: &str) -> Vec<String> {
    let wanted = ParamHeaders::of(schema).unwrap();
    let params = format!(r#"{{"name":"t","arguments":{arguments}}}"#);
    let params = Members::of(&params);
    let ask =
        Ask { method: "tools/call", params: params.as_ref(), param_headers: Some(&wanted), ..MODERN_ASK };
    metadata(&ask).into_iter().filter(|line| line.starts_with("mcp-param-")).collect()
}

#[test]
fn annotated_arguments_are_mirrored() {
    let schema = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "n":{"type":"integer","x-mcp-header":"N"},
        "b":{"type":["boolean","null"],"x-mcp-header":"B"},
        "o":{"type":"object","properties":{"in":{"type":"string","x-mcp-header":"In-Side"}}},
        "query":{"type":"string"}}}"#;
    for (arguments, expected) in [
        (
            r#"{"region":"us","n":-7,"b":true,"o":{"in":" x"},"query":"q"}"#,
            &[
                "mcp-param-b: true",
                "mcp-param-in-side: =?base64?IHg=?=",
                "mcp-param-n: -7",
                "mcp-param-region: us",
            ][..],
        ),
        (r#"{"n":42.0,"b":null}"#, &["mcp-param-n: 42"]),
        (r#"{"n":9007199254740991}"#, &["mcp-param-n: 9007199254740991"]),
        (r#"{"n":9007199254740992}"#, &[]),
        (r#"{"n":1.5,"region":{},"o":[],"b":[true]}"#, &[]),
        ("7", &[]),
        ("{}", &[]),
    ] {
        assert_eq!(mirrored(schema, arguments), expected, "{arguments}");
    }
}

#[test]
fn a_tool_whose_annotations_break_the_rules_is_told_apart() {
    let of = |property: &str| ParamHeaders::of(&format!(r#"{{"properties":{{"a":{property}}}}}"#));
    let name = |name| matches!(of(name), Err(Invalid::Name(_)));
    assert!(name(r#"{"type":"string","x-mcp-header":""}"#));
    assert!(name(r#"{"type":"string","x-mcp-header":"a b"}"#));
    assert!(name(r#"{"type":"string","x-mcp-header":"a\r\nb"}"#));
    assert!(name(r#"{"type":"string","x-mcp-header":"ä"}"#));
    assert!(name(r#"{"type":"string","x-mcp-header":7}"#));
    assert!(name(&format!(r#"{{"type":"string","x-mcp-header":"{}"}}"#, "n".repeat(129))));
    for kind in [r#""number""#, r#""object""#, r#""array""#, r#""null""#, r#"["string","number"]"#, "[]"] {
        let schema = format!(r#"{{"type":{kind},"x-mcp-header":"A"}}"#);
        assert!(matches!(of(&schema), Err(Invalid::Type(_))), "{kind}");
    }
    assert!(matches!(of(r#"{"x-mcp-header":"A"}"#), Err(Invalid::Type(_))));
    for place in [
        r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#,
        r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
        r#"{"if":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"$defs":{"b":{"type":"string","x-mcp-header":"A"}}}"#,
    ] {
        assert!(matches!(of(place), Err(Invalid::Place(_))), "{place}");
    }
    assert!(matches!(ParamHeaders::of(r#"{"type":"string","x-mcp-header":"A"}"#), Err(Invalid::Place(_))));
    let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#;
    assert_eq!(ParamHeaders::of(twice).unwrap_err().to_string(), r#"x-mcp-header "a" is used twice"#);
    assert_eq!(ParamHeaders::of("{\"x-mcp-header\""), Err(Invalid::Schema));
}

#[test]
fn the_number_of_mirrored_arguments_is_bounded() {
    let many = |count: usize| {
        let each: Vec<_> =
            (0..count).map(|n| format!(r#""p{n}":{{"type":"string","x-mcp-header":"H{n}"}}"#)).collect();
        ParamHeaders::of(&format!(r#"{{"properties":{{{}}}}}"#, each.join(",")))
    };
    assert_eq!(many(PARAMS_MOST).unwrap().names().count(), PARAMS_MOST);
    assert_eq!(many(PARAMS_MOST + 1), Err(Invalid::TooMany));
}

#[test]
fn what_only_looks_like_an_annotation_is_none() {
    for schema in [
        r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#,
        r#"{"properties":{"a":{"default":{"x-mcp-header":"A"},"enum":[{"x-mcp-header":"A"}]}}}"#,
        "true",
        r#"{"description":"x-mcp-header"}"#,
    ] {
        assert!(ParamHeaders::of(schema).unwrap().is_empty(), "{schema}");
    }
}

proptest! {
    #[test]
    fn any_text_comes_back_as_it_was(text in any::<String>()) {
        let header = encode(&text).unwrap();
        prop_assert_eq!(decode(header.to_str().unwrap()).unwrap(), text);
    }
}
