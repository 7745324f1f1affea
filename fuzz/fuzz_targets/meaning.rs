//! Hostile responses: nothing panics, an answer always carries our id, and nothing that a server says is evidence.
//!
//! The input is a byte for era and question, two for the status, a header value, a zero byte, and the body.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run meaning -- -max_total_time=60`
#![no_main]

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use linetender_core::LossReport;
use linetender_wire::frame::Limits;
use linetender_wire::handshake::Era;
use linetender_wire::http::meaning::{Purpose, Call, Exchange, judge};

const LIMITS: Limits = Limits { length: 4096, depth: 16 };

fuzz_target!(|input: &[u8]| {
    let [kind, high, low, rest @ ..] = input else { return };
    let at = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let (value, body) = (&rest[..at], Bytes::copy_from_slice(rest.get(at + 1..).unwrap_or_default()));
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(value) {
        let names = ["content-type", "retry-after", "www-authenticate", "mcp-session-id", "date"];
        headers.insert(names[usize::from(kind >> 5) % names.len()], value);
    }
    let asked = match kind & 7 {
        0 | 1 => Purpose::Request { id: 7 },
        2 => Purpose::Initialize { id: 7 },
        3 => Purpose::Discover { id: 7 },
        4 => Purpose::Ping { id: 7 },
        5 => Purpose::Notification,
        6 => Purpose::Stream,
        _ => Purpose::Delete,
    };
    let era = if kind & 8 == 0 { Era::Legacy } else { Era::Modern };
    let status = u16::from_be_bytes([*high, *low]);
    let exchange = Exchange {
        era,
        session: kind & 16 != 0,
        asked,
        status,
        headers: &headers,
        body: &body,
        limits: LIMITS,
    };
    let meaning = judge(&exchange);
    match &meaning.call {
        Call::Answer(frame) => assert_eq!(frame.response_number(), asked.id()),
        Call::Lost { report, said, words } => {
            // No answer is evidence. It is a refusal only where MCP or HTTP give the status that meaning.
            let may_refuse = matches!(status, 400 | 401 | 403 | 405 | 413 | 429);
            assert!(match report {
                LossReport::Nothing => true,
                LossReport::Refused(_) => may_refuse,
                LossReport::NoByteWritten | LossReport::Consumed { .. } => false,
            });
            assert!(said.as_ref().is_none_or(|said| said.response_number() == asked.id()));
            assert!(words.as_str().len() < 4096);
        }
        Call::Stream | Call::Accepted => assert!((200..300).contains(&status) || asked == Purpose::Delete),
        // What answers us and cannot be read may have any status; so may what answers somebody else.
        Call::Unusable(_) => assert!((200..300).contains(&status) || asked.id().is_some()),
        Call::OutOfStep => assert!(asked.id().is_some()),
    }
    let _ = meaning.line.seen().map(|seen| seen.to_string());
});
