//! Results of tools that are larger than a user allows, cut to what fits.
//!
//! What is left is a valid result: text blocks end between two characters, blocks that cannot be cut (images, files) are left out whole,
//! and a last block says so in words that a model understands. Structured content cannot be cut and still be what its schema says. It stays
//! if it fits; if not, it is left out, and the result is marked as an error: clients check the structure of all others, and would throw the
//! rest away.

use std::fmt::Write as _;

use linetender_wire::frame::{Members, respell, string};
use serde_json::value::RawValue;

use crate::splice::Splice;

/// What is kept free for the words about it, and around them.
const WORDS: usize = 800;

/// The most members of a result that are looked at, and the longest value of one that is a word. No result has more.
const MEMBERS: usize = 64;
const WORD: usize = 64;

/// The whole of something that was cut.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Whole {
    pub(crate) mime: &'static str,
    pub(crate) text: String,
}

/// Where the whole is.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) uri: String,
    /// For how long, in words.
    pub(crate) lasts: &'static str,
}

/// A result within the limit, if this one is the result of a tool, or of a task that ran one. `keep` is given the whole.
pub(crate) fn cut(result: &str, limit: usize, keep: impl FnOnce(Whole) -> Option<Place>) -> Option<String> {
    let members = Members::of(result)?;
    if let Some(content) = members.get("content") {
        return cut_content(result, &members, content, limit, keep);
    }
    // MCP 2026-07-28, tasks: what the tool returned is a member of the task.
    let inner = members.get("result")?;
    let content = Members::of(inner.get())?;
    let around = result.len() - inner.get().len();
    let within = limit.saturating_sub(around).max(2 * WORDS);
    let cut = cut_content(inner.get(), &content, content.get("content")?, within, keep)?;
    let mut splice = Splice::of(result);
    splice.put_raw(inner, cut);
    Some(splice.done().into_owned())
}

fn cut_content(
    result: &str,
    members: &Members<'_>,
    content: &RawValue,
    limit: usize,
    keep: impl FnOnce(Whole) -> Option<Place>,
) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let structured = members.get("structuredContent");
    let is_whole_text = structured.is_none() && blocks.len() == 1;
    let text = blocks.first().and_then(|block| text_of(block)).filter(|_| is_whole_text);
    let is_text = text.is_some();
    let whole = match text {
        Some(text) => Whole { mime: "text/plain", text },
        None => Whole { mime: "application/json", text: result.to_owned() },
    };
    let place = keep(whole);
    let mut left = limit.saturating_sub(WORDS);
    let keeps_structure = structured.is_none_or(|value| value.get().len() <= left);
    if let Some(value) = structured.filter(|_| keeps_structure) {
        left -= value.get().len();
    }
    // What else there is stays if it is little, as it nearly always is.
    let mut others = String::new();
    for (name, value) in members.clone().all().take(MEMBERS) {
        let Some(name) = name else { continue };
        // Of two of the same name the last counts.
        let counts = members.get(&name).is_some_and(|last| std::ptr::eq(last, value));
        let is_other = match &*name {
            "content" => false,
            "structuredContent" => keeps_structure,
            "isError" => keeps_structure && value.get().len() <= WORD,
            "resultType" => value.get().len() <= WORD,
            _ => value.get().len() + name.len() <= left / 4,
        };
        if counts && is_other {
            if name != "structuredContent" {
                left = left.saturating_sub(value.get().len() + name.len() + 4);
            }
            let _ = write!(others, ",{}:{}", respell(&name), value.get());
        }
    }
    if !keeps_structure {
        others.push_str(r#","isError":true"#);
    }
    let kept = Kept::of(&blocks, left);
    let left_out = result.len().saturating_sub(kept.blocks.len() + others.len());
    let words = words(
        &Said { left_out, total: result.len(), limit, keeps_structure, is_text, kept: &kept },
        place.as_ref(),
    );
    let comma = if kept.blocks.is_empty() { "" } else { "," };
    let (blocks, words) = (&kept.blocks, respell(&words));
    Some(format!(r#"{{"content":[{blocks}{comma}{{"type":"text","text":{words}}}]{others}}}"#))
}

/// The blocks that fit.
struct Kept {
    blocks: String,
    /// How many bytes of the first text that was cut are left.
    text: usize,
    /// How many blocks were left out whole.
    dropped: usize,
}

impl Kept {
    fn of(blocks: &[&RawValue], mut left: usize) -> Self {
        let mut kept = Self { blocks: String::new(), text: 0, dropped: 0 };
        let mut is_cut = false;
        for block in blocks {
            let text = block.get();
            let fits = if text.len() < left {
                Some(std::borrow::Cow::Borrowed(text))
            } else if is_cut {
                None
            } else {
                shortened(text, left).map(|(block, bytes)| {
                    // Nothing of what is behind it is told: it would read as if it followed.
                    (is_cut, kept.text) = (true, bytes);
                    block.into()
                })
            };
            match fits.filter(|block| block.len() < left) {
                Some(block) => {
                    if !kept.blocks.is_empty() {
                        kept.blocks.push(',');
                    }
                    kept.blocks.push_str(&block);
                    left = if is_cut { 0 } else { left - block.len() - 1 };
                }
                None => kept.dropped += 1,
            }
        }
        kept
    }
}

/// A text block with as much of its text as fits, and how much that is. None of anything else.
fn shortened(block: &str, left: usize) -> Option<(String, usize)> {
    let members = Members::of(block)?;
    if members.string("type")? != "text" {
        return None;
    }
    let value = members.get("text")?;
    let text = string(value)?;
    let mut room = left.checked_sub(block.len() - value.get().len() + 4)?;
    let mut end = 0;
    for character in text.chars() {
        let spelt = spelt_length(character);
        if spelt > room {
            break;
        }
        room -= spelt;
        end += character.len_utf8();
    }
    let mut splice = Splice::of(block);
    splice.put(value, &text[..end]);
    Some((splice.done().into_owned(), end))
}

/// How many bytes a character is as part of a JSON string.
const fn spelt_length(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

fn text_of(block: &RawValue) -> Option<String> {
    let members = Members::of(block.get())?;
    (members.string("type")? == "text").then(|| members.string("text").map(std::borrow::Cow::into_owned))?
}

/// What the words are made of.
struct Said<'a> {
    left_out: usize,
    total: usize,
    limit: usize,
    keeps_structure: bool,
    is_text: bool,
    kept: &'a Kept,
}

fn words(said: &Said<'_>, place: Option<&Place>) -> String {
    let Said { left_out, total, limit, keeps_structure, is_text, kept } = said;
    let mut words = format!(
        "[linetender: this result is too large and was cut: {left_out} of {total} bytes are left out"
    );
    if kept.dropped > 0 {
        let _ = write!(words, ", with {} whole blocks (text, images or files)", kept.dropped);
    }
    if !keeps_structure {
        words.push_str(", with its structured content, for which alone it is marked as an error");
    }
    words.push_str(". The tool has run and has answered; do not call it again for the rest. ");
    match place {
        Some(Place { uri, lasts }) => {
            let offset = if *is_text { kept.text } else { 0 };
            let _ = write!(
                words,
                "The whole result is kept for {lasts}: read the resource {uri} (resources/read) for all of it, or {uri}?offset={offset} for up to {limit} bytes from there on.]"
            );
        }
        None => words
            .push_str("There was no memory to keep the whole result: if it may run again, ask it for less.]"),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{Place, Whole, cut};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[expect(clippy::unnecessary_wraps, reason = "others have no place")]
    fn place(_: Whole) -> Option<Place> {
        Some(Place { uri: format!("linetender://results/{}", "0".repeat(32)), lasts: "10 minutes" })
    }

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_text_is_cut_between_characters_and_the_rest_begins_there() {
        let text = "größe\n\"".repeat(1000);
        let result = json!({ "_meta": { "a": 1 }, "content": [{ "type": "text", "text": text, "annotations": { "priority": 1 } }], "isError": false });
        let mut whole = None;
        let cut = cut(&result.to_string(), 2048, |all| {
            whole = Some(all);
            place(Whole { mime: "", text: String::new() })
        });
        let cut = cut.unwrap();
        assert!(cut.len() <= 2048 && cut.len() > 1500, "{}", cut.len());
        let cut = read(&cut);
        assert_eq!((&cut["_meta"]["a"], &cut["isError"]), (&json!(1), &json!(false)));
        let begin = cut["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(begin) && cut["content"][0]["annotations"]["priority"] == 1);
        let words = cut["content"][1]["text"].as_str().unwrap();
        assert!(words.contains(&format!("0000?offset={}", begin.len())), "{words}");
        assert_eq!(whole, Some(Whole { mime: "text/plain", text }));
    }

    #[test]
    fn what_cannot_be_cut_is_left_out_whole_and_what_is_small_stays() {
        let image = json!({ "type": "image", "data": "A".repeat(9000), "mimeType": "image/png" });
        let link = json!({ "type": "resource_link", "uri": "x:1", "name": "n" });
        let result = json!({ "content": [image, { "type": "text", "text": "short" }, link, { "type": "new", "data": "B".repeat(9000) }], "resultType": "complete" });
        let cut = read(&cut(&result.to_string(), 4096, place).unwrap());
        let blocks = cut["content"].as_array().unwrap();
        assert_eq!((&blocks[0]["text"], &blocks[1], blocks.len()), (&json!("short"), &link, 3));
        assert!(blocks[2]["text"].as_str().unwrap().contains("with 2 whole blocks"), "{cut}");
        assert_eq!((cut.get("isError"), &cut["resultType"]), (None, &json!("complete")));
    }

    #[test]
    fn structure_stays_whole_or_is_left_out_with_a_mark() {
        let text = |bytes: usize| json!([{ "type": "text", "text": "x".repeat(bytes) }]);
        let fits = json!({ "content": text(9000), "structuredContent": { "a": "y".repeat(1000) } });
        let cut_fits = read(&cut(&fits.to_string(), 4096, place).unwrap());
        assert_eq!(
            (&cut_fits["structuredContent"], cut_fits.get("isError")),
            (&fits["structuredContent"], None)
        );
        let large =
            json!({ "content": text(100), "structuredContent": { "a": "y".repeat(9000) }, "isError": false });
        let cut_large = cut(&large.to_string(), 4096, place).unwrap();
        let cut_large = read(&cut_large);
        assert_eq!((cut_large.get("structuredContent"), &cut_large["isError"]), (None, &json!(true)));
        assert_eq!(cut_large["content"][0], large["content"][0]);
        assert!(
            cut_large["content"][1]["text"].as_str().unwrap().contains("marked as an error"),
            "{cut_large}"
        );
        let task = json!({ "taskId": "1", "status": "completed", "result": { "content": text(9000) } });
        let cut_task = read(&cut(&task.to_string(), 4096, place).unwrap());
        assert!(
            cut_task["result"]["content"][0]["text"].as_str().unwrap().len() < 4096
                && cut_task["taskId"] == "1"
        );
        for other in [
            json!({ "contents": [] }),
            json!({ "messages": [] }),
            json!({ "content": { "type": "text" } }),
            json!(7),
        ] {
            assert_eq!(cut(&other.to_string(), 4096, place), None, "{other}");
        }
    }

    #[test]
    fn a_result_of_very_many_parts_takes_no_longer_than_a_large_one() {
        let members: Vec<_> = (0..200_000).map(|number| format!(r#""m{number}":0"#)).collect();
        let blocks = vec![r#"{"type":"text","text":"x"}"#; 200_000].join(",");
        let result =
            format!(r#"{{"resultType":"{}",{},"content":[{blocks}]}}"#, "r".repeat(9000), members.join(","));
        let cut = cut(&result, 4096, place).unwrap();
        assert!(cut.len() <= 4096 && cut.len() > 3000, "{}", cut.len());
        assert_eq!(read(&cut)["content"][0]["text"], "x");
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_fits(texts in prop::collection::vec(".{0,2000}", 1..8), structured in 0_usize..6000, limit in 2048_usize..5000) {
            let blocks: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
            let result = json!({ "content": blocks, "structuredContent": "s".repeat(structured), "_meta": { "m": "m".repeat(structured) } });
            let cut = cut(&result.to_string(), limit, place).unwrap();
            prop_assert!(cut.len() <= limit, "{} > {}", cut.len(), limit);
            read(&cut);
        }
    }
}
