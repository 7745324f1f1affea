//! An answer as it is written: mostly the server's own bytes, with the agent's id in place of ours.
//!
//! A large one is not copied for the sake of a few digits: what stands before and behind them is passed on as it lies.

use bytes::Bytes;
use linetender_wire::frame::Passed;

/// From how many bytes on a copy costs more than two pieces more to write.
pub(super) const LARGE: usize = 64 * 1024;

/// A message, whole or in pieces.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Text {
    /// In one piece.
    Whole(Passed),
    /// What stands before the id, the id, and what stands behind it.
    Pieces([Bytes; 3]),
}

impl Text {
    /// In one piece, which a large one has to be copied for.
    pub fn whole(self) -> Passed {
        match self {
            Self::Whole(text) => text,
            Self::Pieces(pieces) => Bytes::from(pieces.concat()).into(),
        }
    }

    /// What it is made of, in order. No string and no number of the message lies in two of them.
    pub fn pieces(&self) -> &[Bytes] {
        match self {
            Self::Whole(text) => std::slice::from_ref(text.text()),
            Self::Pieces(pieces) => pieces,
        }
    }
}

impl<P: Into<Passed>> From<P> for Text {
    fn from(text: P) -> Self {
        Self::Whole(text.into())
    }
}
