//! A session's stream as a response, for as long as somebody reads it.

use std::sync::Arc;

use bytes::Bytes;
use linetender_wire::frame;
use serde_json::json;
use tokio::sync::mpsc;

use super::session::Session;
use super::tape::{Tape, There};
use super::{Front, sse};

/// Carries a stream into a response, from behind this event on.
pub(super) async fn follow(
    front: Arc<Front>,
    session: Arc<Session>,
    tape: Arc<Tape>,
    from: u64,
    turn: Option<u64>,
    out: mpsc::Sender<Bytes>,
) {
    session.begins_reading(&tape);
    let _reader = tape.reader();
    let event = |number: u64| format!("{}-{number}", tape.number);
    let mut turns = session.turns.subscribe();
    let mut number = from;
    let mut next = Some(sse::first(&event(from)));
    loop {
        if let Some(piece) = next.take()
            && out.send(piece).await.is_err()
        {
            break;
        }
        tokio::select! {
            (at, there) = tape.behind(number) => {
                number = at;
                next = Some(match there {
                    There::Message(text) => sse::event(Some(&event(number)), text),
                    There::Missed(count) => sse::event(Some(&event(number)), missed(count)),
                    There::End => break,
                });
            }
            () = out.closed() => break,
            // Somebody else reads it from now on; it would never end by itself.
            _ = turns.wait_for(|now| turn.is_some_and(|turn| *now != turn)), if turn.is_some() => break,
            () = front.closes(), if turn.is_some() => break,
            () = tokio::time::sleep(sse::KEEPALIVE) => next = Some(sse::COMMENT),
        }
    }
    session.ends_reading();
}

/// What an agent is told that did not read its stream.
fn missed(count: u64) -> Bytes {
    let data = format!("{count} messages dropped: this stream was not read fast enough (back-pressure)");
    let params = json!({ "level": "warning", "logger": "linetender", "data": data });
    frame::notification("notifications/message", Some(&params.to_string()))
}
