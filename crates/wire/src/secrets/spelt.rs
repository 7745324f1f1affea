//! The ways in which a value is written down by programs that print it, but for those that are decoded.

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A value as it is, and as base64 spells it.
pub(super) fn spellings(value: &str) -> Vec<String> {
    let mut all = vec![value.to_owned()];
    // In base64 it depends on what stands before a value how the value looks: there are three ways.
    for before in 0..3 {
        all.extend([&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|engine| in_base64(value, before, engine)));
    }
    all.sort();
    all.dedup();
    all
}

/// The characters that depend on the value alone, if so many bytes stand before it.
fn in_base64(value: &str, before: usize, engine: &impl base64::Engine) -> String {
    let bytes = [&[0_u8; 3][..before], value.as_bytes()].concat();
    let spelt = engine.encode(&bytes);
    // A character is six bits: the first whole one, and the end of the last.
    let first = (before * 8).div_ceil(6);
    spelt[first..bytes.len() * 8 / 6].to_owned()
}
