//! A server's stderr: always drained, or the server blocks at 64 KiB; the end of it is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::redact::Redacted;

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

    /// The last lines, fit to be shown.
    pub(super) fn tail(&self) -> Redacted {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let from = bytes.len().saturating_sub(SHOWN * 4);
        let last: Vec<u8> = bytes.range(from..).copied().collect();
        Redacted::tail(String::from_utf8_lossy(&last).trim(), SHOWN)
    }
}

/// Drains it to its end.
pub(super) async fn drain(mut stderr: impl AsyncRead + Unpin, ring: Ring) {
    let mut buffer = [0; 8192];
    while let Ok(bytes @ 1..) = stderr.read(&mut buffer).await {
        ring.push(&buffer[..bytes]);
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;

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
