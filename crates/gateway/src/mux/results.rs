//! Addresses in what servers say, as the agent knows them.
//!
//! Changed is what an agent will hand back to ask for more: the contents of a resource that was read, links and embedded
//! resources among the blocks of a tool's result and of a prompt, the page of a tool's result, and the notification that a
//! resource was updated. Not changed is what only people and models read: text, structured content, the rest of `_meta`.

use bytes::Bytes;
use linetender::session::Text;
use linetender_wire::frame::{Frame, Members, Message, Outcome, Passed, string};
use serde_json::value::RawValue;

use crate::apps;
use crate::names::Naming;
use crate::splice::Splice;

/// One of these is in every result that has an address.
const WORDS: [&str; 2] = ["\"uri\"", apps::WORD];

/// An answer with the addresses that the agent knows.
pub(super) fn named(frame: &Frame, method: &str, naming: &Naming) -> Frame {
    let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
        return frame.clone();
    };
    // Most results have no address at all, and are not looked at any further.
    if *naming == Naming::Plain || !WORDS.iter().any(|word| result.contains(word)) {
        return frame.clone();
    }
    let mut splice = Splice::of(result);
    match method {
        "resources/read" => contents(result, &mut splice, naming),
        "tools/call" => {
            blocks(member(result, "content"), &mut splice, naming);
            apps::name_pages(result, &mut splice, naming);
        }
        "prompts/get" => {
            for message in items(member(result, "messages")) {
                block(member(message.get(), "content"), &mut splice, naming);
            }
        }
        _ => {}
    }
    match splice.done() {
        std::borrow::Cow::Borrowed(_) => frame.clone(),
        std::borrow::Cow::Owned(result) => frame.with_outcome(&result),
    }
}

/// The same of a text that was not read yet. Nearly all have no address, and need not be.
pub(super) fn named_text(text: Text, method: &str, naming: &Naming) -> Text {
    let has = |piece: &Bytes, word: &str| memchr::memmem::find(piece, word.as_bytes()).is_some();
    let has_one = |piece: &Bytes| WORDS.iter().any(|word| has(piece, word));
    if *naming == Naming::Plain || !text.pieces().iter().any(has_one) {
        return text;
    }
    let text = text.whole();
    match text.frame() {
        Ok(frame) => named(&frame, method, naming).into(),
        Err(_) => text.into(),
    }
}

/// The code of an answer that is an error.
pub(crate) fn error_code(text: &Passed) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Error {
        code: i64,
    }
    let frame = text.frame().ok()?;
    let Message::Response { outcome: Some((Outcome::Error, error)), .. } = frame.message() else {
        return None;
    };
    serde_json::from_str(error).ok().map(|Error { code }| code)
}

/// A resource changed.
pub(super) fn updated(frame: &Frame, params: &str, naming: &Naming) -> Option<Frame> {
    let mut splice = Splice::of(params);
    put(Members::of(params)?.get("uri"), &mut splice, naming);
    Some(frame.with_params(&splice.done()))
}

fn contents<'a>(result: &'a str, splice: &mut Splice<'a>, naming: &Naming) {
    for one in items(member(result, "contents")) {
        put(member(one.get(), "uri"), splice, naming);
    }
}

fn blocks<'a>(list: Option<&'a RawValue>, splice: &mut Splice<'a>, naming: &Naming) {
    for one in items(list) {
        block(Some(one), splice, naming);
    }
}

fn block<'a>(block: Option<&'a RawValue>, splice: &mut Splice<'a>, naming: &Naming) {
    let Some(members) = block.and_then(|block| Members::of(block.get())) else { return };
    match members.string("type").as_deref() {
        Some("resource_link") => put(members.get("uri"), splice, naming),
        Some("resource") => {
            put(members.get("resource").and_then(|resource| member(resource.get(), "uri")), splice, naming);
        }
        _ => {}
    }
}

fn put<'a>(uri: Option<&'a RawValue>, splice: &mut Splice<'a>, naming: &Naming) {
    if let Some((value, own)) = uri.and_then(|uri| Some((uri, string(uri)?))) {
        splice.put(value, &naming.uri(&own));
    }
}

fn member<'a>(object: &'a str, name: &str) -> Option<&'a RawValue> {
    Members::of(object)?.get(name)
}

fn items(list: Option<&RawValue>) -> Vec<&RawValue> {
    list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
}
