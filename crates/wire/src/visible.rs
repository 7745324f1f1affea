//! Foreign text as it may be printed: a name, a body or a line of stderr that a server chose can move a cursor, hide or
//! reorder text, or look like a line of somebody else's.
//!
//! Every text of others passes one of these before it is printed, logged or quoted. What cannot be seen is spelt out
//! (`\u{1b}`, `\n`), never dropped: whoever reads it sees that it was there.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character cannot be seen, or changes how others are seen: control characters, line separators, the marks of
/// writing direction, zero-width characters, tags and other fillers.
pub const fn is_hidden(character: char) -> bool {
    // Most text is this.
    if matches!(character, ' '..='~') {
        return false;
    }
    matches!(
        character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' // C0, DEL, C1
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{180b}'..='\u{180f}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' // fillers
        | '\u{200b}'..='\u{200f}' // zero width, and marks of direction
        | '\u{2028}'..='\u{202e}' // separators, embeddings and overrides
        | '\u{2060}'..='\u{206f}' // joiners, isolates
        // Of the variation selectors, the last two are part of ordinary emoji.
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' // tags, and more selectors
    )
}

/// The text on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    spelt(text, |_| false)
}

/// The text with its line breaks and tabs, for where several lines may stand. A carriage return before a line break is
/// part of it.
pub fn block(text: &str) -> Cow<'_, str> {
    let text = if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { text.into() };
    match spelt(&text, |character| matches!(character, '\n' | '\t')) {
        Cow::Owned(spelt) => Cow::Owned(spelt),
        Cow::Borrowed(_) => text,
    }
}

/// JSON text with what cannot be seen as escapes: the same values, fit for a terminal and for tools that take U+2028 for
/// the end of a line. Line breaks between its tokens stay.
pub fn json(text: &str) -> Cow<'_, str> {
    // Outside of its strings JSON has no such characters but line breaks and tabs, and inside of them it has no raw ones.
    let is_plain = |character: char| matches!(character, '\n' | '\t') || !is_hidden(character);
    let Some(first) = text.find(|character| !is_plain(character)) else { return text.into() };
    let mut spelt = text[..first].to_owned();
    for character in text[first..].chars() {
        if is_plain(character) {
            spelt.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(spelt, "\\u{unit:04x}");
            }
        }
    }
    spelt.into()
}

/// The text on one line, and no more of it than this many characters; how much was cut is said.
pub fn cut(text: &str, most: usize) -> String {
    let (kept, left_out) = split(text, most);
    let mut shown = line(kept).into_owned();
    if left_out > 0 {
        let _ = write!(shown, "… ({left_out} more bytes)");
    }
    shown
}

/// At most so many bytes of a text, from its beginning, that are whole characters.
pub fn first_bytes(text: &str, most: usize) -> &str {
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=most.min(text.len())).rev().find(is_boundary).unwrap_or_default();
    &text[..end]
}

/// The first so many characters, and the number of bytes behind them.
pub(crate) fn split(text: &str, most: usize) -> (&str, usize) {
    // No text has more characters than bytes: most are not counted.
    if text.len() <= most {
        return (text, 0);
    }
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    (&text[..end], text.len() - end)
}

fn spelt(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_plain = |character: char| !is_hidden(character) || stays(character);
    let Some(first) = text.find(|character| !is_plain(character)) else { return text.into() };
    let mut spelt = text[..first].to_owned();
    for character in text[first..].chars() {
        if is_plain(character) {
            spelt.push(character);
        } else {
            let _ = write!(spelt, "{}", character.escape_default());
        }
    }
    spelt.into()
}

#[cfg(test)]
mod tests {
    use super::{block, cut, first_bytes, is_hidden, json, line};

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(line("a\u{1b}[31m\r\nb\tc\0\u{7f}"), r"a\u{1b}[31m\r\nb\tc\u{0}\u{7f}");
        assert_eq!(line("\u{9b}31m\u{85}\u{2028}\u{2029}"), r"\u{9b}31m\u{85}\u{2028}\u{2029}");
        assert_eq!(line("\u{202e}x\u{2066}\u{200e}\u{61c}"), r"\u{202e}x\u{2066}\u{200e}\u{61c}");
        assert_eq!(line("\u{200b}\u{feff}\u{e0041}\u{3164}"), r"\u{200b}\u{feff}\u{e0041}\u{3164}");
        assert_eq!(block("a\r\nb\tc\rd\u{1b}"), "a\nb\tc\\rd\\u{1b}");
    }

    #[test]
    fn what_can_be_seen_is_left_alone() {
        for text in ["", "plain", "größer 漢字 עברית 👍\u{fe0f} \\n", "\u{fffd}"] {
            assert_eq!(line(text), text);
            assert_eq!(json(text), text);
        }
        assert_eq!(block("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a": "\u{1b}\n\u{7f}\u{202e}\u{2028}\u{e0041}", "b": [1] });
        for text in [value.to_string(), format!("{value:#}")] {
            let spelt = json(&text);
            assert!(!spelt.chars().any(|character| character != '\n' && is_hidden(character)), "{spelt}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&spelt).unwrap(), value);
        }
    }

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 2), "äö… (4 more bytes)");
        assert_eq!(cut(&"N".repeat(5_000_000), 4), "NNNN… (4999996 more bytes)");
        assert_eq!(cut("a\nb", 3), "a\\nb");
        assert_eq!(["äb", "ab", ""].map(|text| first_bytes(text, 1)), ["", "a", ""]);
    }
}
