//! An answer on its way: in pieces, so that it is known whether the peer takes them.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::activity::InFlight;
use crate::budget::Held;

/// The largest piece. HTTP/2 takes a piece whole as soon as its peer has room for a byte of it.
const PIECE: usize = 64 * 1024;

/// The body of an answer. Its request is in flight for as long as this is kept.
pub(super) struct Sent {
    body: Body,
    rest: Bytes,
    request: InFlight,
    /// What of it is not taken yet.
    held: Held,
}

impl Sent {
    pub(super) fn new(body: Body, request: InFlight, mut held: Held) -> Self {
        // An answer is never refused for want of room: what others do not read makes way for it.
        held.force(usize::try_from(http_body::Body::size_hint(&body).lower()).unwrap_or(usize::MAX));
        Self { body, rest: Bytes::new(), request, held }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let length = self.rest.len().min(PIECE);
        self.request.offers();
        self.held.shrink(length);
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
                // Pieces of a stream were not known before.
                let known = usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX);
                let counted = self.held.bytes().saturating_sub(known);
                self.held.force(data.len().saturating_sub(counted));
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
