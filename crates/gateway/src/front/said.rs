//! What the body of a POST says: a message, or a batch of them.

use bytes::Bytes;
use linetender_wire::frame::{self, Bad, Frame, Kept, Limits};

/// The messages of a body.
pub(super) struct Said {
    pub(super) frames: Vec<Frame>,
    pub(super) form: Form,
}

/// How they came, and so how they are answered.
pub(super) enum Form {
    /// As they are.
    Plain,
    /// In one array, and so are their answers.
    Batch {
        /// The answers to its elements that are no messages.
        refusals: Vec<Bytes>,
    },
}

impl Said {
    /// Reads a body.
    pub(super) fn read(text: &Bytes, limits: Limits) -> Result<Self, Bad> {
        if frame::is_batch(text) {
            let batch = frame::parse_batch(text, limits)?;
            let form = Form::Batch { refusals: batch.refusals().collect() };
            return Ok(Self { frames: batch.frames, form });
        }
        let frames = frame::parse_all(text, limits)?;
        Ok(Self { frames, form: Form::Plain })
    }

    /// The same, each message carrying this.
    pub(super) fn carrying(self, kept: &Kept) -> Self {
        let frames = self.frames.into_iter().map(|frame| frame.carrying(kept.clone())).collect();
        Self { frames, ..self }
    }
}

impl Form {
    pub(super) const fn is_batch(&self) -> bool {
        matches!(self, Self::Batch { .. })
    }

    /// An answer that stands for all of them.
    pub(super) fn sole(&self, text: Bytes) -> Bytes {
        if self.is_batch() { frame::array(&[text]) } else { text }
    }

    /// The answers that are there already.
    pub(super) fn refusals(&self) -> &[Bytes] {
        match self {
            Self::Plain => &[],
            Self::Batch { refusals } => refusals,
        }
    }
}
