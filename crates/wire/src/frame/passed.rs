//! A message on its way between rooms.

use std::borrow::Cow;

use bytes::Bytes;

use super::{Bad, Frame, Limits, parse};
use crate::queue::Weigh;

/// What our own rooms pass on has been bounded where it came in.
const ANY: Limits = Limits { length: usize::MAX, depth: usize::MAX };

/// A message: one that was read, and need not be read again, or a text that somebody made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Passed {
    /// One that was read.
    Frame(Frame),
    /// A text: a message, or several as a batch.
    Text(Bytes),
}

impl Passed {
    /// Its text.
    pub fn text(&self) -> &Bytes {
        match self {
            Self::Frame(frame) => frame.text(),
            Self::Text(text) => text,
        }
    }

    /// The same, and no more than that.
    pub fn into_text(self) -> Bytes {
        match self {
            Self::Frame(frame) => frame.into_text(),
            Self::Text(text) => text,
        }
    }

    /// The message, read if it was not yet.
    ///
    /// # Errors
    /// If the text is no message.
    pub fn into_frame(self) -> Result<Frame, Bad> {
        match self {
            Self::Frame(frame) => Ok(frame),
            Self::Text(text) => parse(&text, ANY),
        }
    }

    /// The same, for somebody who passes it on.
    ///
    /// # Errors
    /// If the text is no message.
    pub fn frame(&self) -> Result<Cow<'_, Frame>, Bad> {
        match self {
            Self::Frame(frame) => Ok(Cow::Borrowed(frame)),
            Self::Text(text) => parse(text, ANY).map(Cow::Owned),
        }
    }

    /// The same on one line.
    #[must_use]
    pub fn one_line(self) -> Self {
        match self {
            Self::Frame(frame) => Self::Frame(frame.one_line()),
            Self::Text(text) => Self::Text(super::one_line(text)),
        }
    }
}

impl From<Frame> for Passed {
    fn from(frame: Frame) -> Self {
        Self::Frame(frame)
    }
}

impl From<Bytes> for Passed {
    fn from(text: Bytes) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Passed {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl Weigh for Passed {
    fn bytes(&self) -> usize {
        self.text().len()
    }
}
