//! JSON-RPC frames that keep their bytes.
//!
//! What linetender does not need to understand it passes on unchanged. So a frame is the text as it came, plus
//! where in it the few members lie that we look at; `params`, `result` and `error` stay raw. A rewrite splices one
//! range and keeps every other byte and the order.

mod alike;
mod batch;
mod build;
mod members;
mod parse;
mod passed;
mod routing;
#[cfg(test)]
mod tests;

pub use batch::{BATCH, Batch, array, is_batch, parse_batch};
pub use build::{error_reply, notification, one_line, reply, request, respell, response};
pub use members::{Members, string};
pub(crate) use parse::parse_some;
pub use parse::{Bad, Limits, check, parse, parse_all};
pub use passed::Passed;
pub use routing::{Ambiguous, Meta, Routing, sole};

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;

/// One JSON-RPC message, as it came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    /// Known to be UTF-8: a large message is looked at several times, and validated once.
    text: ByteString,
    shape: Shape,
    kept: Kept,
}

/// Something that is to last for as long as a message is kept, whatever becomes of its text: what counts its bytes, for example. Two
/// messages do not differ by it.
#[derive(Clone, Default)]
pub struct Kept(Option<Arc<dyn Any + Send + Sync>>);

impl Kept {
    /// For as long as this.
    pub fn with(what: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(what))
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Kept" } else { "-" })
    }
}

/// What a message is, and where its members lie in the text.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Shape {
    Request { id: Span, method: Cow<'static, str>, params: Option<Span> },
    Notification { method: Cow<'static, str>, params: Option<Span> },
    Response { id: Option<Span>, outcome: Option<(Outcome, Span)> },
}

/// Which of the two a response carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// `result`, whatever its shape, `null` included.
    Result,
    /// `error`.
    Error,
}

/// A range of the text. A message is capped far below what 32 bits can hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Span {
    start: u32,
    end: u32,
}

/// A message, seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Message<'a> {
    /// Somebody wants an answer.
    Request {
        /// As it was spelt: a number or a string.
        id: &'a str,
        /// The method.
        method: &'a str,
        /// As they were spelt.
        params: Option<&'a str>,
    },
    /// Somebody tells something.
    Notification {
        /// The method.
        method: &'a str,
        /// As they were spelt.
        params: Option<&'a str>,
    },
    /// An answer.
    Response {
        /// As it was spelt; `None` if it is missing or null.
        id: Option<&'a str>,
        /// What it says, as it was spelt; `None` if it is neither a result nor an error.
        outcome: Option<(Outcome, &'a str)>,
    },
}

impl Frame {
    /// The same, and this with it for as long as it or what is made of it is kept.
    #[must_use]
    pub fn carrying(self, kept: Kept) -> Self {
        Self { kept, ..self }
    }

    /// What it carries.
    pub fn kept(&self) -> Kept {
        self.kept.clone()
    }

    /// The whole text.
    pub fn text(&self) -> &Bytes {
        self.text.as_bytes()
    }

    /// The whole text, and no more than that.
    pub fn into_text(self) -> Bytes {
        self.text.into_bytes()
    }

    /// The same on one line; nothing in it changes its place.
    #[must_use]
    pub fn one_line(self) -> Self {
        if !build::has_break(self.text()) {
            return self;
        }
        let text = self.text.replace(['\r', '\n'], " ").into();
        Self { text, ..self }
    }

    /// Whether it keeps to limits that may be others than those it was read with.
    pub fn is_within(&self, limits: Limits) -> bool {
        self.text.len() <= limits.length && !parse::too_deep(self.text(), limits.depth)
    }

    /// What it is.
    pub fn message(&self) -> Message<'_> {
        match &self.shape {
            Shape::Request { id, method, params } => {
                Message::Request { id: self.at(*id), method, params: params.map(|params| self.at(params)) }
            }
            Shape::Notification { method, params } => {
                Message::Notification { method, params: params.map(|params| self.at(params)) }
            }
            Shape::Response { id, outcome } => Message::Response {
                id: id.map(|id| self.at(id)),
                outcome: outcome.map(|(which, span)| (which, self.at(span))),
            },
        }
    }

    /// The id of a response that is one of ours: a number, or that number as a string (some servers do that).
    pub fn response_number(&self) -> Option<u64> {
        match &self.shape {
            Shape::Response { id: Some(id), .. } => number(self.at(*id)),
            _ => None,
        }
    }

    /// The bytes of `params`, `result` or `error`, shared with the frame.
    pub fn payload(&self) -> Option<Bytes> {
        let span = match &self.shape {
            Shape::Request { params, .. } | Shape::Notification { params, .. } => *params,
            Shape::Response { outcome, .. } => outcome.map(|(_, span)| span),
        };
        span.map(|span| self.text().slice(span.range()))
    }

    /// The params of a request or notification, shared with the frame.
    pub fn params(&self) -> Option<ByteString> {
        let (Shape::Request { params, .. } | Shape::Notification { params, .. }) = &self.shape else {
            return None;
        };
        params.map(|span| self.text.slice_ref(self.at(span)))
    }

    /// The same text with another id in place of its own. A notification has none and stays as it is.
    #[must_use]
    pub fn with_id(&self, id: &str) -> Self {
        match &self.shape {
            Shape::Request { id: old, .. } | Shape::Response { id: Some(old), .. } => self.spliced(*old, id),
            Shape::Notification { .. } | Shape::Response { id: None, .. } => self.clone(),
        }
    }

    /// The same without a copy: what stands before the id, another id, and what stands behind it. `None` if it has none.
    pub fn around_id(&self, id: &str) -> Option<[Bytes; 3]> {
        match &self.shape {
            Shape::Request { id: old, .. } | Shape::Response { id: Some(old), .. } => {
                let old = old.range();
                let (before, behind) = (self.text().slice(..old.start), self.text().slice(old.end..));
                Some([before, Bytes::copy_from_slice(id.as_bytes()), behind])
            }
            Shape::Notification { .. } | Shape::Response { id: None, .. } => None,
        }
    }

    /// The same text with other params in place of its own.
    #[must_use]
    pub fn with_params(&self, new: &str) -> Self {
        match &self.shape {
            Shape::Request { params: Some(old), .. } | Shape::Notification { params: Some(old), .. } => {
                self.spliced(*old, new)
            }
            _ => self.clone(),
        }
    }

    /// The same answer with something else in place of its result or error.
    #[must_use]
    pub fn with_outcome(&self, new: &str) -> Self {
        match &self.shape {
            Shape::Response { outcome: Some((_, old)), .. } => self.spliced(*old, new),
            _ => self.clone(),
        }
    }

    /// The same with other JSON in place of one member's value. Nothing has to be read for that: what lies behind it moves.
    fn spliced(&self, old: Span, new: &str) -> Self {
        let moved = |span: Span| span.moved(old, new.len());
        let shape = match &self.shape {
            Shape::Request { id, method, params } => {
                Shape::Request { id: moved(*id), method: method.clone(), params: params.map(moved) }
            }
            Shape::Notification { method, params } => {
                Shape::Notification { method: method.clone(), params: params.map(moved) }
            }
            Shape::Response { id, outcome } => Shape::Response {
                id: id.map(moved),
                outcome: outcome.map(|(which, span)| (which, moved(span))),
            },
        };
        Self { text: build::splice(&self.text, old.range(), new), shape, kept: self.kept() }
    }

    fn at(&self, span: Span) -> &str {
        // The parser took these ranges from valid text, on character boundaries.
        self.text.get(span.range()).unwrap_or_default()
    }
}

/// An id that is one of ours.
pub fn number(id: &str) -> Option<u64> {
    // Some servers make a string of it, some (Gson) a double.
    let quoted = id.strip_prefix('"').and_then(|id| id.strip_suffix('"'));
    let digits = quoted.unwrap_or_else(|| id.strip_suffix(".0").unwrap_or(id));
    // `+1` and `01` are somebody else's.
    let ours =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if ours { digits.parse().ok() } else { None }
}

impl Span {
    /// Lengths are checked against 32 bits before.
    fn of(start: usize, end: usize) -> Self {
        Self { start: u32::try_from(start).unwrap_or(u32::MAX), end: u32::try_from(end).unwrap_or(u32::MAX) }
    }

    /// Where it lies when `old`, which is this or does not overlap it, is so long.
    fn moved(self, old: Self, long: usize) -> Self {
        let (start, end) = (self.start as usize, self.end as usize);
        let (from, to) = (old.start as usize, old.end as usize);
        if self == old {
            Self::of(start, start + long)
        } else if start >= to {
            Self::of(start - to + from + long, end - to + from + long)
        } else {
            self
        }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}
