//! The ways in which a value is written down by programs that print it.

use std::fmt::Write as _;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A value as it is, and as JSON, HTML, URLs and base64 spell it.
pub(super) fn spellings(value: &str) -> Vec<String> {
    let json = in_json(value);
    let mut all = vec![
        value.to_owned(),
        // What is logged as JSON often holds JSON.
        in_json(&json),
        json.replace('/', "\\/"),
        json,
        in_html(value),
        in_url(value, true),
        in_url(value, false),
        in_url(value, true).replace("%20", "+"),
    ];
    // In base64 it depends on what stands before a value how the value looks: there are three ways.
    for before in 0..3 {
        all.extend([&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|engine| in_base64(value, before, engine)));
    }
    all.sort();
    all.dedup();
    all
}

/// As JSON spells it, and most languages' notation for debugging.
fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn in_html(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn in_url(value: &str, upper: bool) -> String {
    let mut spelt = String::with_capacity(value.len());
    for byte in value.bytes() {
        let _ = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                spelt.push(char::from(byte));
                Ok(())
            }
            _ if upper => write!(spelt, "%{byte:02X}"),
            _ => write!(spelt, "%{byte:02x}"),
        };
    }
    spelt
}

/// The characters that depend on the value alone, if so many bytes stand before it.
fn in_base64(value: &str, before: usize, engine: &impl base64::Engine) -> String {
    let bytes = [&[0_u8; 3][..before], value.as_bytes()].concat();
    let spelt = engine.encode(&bytes);
    // A character is six bits: the first whole one, and the end of the last.
    let first = (before * 8).div_ceil(6);
    spelt[first..bytes.len() * 8 / 6].to_owned()
}
