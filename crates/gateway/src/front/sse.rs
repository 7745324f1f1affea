//! Server-sent events, as bytes.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use linetender_wire::frame;

use super::body::Piece;

/// How soon an agent may come back when its stream ended.
const RETRY: &str = "1000";

/// What is shorter is put into one piece with what is around it, which is one write.
const COPIED: usize = 16 * 1024;

/// The end of an event.
const END: Bytes = Bytes::from_static(b"\n\n");

/// How often something is said on a stream that has nothing to say.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

/// Sent when there is nothing to say, so that nobody between takes the stream for dead.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// A message.
pub(super) fn event(id: Option<&str>, text: Bytes) -> Piece {
    event_of_line(id, frame::one_line(text))
}

/// A message without line breaks. A large one is neither copied nor looked through: others may keep it too, so each copy would be
/// memory that nobody counts; and who asks for it again and again has it for a small request each time.
pub(super) fn event_of_line(id: Option<&str>, text: Bytes) -> Piece {
    let is_large = text.len() > COPIED;
    let mut event = BytesMut::with_capacity(if is_large { 0 } else { text.len() } + 64);
    if let Some(id) = id {
        event.put_slice(b"id: ");
        event.put_slice(id.as_bytes());
        event.put_slice(b"\n");
    }
    event.put_slice(b"data: ");
    if is_large {
        return Piece([event.freeze(), text, END]);
    }
    event.put_slice(&text);
    event.put_slice(&END);
    event.freeze().into()
}

/// The first event of a stream that can be resumed: it says nothing but where that is.
// MCP 2025-11-25, "Sending Messages to the Server", 6: an event with an id and an empty data field.
pub(super) fn first(id: &str) -> Bytes {
    format!("id: {id}\nretry: {RETRY}\ndata: \n\n").into()
}

#[cfg(test)]
mod tests {
    use super::{COPIED, event};
    use crate::front::body::Piece;
    use bytes::Bytes;

    #[test]
    fn x05_a_large_message_is_not_copied_for_whoever_reads_it() {
        for length in [1, COPIED, COPIED + 1] {
            let text = Bytes::from(vec![b'x'; length]);
            let Piece(parts) = event(Some("1-2"), text.clone());
            let shared = parts.iter().any(|part| part.as_ptr() == text.as_ptr());
            assert_eq!(shared, length > COPIED, "{length}");
            let whole = format!("id: 1-2\ndata: {}\n\n", "x".repeat(length));
            assert_eq!(parts.concat(), whole.as_bytes());
        }
    }
}
