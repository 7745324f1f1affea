//! A response that is written bit by bit. Whoever writes it learns at once when nobody reads it any more.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

/// Pieces that may wait to be written to the socket.
const PIECES: usize = 8;

struct Stream(mpsc::Receiver<Bytes>);

/// A body, and where its pieces go.
pub(super) fn stream() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, pieces) = mpsc::channel(PIECES);
    (sender, Body::new(Stream(pieces)))
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
