//! A server's stderr: always drained, or the server blocks at 64 KiB; the end of it is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::platform::{Output, PIPE_MAX_BYTES};
use crate::redact::Redacted;
use crate::seam::{Event, Listener};
use crate::test_hooks;

/// A line that is longer is told in pieces of about this length.
const LINE: usize = 8192;

/// How much is read at once.
const READ_BYTES: usize = 8192;

/// How much of it goes into an error.
const SHOWN: usize = 2000;

/// The last bytes of stderr.
#[derive(Clone)]
pub(super) struct Ring {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    capacity: usize,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self { bytes: Arc::default(), capacity }
    }

    pub(super) fn push(&self, new: &[u8]) {
        let new = &new[new.len().saturating_sub(self.capacity)..];
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let over = (bytes.len() + new.len()).saturating_sub(self.capacity);
        bytes.drain(..over);
        bytes.extend(new);
    }

    fn is_empty(&self) -> bool {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The last lines, fit to be shown.
    pub(super) fn tail(&self) -> Redacted {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let from = bytes.len().saturating_sub(SHOWN * 4);
        let last: Vec<u8> = bytes.range(from..).copied().collect();
        Redacted::tail(String::from_utf8_lossy(&last).trim(), SHOWN)
    }
}

/// Drains it to its end. Whoever asks is told when all is read that was there.
pub(super) async fn drain(
    mut stderr: impl Output,
    ring: Ring,
    listener: Arc<dyn Listener>,
    events: mpsc::Sender<Event>,
    mut asked: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let mut told = listener.wants_stderr().then(Vec::new);
    let mut events = Some(events);
    let mut keep = |buffer: &mut BytesMut| {
        test_hooks::point("stderr");
        ring.push(buffer);
        if let Some(line) = &mut told {
            tell(line, buffer, |line| listener.stderr(line));
        }
        buffer.clear();
    };
    loop {
        tokio::select! {
            biased;
            // The server has exited. What it wrote before lies in the pipe, even if another process holds it open.
            Some(done) = asked.recv() => {
                let mut drained = 0;
                while drained < PIPE_MAX_BYTES
                    && let Ok(bytes @ 1..) = stderr.read_now(&mut buffer).await
                {
                    keep(&mut buffer);
                    drained += bytes;
                }
                let _ = done.send(());
            }
            read = stderr.read_buf(&mut buffer) => match read {
                Ok(1..) => keep(&mut buffer),
                Ok(0) | Err(_) => break,
            }
        }
        // A supervisor with so much to do must not keep the pipe from being read.
        events.take_if(|events| {
            !ring.is_empty() && !matches!(events.try_send(Event::Wrote), Err(TrySendError::Full(_)))
        });
        // A server that floods it must not keep this thread: others have their turn after each read.
        tokio::task::yield_now().await;
    }
    if let Some(line) = told.filter(|line| !line.is_empty()) {
        listener.stderr(&line);
    }
}

/// Tells of the lines that are whole now, all at once: a server decides how short they are. Keeps the beginning of the next.
fn tell(line: &mut Vec<u8>, new: &[u8], mut hear: impl FnMut(&[u8])) {
    let rest = match new.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => {
            line.extend_from_slice(&new[..end]);
            hear(line);
            line.clear();
            &new[end + 1..]
        }
        None => new,
    };
    line.extend_from_slice(rest);
    if line.len() >= LINE {
        hear(line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE, Ring, tell};

    #[test]
    fn lines_are_told_whole_several_at_once_and_long_ones_in_pieces() {
        let (mut line, mut told) = (Vec::new(), Vec::new());
        let long = [b"z".repeat(LINE), b"\n".to_vec()].concat();
        for new in [&b"a\nb"[..], b"c\n\nd", &long, b"e"] {
            tell(&mut line, new, |line| told.push(String::from_utf8_lossy(line).into_owned()));
        }
        assert_eq!(told, ["a", "bc\n", &format!("d{}", "z".repeat(LINE))]);
        assert_eq!(line, b"e");
    }

    #[test]
    fn the_last_bytes_stay() {
        let ring = Ring::new(10);
        ring.push(b"0123456");
        ring.push(b"789 abc");
        assert_eq!(ring.tail().as_str(), "456789 abc");
        ring.push(b"0123456789 a longer one");
        assert_eq!(ring.tail().as_str(), "longer one");
    }
}
