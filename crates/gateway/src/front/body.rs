//! Responses in several pieces: one that is written bit by bit, whose writer learns at once when nobody reads it any more; and
//! one that is all there.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// Pieces that may wait to be written to the socket, behind the one that is. Each may be a whole message.
const PIECES: usize = 1;

/// What is written at a time, in up to three parts: so what is put around a message that others keep too needs no copy of it.
#[derive(Debug)]
pub(super) struct Piece(pub(super) [Bytes; 3]);

impl From<Bytes> for Piece {
    fn from(whole: Bytes) -> Self {
        Self([whole, Bytes::new(), Bytes::new()])
    }
}

struct Stream {
    pieces: mpsc::Receiver<Piece>,
    /// What is left of the one that is being written.
    parts: std::array::IntoIter<Bytes, 3>,
}

/// A body, and where its pieces go.
pub(super) fn stream() -> (mpsc::Sender<Piece>, Body) {
    let (sender, pieces) = mpsc::channel(PIECES);
    let Piece(none) = Bytes::new().into();
    (sender, Body::new(Stream { pieces, parts: none.into_iter() }))
}

/// Pieces that are all there.
struct Pieces(std::array::IntoIter<Bytes, 3>);

/// A body of these.
pub(super) fn pieces(pieces: [Bytes; 3]) -> Body {
    Body::new(Pieces(pieces.into_iter()))
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|piece| piece.len() as u64).sum())
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(part) = self.parts.find(|part| !part.is_empty()) {
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            match std::task::ready!(self.pieces.poll_recv(context)) {
                Some(Piece(parts)) => self.parts = parts.into_iter(),
                None => return Poll::Ready(None),
            }
        }
    }
}
