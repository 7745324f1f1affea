//! The one type that foreign text passes before a person, a model or a log sees it.
//!
//! Stderr tails, argv, headers and bodies hold tokens more often than not, and escape sequences sometimes. What went
//! through here is bounded, without the secrets that we were configured with and what else looks like a credential, and
//! on characters that can be seen.

mod guess;

use std::borrow::Cow;
use std::fmt;

use crate::secrets::hide;
use crate::visible;

/// Text that may be shown.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Redacted(Box<str>);

/// How much more of a text is looked at than is shown: what is masked gets shorter, and a secret at the end of what is
/// looked at could not be told from something else.
const AHEAD: usize = 8 * 1024;

/// The end of what is looked at, if it is not the end of the text.
const UNSURE: usize = 2 * 1024;

impl Redacted {
    /// At most `most` characters of `text`, from its beginning, on one line.
    pub fn head(text: &str, most: usize) -> Self {
        let looked_at = visible::first_bytes(text, most.saturating_mul(4).saturating_add(AHEAD));
        let is_whole = looked_at.len() == text.len();
        let mut masked = masked(looked_at);
        if !is_whole {
            let sure = visible::first_bytes(&masked, masked.len().saturating_sub(UNSURE)).len();
            masked.truncate(sure);
        }
        let spelt = visible::line(&masked);
        let (kept, left_out) = visible::split(&spelt, most);
        let mut shown = kept.to_owned();
        if left_out > 0 || !is_whole {
            shown.push('…');
        }
        Self(shown.into())
    }

    /// At most `most` characters of `text`, from its end, with its line breaks.
    pub fn tail(text: &str, most: usize) -> Self {
        let masked = masked(text);
        let shown = visible::block(&masked);
        let count = shown.chars().count();
        if count <= most {
            return Self(shown.into());
        }
        let cut = shown.char_indices().nth(count - most).map_or(0, |(at, _)| at);
        // Half a word at the cut could be the half of a token that gives no sign of being one.
        let rest = &shown[cut..];
        let whole = rest.find(char::is_whitespace).map_or("", |at| &rest[at..]);
        Self(format!("…{whole}").into())
    }

    /// All of `text`, with its line breaks: a credential may stand on the line behind its name.
    pub fn lines(text: &str) -> Self {
        Self(visible::block(&masked(text)).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Without the secrets that are known, and then without what looks like one.
fn masked(text: &str) -> String {
    guess::mask(&without_colours(&hide(text)))
}

/// Without the sequences that colour text in a terminal: they say nothing, and stand between names and values.
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return text.into();
    }
    let mut pieces = text.split("\u{1b}[");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(piece.len());
        let colour = piece[end..].strip_prefix('m');
        if colour.is_none() {
            shown.push_str("\u{1b}[");
        }
        shown.push_str(colour.unwrap_or(piece));
    }
    shown.into()
}

#[cfg(test)]
mod tests;
