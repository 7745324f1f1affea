//! Server-sent events, as bytes.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use linetender_wire::frame;

/// How soon an agent may come back when its stream ended.
const RETRY: &str = "1000";

/// How often something is said on a stream that has nothing to say.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

/// Sent when there is nothing to say, so that nobody between takes the stream for dead.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// A message.
pub(super) fn event(id: Option<&str>, text: Bytes) -> Bytes {
    let text = frame::one_line(text);
    let mut event = BytesMut::with_capacity(text.len() + 64);
    if let Some(id) = id {
        event.put_slice(b"id: ");
        event.put_slice(id.as_bytes());
        event.put_slice(b"\n");
    }
    event.put_slice(b"data: ");
    event.put_slice(&text);
    event.put_slice(b"\n\n");
    event.freeze()
}

/// The first event of a stream that can be resumed: it says nothing but where that is.
// MCP 2025-11-25, "Sending Messages to the Server", 6: an event with an id and an empty data field.
pub(super) fn first(id: &str) -> Bytes {
    format!("id: {id}\nretry: {RETRY}\ndata: \n\n").into()
}
