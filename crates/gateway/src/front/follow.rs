//! A session's stream as a response, for as long as somebody reads it.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Extensions;
use linetender_wire::frame;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::body::Piece;
use super::sent::Unread;
use super::session::Session;
use super::tape::{Reader, Tape, There};
use super::who::principal;
use super::{Front, sse};
use crate::listing::Listing;
use crate::principal::Principal;

/// Whoever reads a stream.
pub(super) struct Reads {
    unread: Arc<Unread>,
    principal: Principal,
}

impl Reads {
    pub(super) fn of(extensions: &Extensions) -> Self {
        Self { unread: Unread::of(extensions), principal: principal(extensions) }
    }
}

/// Carries a stream into a response, from behind this event on, until somebody else reads it.
pub(super) async fn follow(
    front: Arc<Front>,
    session: Arc<Session>,
    (tape, _reader): (Arc<Tape>, Reader),
    from: u64,
    turn: u64,
    (out, reads): (mpsc::Sender<Piece>, Reads),
) {
    let mut listing = front.gateway.listing();
    let credential = front.credentials.shown_by(&reads.principal);
    let mut must_show_again = pin!(credential.must_be_shown_again());
    let mut has_nothing_to_say = pin!(credential.has_nothing_to_say());
    session.begins_reading(&tape);
    let event = |number: u64| format!("{}-{number}", tape.number);
    let mut number = from;
    let mut next = Some(sse::first(&event(from)).into());
    loop {
        if let Some(piece) = next.take() {
            tokio::select! {
                biased;
                sent = out.send(piece) => if sent.is_err() { break },
                () = tape.is_taken_over(turn) => break,
                () = &mut has_nothing_to_say => break,
            }
        }
        tokio::select! {
            (at, there) = tape.behind(number) => {
                number = at;
                next = Some(match there {
                    There::Message(text) => reads.unread.counts(sse::event_of_line(Some(&event(number)), text)),
                    There::Missed(count) => sse::event(Some(&event(number)), missed(count)),
                    There::End => break,
                });
            }
            () = out.closed() => break,
            () = tape.is_taken_over(turn) => break,
            () = front.closes(), if Session::is_own(&tape) => break,
            // Its principal may not see the server any more, or that is gone.
            () = loses_its_server(&front, &session, &mut listing), if Session::is_own(&tape) => break,
            // An agent that waits for an answer still gets it, unless it may not have it any more.
            () = &mut must_show_again, if Session::is_own(&tape) => break,
            () = &mut has_nothing_to_say => break,
            () = tokio::time::sleep(sse::KEEPALIVE) => next = Some(sse::COMMENT.into()),
        }
    }
    session.ends_reading();
}

/// Waits until a session's server is not there for its principal any more. Cancel-safe: what was seen is in the receiver.
async fn loses_its_server(front: &Front, session: &Session, listing: &mut watch::Receiver<Arc<Listing>>) {
    while session.is_current(front) {
        if listing.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// What an agent is told that did not read its stream.
fn missed(count: u64) -> Bytes {
    let data = format!("{count} messages dropped: this stream was not read fast enough (back-pressure)");
    let params = json!({ "level": "warning", "logger": "linetender", "data": data });
    frame::notification("notifications/message", Some(&params.to_string()))
}
