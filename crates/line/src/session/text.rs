//! An answer as it is written: mostly the server's own bytes, with the agent's id in place of ours.
//!
//! A large one is not copied for the sake of a few digits: what stands before and behind them is passed on as it lies.

use bytes::Bytes;
use linetender_wire::frame::{Frame, Passed};

/// From how many bytes on a copy costs more than two pieces more to write.
pub const LARGE: usize = 64 * 1024;

/// A message, whole or in pieces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Text {
    /// In one piece.
    Whole(Passed),
    /// A large one.
    Pieces {
        /// What stands before the id, the agent's id, and what stands behind it.
        pieces: [Bytes; 3],
        /// The same with an id of ours: whoever wants it in one piece need not read it again.
        ours: Frame,
    },
    /// A large one that was put together of what others are told as well.
    Parts([Bytes; 3]),
}

impl Text {
    /// In one piece, which a large one has to be copied for.
    pub fn whole(self) -> Passed {
        match self {
            Self::Whole(text) => text,
            Self::Pieces { pieces: [_, id, _], ours } => {
                // It was a text before it was cut.
                ours.with_id(str::from_utf8(&id).unwrap_or("null")).into()
            }
            Self::Parts(parts) => Bytes::from(parts.concat()).into(),
        }
    }

    /// What it is made of, in order. No string and no number of the message lies in two of them.
    pub fn pieces(&self) -> &[Bytes] {
        match self {
            Self::Whole(text) => std::slice::from_ref(text.text()),
            Self::Pieces { pieces, .. } | Self::Parts(pieces) => pieces,
        }
    }
}

impl<P: Into<Passed>> From<P> for Text {
    fn from(text: P) -> Self {
        Self::Whole(text.into())
    }
}
