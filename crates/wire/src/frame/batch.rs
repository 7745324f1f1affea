//! Batches: several messages in one array, which MCP 2025-03-26 has and later versions do not.

use bytes::Bytes;
use bytestring::ByteString;
use serde_json::value::RawValue;

use super::parse::{each, envelope, too_deep};
use super::{Bad, Frame, Limits, error_reply};

/// The most messages in one batch.
pub const BATCH: usize = 1024;

/// What somebody sent as one array. Its elements stand for themselves: one that is no message takes no other with it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// The messages, in their order.
    pub frames: Vec<Frame>,
    /// Why each of the other elements is none.
    pub bad: Vec<Bad>,
}

impl Batch {
    /// What is answered to the elements that are no messages.
    // JSON-RPC 2.0, section 6: a batch that is invalid, but not empty, has one error for each such element; without its id, as
    // section 5 demands where that cannot be known.
    pub fn refusals(&self) -> impl Iterator<Item = Bytes> {
        self.bad.iter().map(|bad| {
            let error = serde_json::json!({ "code": -32600, "message": format!("the message is {bad}") });
            error_reply("null", &error.to_string())
        })
    }
}

/// Whether a text can only be a batch.
pub fn is_batch(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"[")
}

/// The batch that a text is.
///
/// # Errors
/// If it is not one array, if nothing is in it, or if it breaks a limit.
pub fn parse_batch(text: &Bytes, limits: Limits) -> Result<Batch, Bad> {
    if text.len() > limits.length.min(u32::MAX as usize) {
        return Err(Bad::TooLong { limit: limits.length });
    }
    if too_deep(text, limits.depth) {
        return Err(Bad::TooDeep { limit: limits.depth });
    }
    let text = ByteString::try_from(text.clone()).map_err(|_| Bad::NotJson)?;
    let mut left = BATCH;
    // Before the whole of it is looked at: that is what a batch of too many is about.
    each(&text, &mut |_| {
        left = left.checked_sub(1).ok_or(Bad::TooMany { limit: BATCH })?;
        Ok(())
    })?;
    // Nothing may stand behind it.
    serde_json::from_str::<&RawValue>(&text).map_err(|_| Bad::NotJson)?;
    let mut batch = Batch { frames: Vec::with_capacity(BATCH - left), bad: Vec::new() };
    each(&text, &mut |raw| {
        match envelope(&text, raw) {
            Ok(frame) => batch.frames.push(frame),
            Err(bad) => batch.bad.push(bad),
        }
        Ok(())
    })?;
    if left == BATCH { Err(Bad::NotRpc) } else { Ok(batch) }
}

/// Messages as one array.
pub fn array(texts: &[Bytes]) -> Bytes {
    let mut array = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum::<usize>() + 1);
    for text in texts {
        array.push(if array.is_empty() { b'[' } else { b',' });
        array.extend_from_slice(text);
    }
    if array.is_empty() {
        array.push(b'[');
    }
    array.push(b']');
    array.into()
}

#[cfg(test)]
mod tests {
    use super::{BATCH, Bad, Limits, array, is_batch, parse_batch};

    const LIMITS: Limits = Limits { length: 100_000, depth: 16 };

    #[test]
    fn an_element_that_is_no_message_takes_no_other_with_it() {
        let text =
            r#" [{"id":1,"method":"a"}, 1, {"method":"b"}, [2,"ping"], {"id":1,"id":2,"method":"c"}] "#;
        let batch = parse_batch(&text.into(), LIMITS).unwrap();
        assert_eq!(batch.frames.len(), 2);
        assert_eq!(batch.frames[1].text(), &br#"{"method":"b"}"#[..]);
        assert_eq!(batch.bad, [Bad::NotRpc, Bad::NotRpc, Bad::Ambiguous]);
        let told = array(&batch.refusals().collect::<Vec<_>>());
        let told: serde_json::Value = serde_json::from_slice(&told).unwrap();
        let codes = told.as_array().unwrap().iter().map(|error| (&error["error"]["code"], &error["id"]));
        assert!(codes.eq([(&(-32600).into(), &serde_json::Value::Null); 3]), "{told}");
    }

    #[test]
    fn a_batch_is_one_array_with_something_in_it_and_not_too_much() {
        let of = |many: usize| format!("[{}]", vec!["1"; many].join(","));
        assert_eq!(parse_batch(&of(BATCH).into(), LIMITS).unwrap().bad.len(), BATCH);
        for (text, bad) in [
            (of(0), Bad::NotRpc),
            (of(BATCH + 1), Bad::TooMany { limit: BATCH }),
            (of(50_001), Bad::TooLong { limit: 100_000 }),
            ("[".repeat(17), Bad::TooDeep { limit: 16 }),
            ("[1".into(), Bad::NotJson),
            ("[1] [2]".into(), Bad::NotJson),
            ("[info] up".into(), Bad::NotJson),
            ("{}".into(), Bad::NotJson),
        ] {
            assert_eq!(parse_batch(&text.clone().into(), LIMITS), Err(bad), "{text:.40}");
        }
        assert!(is_batch(b" \n[") && !is_batch(b"{[") && !is_batch(b""));
        assert_eq!(array(&[]), "[]");
    }
}
