//! The agent's two pipes.

use bytes::Bytes;
use linetender_wire::{Item, Lines, queue};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Small messages are gathered up to about this much.
const BATCH: usize = 64 * 1024;

/// What the agent says.
pub(super) struct Reader<R> {
    input: R,
    lines: Lines,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) const fn new(input: R, lines: Lines) -> Self {
        Self { input, lines }
    }

    /// The next thing it says; `None` when it is gone. Cancel-safe: what was read stays.
    pub(super) async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.lines.take() {
                return Some(item);
            }
            match self.input.read_buf(self.lines.buffer()).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return self.lines.finish(),
            }
        }
    }
}

/// Writes what the agent is to hear, until it is deaf or there is nothing more.
pub(super) async fn write<W: AsyncWrite + Unpin>(mut output: W, mut frames: queue::Receiver<Bytes>) {
    while let Some(text) = frames.recv().await {
        let mut batch = Vec::with_capacity(text.len() + 1);
        batch.extend_from_slice(&text);
        batch.push(b'\n');
        while batch.len() < BATCH
            && let Some(text) = frames.try_recv()
        {
            batch.extend_from_slice(&text);
            batch.push(b'\n');
        }
        if output.write_all(&batch).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
