//! An answer on its way: in pieces, so that it is known whether the peer takes them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::activity::InFlight;

/// The largest piece. HTTP/2 takes a piece whole as soon as its peer has room for a byte of it.
const PIECE: usize = 64 * 1024;

/// The body of an answer. Its request is in flight for as long as this is kept.
pub(super) struct Sent {
    body: Body,
    rest: Bytes,
    request: InFlight,
}

impl Sent {
    pub(super) fn new(body: Body, request: InFlight) -> Self {
        Self { body, rest: Bytes::new(), request }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let length = self.rest.len().min(PIECE);
        self.request.offers();
        Frame::data(self.rest.split_to(length))
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.request.is_taken();
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.piece()
            }
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}
