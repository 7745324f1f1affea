//! Hostile schemas, params and values: nothing panics, no value makes a header of its own, and every value comes back.
//!
//! The input is a schema and params, with a zero byte between them.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run headers -- -max_total_time=60`
#![no_main]

use libfuzzer_sys::fuzz_target;
use linetender_wire::frame::Members;
use linetender_wire::handshake::Era;
use linetender_wire::http::headers::{Ask, ParamHeaders, SessionId, decode, encode, headers, stream_headers};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (schema, params) = text.split_once('\0').unwrap_or((&text, ""));
    let wanted = ParamHeaders::of(schema).unwrap_or_default();
    assert!(wanted.names().all(|name| name.as_str().starts_with("mcp-param-")));
    let (session, members) = (SessionId::new(params), Members::of(params));
    for (era, method) in [(Era::Modern, "tools/call"), (Era::Modern, schema), (Era::Legacy, "tools/call")] {
        let ask = Ask {
            era,
            version: Some(params),
            method,
            params: members.as_ref(),
            session: session.as_ref(),
            param_headers: Some(&wanted),
        };
        for (_, value) in &headers(&ask) {
            assert!(value.as_bytes().iter().all(|&byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
        }
    }
    let _ = stream_headers(Some(schema), session.as_ref(), Some(params));
    if let Some(value) = encode(params) {
        let value = value.to_str().expect("plain ASCII");
        assert_eq!(value.trim(), value);
        assert_eq!(decode(value).as_deref(), Some(params));
    }
    let _ = decode(params);
});
