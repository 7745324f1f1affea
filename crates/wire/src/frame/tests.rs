use bytes::Bytes;
use proptest::prelude::*;

use super::{
    Bad, Limits, Message, Outcome, Passed, number, one_line, parse, parse_all, parse_batch, request,
};

const LIMITS: Limits = Limits { length: 1 << 20, depth: 16 };

fn frame(text: &str) -> super::Frame {
    parse(&Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap()
}

fn bad(text: &str) -> Bad {
    parse(&Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap_err()
}

#[test]
fn the_four_kinds_of_message() {
    let request = frame(r#"{"jsonrpc":"2.0", "id" : "a\"b", "method":"tools/call","params":{"x":[1, 2]}}"#);
    let expected =
        Message::Request { id: r#""a\"b""#, method: "tools/call", params: Some(r#"{"x":[1, 2]}"#) };
    assert_eq!(request.message(), expected);
    let notification = frame(r#"{"method":"notifications/x","jsonrpc":"2.0"}"#);
    assert_eq!(notification.message(), Message::Notification { method: "notifications/x", params: None });
    let result = frame(r#"{"id":7,"result":{"a":1.50}}"#);
    let outcome = Some((Outcome::Result, r#"{"a":1.50}"#));
    assert_eq!(result.message(), Message::Response { id: Some("7"), outcome });
    let error = frame(r#"{"id":null,"error":{"code":-32700}}"#);
    let outcome = Some((Outcome::Error, r#"{"code":-32700}"#));
    assert_eq!(error.message(), Message::Response { id: None, outcome });
}

#[test]
fn a_null_result_is_a_result_and_neither_is_seen_as_neither() {
    let null = frame(r#"{"id":1,"result":null}"#);
    assert_eq!(null.message(), Message::Response { id: Some("1"), outcome: Some((Outcome::Result, "null")) });
    let neither = frame(r#"{"id":1,"jsonrpc":"2.0"}"#);
    assert_eq!(neither.message(), Message::Response { id: Some("1"), outcome: None });
}

#[test]
fn a_method_may_be_spelt_with_escapes() {
    let escaped = frame(r#"{"id":1,"method":"tools\/call"}"#);
    assert_eq!(escaped.message(), Message::Request { id: "1", method: "tools/call", params: None });
}

#[test]
fn what_is_no_message_is_refused_with_the_reason() {
    assert_eq!(bad("Listening on port 3000"), Bad::NotJson);
    assert_eq!(bad(""), Bad::NotJson);
    assert_eq!(bad("{}"), Bad::NotRpc);
    assert_eq!(bad("42"), Bad::NotRpc);
    assert_eq!(bad(r#"{"id":{"a":1},"result":1}"#), Bad::NotRpc);
    assert_eq!(bad(r#"{"id":true,"method":"x"}"#), Bad::NotRpc);
    assert_eq!(bad(&"[".repeat(17)), Bad::TooDeep { limit: 16 });
    let long = format!(r#"{{"id":1,"result":"{}"}}"#, "x".repeat(LIMITS.length));
    assert_eq!(bad(&long), Bad::TooLong { limit: LIMITS.length });
    assert_eq!(parse(&Bytes::from_static(b"\"\xff\""), LIMITS), Err(Bad::NotJson));
}

#[test]
fn brackets_in_strings_are_not_nesting() {
    let text = format!(r#"{{"id":1,"result":"{}\"["}}"#, "[".repeat(100));
    assert_eq!(frame(&text).response_number(), Some(1));
    // An escaped backslash ends before the quote, which then ends the string.
    let text = format!(r#"{{"id":1,"result":["\\",{}]}}"#, "[".repeat(100));
    assert!(matches!(parse(&text.into(), LIMITS), Err(Bad::TooDeep { .. })));
    assert_eq!(bad(r#"{"id":1,"result":"\"#), Bad::NotJson);
    let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(15), "]".repeat(15));
    assert_eq!(frame(&deep).response_number(), Some(1));
}

#[test]
fn batches_and_glued_messages_are_taken_apart() {
    let text = Bytes::from_static(
        br#"[{"id":1,"result":1},{"method":"a"}] {"id":2,"result":2}{"id":"3","result":3}"#,
    );
    let frames = parse_all(&text, LIMITS).unwrap();
    assert_eq!(frames.len(), 4);
    assert_eq!(frames[0].text(), &br#"{"id":1,"result":1}"#[..]);
    assert_eq!(frames.iter().filter_map(super::Frame::response_number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(bad(r#"{"id":1,"result":1}{"id":2,"result":2}"#), Bad::NotRpc);
}

#[test]
fn an_array_in_a_batch_is_no_message() {
    for text in
        [r#"[[7,"ping"]]"#, r#"[[null,"notifications/x"]]"#, r#"[{"id":1,"result":1},[2,null,null,{}]]"#]
    {
        assert!(parse_all(&text.to_owned().into(), LIMITS).is_err(), "{text}");
    }
}

#[test]
fn what_is_passed_on_need_not_be_read_again_and_goes_on_one_line() {
    let pretty = "{\n\"id\":1,\r\n\"result\":\"é\"}";
    let [read, text] = [Passed::from(frame(pretty)), Passed::from(pretty.to_owned())];
    assert_eq!(read.clone().one_line().text(), text.clone().one_line().text());
    assert_eq!(read.frame().unwrap(), text.frame().unwrap());
    let one = read.one_line().into_frame().unwrap();
    assert_eq!(one, parse(one.text(), LIMITS).unwrap(), "its members lie where they did");
    assert!(Passed::from(format!("[{pretty},{pretty}]")).into_frame().is_err(), "a batch is not one message");
}

#[test]
fn a_rewrite_keeps_every_other_byte() {
    let text = r#"{ "odd":1e400 ,"id" : 1 , "result":{"z":1,"a":[ ]},"ü":"\u0000" }"#;
    let renamed = frame(text).with_id("\"agent-7\"");
    assert_eq!(renamed.text(), &text.replace("1 , \"result", "\"agent-7\" , \"result"));
    let pieces = frame(text).around_id("\"agent-7\"").unwrap();
    assert_eq!(pieces.concat(), *renamed.text(), "and without a copy it is the same");
    let text = r#"{"params":{"old":true},"method":"m","id":1}"#;
    assert_eq!(frame(text).with_params("{}").text(), r#"{"params":{},"method":"m","id":1}"#);
    let note = r#"{"method":"m"}"#;
    assert_eq!(frame(note).with_id("5").text(), note);
    assert_eq!(frame(note).with_params("{}").text(), note);
    assert_eq!(frame(text).payload().unwrap(), r#"{"old":true}"#);
}

#[test]
fn our_ids_are_told_from_others() {
    assert_eq!(number("17"), Some(17));
    assert_eq!(number("\"17\""), Some(17));
    assert_eq!(number("0"), Some(0));
    for other in ["017", "-1", "1.5", "\"1.0\"", "1e3", "\"x\"", "\"\"", "", "99999999999999999999"] {
        assert_eq!(number(other), None, "{other}");
    }
}

#[test]
fn a_message_goes_on_one_line() {
    let pretty = Bytes::from_static(b"{\r\n  \"id\": 1,\n \"result\": \"a\\nb\"\n}");
    assert_eq!(one_line(pretty), &b"{    \"id\": 1,  \"result\": \"a\\nb\" }"[..]);
    let plain = Bytes::from_static(b"{}");
    assert_eq!(one_line(plain.clone()).as_ptr(), plain.as_ptr(), "nothing to do, nothing copied");
}

/// Members in any order, with others around them, and values of any length.
fn members(of: &[(&str, &str)], order: &[usize], space: &str) -> String {
    let mut all: Vec<_> =
        of.iter().map(|(name, value)| format!("{space}\"{name}\":{space}{value}")).collect();
    all.push("\"ü\":\"é\"".to_owned());
    for (at, with) in order.iter().enumerate() {
        let (at, with) = (at % all.len(), with % all.len());
        all.swap(at, with);
    }
    format!("{{{}}}", all.join(","))
}

proptest! {
    #[test]
    fn a_frame_with_another_part_is_what_its_text_would_be_read_as(
        order in proptest::collection::vec(0..5_usize, 0..5),
        space in "[ \n\r]{0,3}",
        id in prop_oneof!["[1-9][0-9]{0,5}", "\"[a-zé]{0,9}\""],
        old in r#"(\{\}|\{"a":[1-9][0-9]{0,8}\})"#,
        new in r#"(\{\}|\{"bé":"[a-z]{0,20}"\})"#,
    ) {
        let request = members(&[("id", "7"), ("method", "\"m\""), ("params", &old)], &order, &space);
        let answer = members(&[("id", "7"), ("result", &old)], &order, &space);
        let read = |frame: &super::Frame| parse(frame.text(), LIMITS).unwrap();
        let note = members(&[("method", "\"m\""), ("params", &old)], &order, &space);
        for made in [
            frame(&note).with_params(&new),
            frame(&request).with_params(&new).one_line(),
            frame(&request).with_id(&id),
            frame(&request).with_params(&new),
            frame(&request).with_params(&new).with_id(&id),
            frame(&answer).with_id(&id),
            frame(&answer).with_id(&id).with_outcome(&new),
        ] {
            prop_assert_eq!(&made, &read(&made));
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = (parse_all(&bytes, LIMITS), parse_batch(&bytes, LIMITS));
    }

    #[test]
    fn no_text_that_looks_like_json_makes_the_parser_panic(text in r#"[\[\]{}",:\\a-e0-9 .-]{0,80}"#) {
        let text = Bytes::from(text);
        let _ = (parse_all(&text, LIMITS), parse_batch(&text, LIMITS));
    }

    #[test]
    fn what_we_build_we_can_read(id: u64, method in ".{0,20}", value: f64) {
        let params = serde_json::json!({ "value": value, "method": method }).to_string();
        let read = request(id, &method, Some(&params));
        prop_assert_eq!(&read, &parse(read.text(), LIMITS).unwrap());
        let spelt = id.to_string();
        prop_assert_eq!(
            read.message(),
            Message::Request { id: &spelt, method: &method, params: Some(&params) }
        );
    }
}

#[test]
fn x03_a_response_has_nothing_that_another_reader_takes_for_its_id_or_its_outcome() {
    for (text, read) in [
        (
            r#"{"jsonrpc":"2.0","id":5,"result":{"ID":1,"a":1.50},"ID":77,"Result":{"spoof":1},"x":1.0}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{"ID":1,"a":1.50},"x":1.0}"#,
        ),
        (r#"{"id":5,"re\u017fult":0,"result":1}"#, r#"{"id":5,"result":1}"#),
        (r#"{"id":5,"result":1,"error":{"code":1}}"#, r#"{"id":5,"error":{"code":1}}"#),
        // Sloppy, and read alike by everybody.
        (r#"{"id":5,"result":1,"error":null}"#, r#"{"id":5,"result":1,"error":null}"#),
        (r#"{"id":5, "result":1,"extra":{}}"#, r#"{"id":5, "result":1,"extra":{}}"#),
    ] {
        let read_frame = frame(text);
        assert_eq!(read_frame.text(), read, "{text}");
        assert_eq!(read_frame, frame(read), "{text}");
    }
}

#[test]
fn x03_what_two_readers_read_as_two_messages_is_refused() {
    for text in [
        r#"{"id":1,"id":2,"method":"ping"}"#,
        r#"{"id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"id":1,"method":"ping","Method":"tools/list"}"#,
        r#"{"id":1,"method":"ping","ID":2}"#,
        r#"{"id":1,"method":"tools/call","params":{},"PARAM\u017f":{}}"#,
        r#"{"id":1,"method":"ping","result":{}}"#,
        r#"{"method":"notifications/x","error":{}}"#,
        r#"{"id":1,"result":1,"result":2}"#,
    ] {
        assert_eq!(bad(text), Bad::Ambiguous, "{text}");
    }
    assert_eq!(bad(r#"{"id":null,"method":"ping"}"#), Bad::NotRpc);
    let long = "x".repeat(1024);
    for text in [
        format!(r#"{{"id":"{long}","method":"ping"}}"#),
        format!(r#"{{"id":1,"method":"{long}"}}"#),
        format!(r#"{{"id":"{long}","result":1}}"#),
    ] {
        assert!(matches!(bad(&text), Bad::LongName { .. }));
    }
}

#[test]
fn a_response_of_ours_is_what_would_be_read_in_its_text() {
    let made = super::response(r#""a-1""#, &["{", r#""tools":"#, "[]", "}"]);
    assert_eq!(made.text(), r#"{"jsonrpc":"2.0","id":"a-1","result":{"tools":[]}}"#);
    assert_eq!(made, frame(str::from_utf8(made.text()).unwrap()));
}

#[test]
fn what_a_message_carries_lasts_as_long_as_what_is_made_of_it() {
    let counted = std::sync::Arc::new(());
    let whole = frame(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#);
    let whole = whole.carrying(super::Kept::with(counted.clone()));
    let renamed = whole.with_params(r#"{"name":"b"}"#);
    let kept = renamed.with_id("2").kept();
    drop((whole, renamed));
    assert_eq!(std::sync::Arc::strong_count(&counted), 2, "what was made of it carries it");
    drop(kept);
    assert_eq!(std::sync::Arc::strong_count(&counted), 1);
}
