//! Addresses in what servers say, as the agent knows them.
//!
//! Changed is what an agent will hand back to ask for more: the contents of a resource that was read, links and embedded
//! resources among the blocks of a tool's result and of a prompt, the page of a tool's result, and the notification that a
//! resource was updated. Not changed is what only people and models read: text, structured content, the rest of `_meta`.

use bytes::Bytes;
use linetender::session::Text;
use linetender_wire::frame::{Frame, Members, Message, Outcome, Passed, string};
use serde_json::value::RawValue;

use super::tasks;
use crate::apps;
use crate::names::Naming;
use crate::splice::Splice;
use crate::tasks::OwnTasks;

/// One of these is in every result that has an address.
const WORDS: [&str; 2] = ["\"uri\"", apps::WORD];

/// And this in every one that is about a task.
const TASK: &str = "taskId";

/// An answer, and what it takes to tell it.
pub(super) struct Told<'a> {
    pub(super) method: &'a str,
    pub(super) naming: &'a Naming,
    /// The number of the server it is from.
    pub(super) from: u64,
    /// The agent's tasks.
    pub(super) tasks: &'a OwnTasks,
}

impl Told<'_> {
    /// With the addresses and tasks that the agent knows.
    pub(super) fn named(&self, frame: &Frame) -> Frame {
        if *self.naming == Naming::Plain {
            return frame.clone();
        }
        let named = named(frame, self.method, self.naming);
        tasks::named(&named, self.method, self.from, self.tasks).unwrap_or(named)
    }

    /// A notification of a task's state, if the task is this agent's.
    pub(super) fn task(&self, frame: &Frame, params: &str) -> Option<Frame> {
        let (value, public) = tasks::known(params, self.from, self.tasks)?;
        let mut splice = Splice::of(params);
        splice.put(value, &public);
        // One that is over has its result in it.
        if let Some(result) = member(params, "result") {
            called(result.get(), &mut splice, self.naming);
        }
        Some(frame.with_params(&splice.done()))
    }

    /// An answer as above, of a text that was not read yet. Nearly all have nothing of that, and need not be.
    pub(super) fn named_text(&self, text: Text) -> Text {
        let has = |piece: &Bytes, word: &str| memchr::memmem::find(piece, word.as_bytes()).is_some();
        let has_one = |piece: &Bytes| WORDS.iter().chain(&[TASK]).any(|word| has(piece, word));
        if *self.naming == Naming::Plain || !text.pieces().iter().any(has_one) {
            return text;
        }
        let text = text.whole();
        match text.frame() {
            Ok(frame) => self.named(&frame).into(),
            Err(_) => text.into(),
        }
    }
}

/// An answer with the addresses that the agent knows.
fn named(frame: &Frame, method: &str, naming: &Naming) -> Frame {
    let Message::Response { outcome: Some((Outcome::Result, result)), .. } = frame.message() else {
        return frame.clone();
    };
    // Most results have no address at all, and are not looked at any further.
    if !WORDS.iter().any(|word| result.contains(word)) {
        return frame.clone();
    }
    let mut splice = Splice::of(result);
    match method {
        "resources/read" => contents(result, &mut splice, naming),
        "tools/call" | "tasks/result" => called(result, &mut splice, naming),
        // A modern task that is over has its result in it.
        "tasks/get" => {
            if let Some(result) = member(result, "result") {
                called(result.get(), &mut splice, naming);
            }
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

/// The result of a tool.
fn called<'a>(result: &'a str, splice: &mut Splice<'a>, naming: &Naming) {
    blocks(member(result, "content"), splice, naming);
    apps::name_pages(result, splice, naming);
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
