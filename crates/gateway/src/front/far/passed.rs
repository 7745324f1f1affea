//! An answer that another gateway gives: passed on as it comes. If that gateway is lost in the middle, whoever waits is told so.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body::{Frame as Piece, SizeHint};
use hyper::body::Incoming;
use linetender_wire::frame::Frame;

use super::asked;
use crate::failed::Failed;
use crate::listing::Endpoint;

/// The body.
pub(super) struct Passed {
    body: Incoming,
    /// What is said in an event stream if the rest of it is lost.
    if_lost: Bytes,
    /// Whether what was passed on ends with a whole event.
    whole: bool,
    over: bool,
}

impl Passed {
    /// The same answer, for whoever asked these.
    pub(super) fn on(response: Response<Incoming>, frames: &[Frame], endpoint: &Endpoint) -> Response {
        let (mut head, body) = response.into_parts();
        let events = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let failed = Failed::gateway_lost().of(endpoint.server());
        let mut if_lost = Vec::new();
        if events {
            for (id, method) in asked(frames) {
                if_lost.extend_from_slice(b"data: ");
                if_lost.extend_from_slice(&failed.reply(id, method, false));
                if_lost.extend_from_slice(b"\n\n");
            }
        }
        head.headers.remove(CONTENT_LENGTH);
        head.extensions.clear();
        let body = Self { body, if_lost: if_lost.into(), whole: events, over: false };
        Response::from_parts(head, Body::new(body))
    }
}

impl http_body::Body for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, hyper::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let Poll::Ready(piece) = Pin::new(&mut self.body).poll_frame(cx) else { return Poll::Pending };
        match piece {
            Some(Ok(piece)) => {
                if let Some(bytes) = piece.data_ref() {
                    self.whole = bytes.ends_with(b"\n\n");
                }
                Poll::Ready(Some(Ok(piece)))
            }
            Some(Err(_)) if self.whole && !self.if_lost.is_empty() => {
                self.over = true;
                Poll::Ready(Some(Ok(Piece::data(self.if_lost.clone()))))
            }
            other => {
                self.over = true;
                Poll::Ready(other)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
