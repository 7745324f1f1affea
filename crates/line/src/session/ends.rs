//! Where an agent is: on two pipes, or in this very process.

use linetender_wire::frame::{self, Passed};
use linetender_wire::{Item, Lines, queue};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::batch::Batches;

/// Small messages are gathered up to about this much.
const GATHERED: usize = 64 * 1024;

/// What an agent says.
pub(super) trait Says: Send {
    /// The next thing it says; `None` when it is gone. Cancel-safe: what was read stays.
    fn next(&mut self) -> impl Future<Output = Option<Item>> + Send;
}

/// An agent that writes lines.
pub(super) struct Reader<R> {
    input: R,
    lines: Lines,
    batches: Batches,
}

impl<R> Reader<R> {
    pub(super) fn new(input: R, limits: frame::Limits, batches: Batches) -> Self {
        Self { input, lines: Lines::new(limits).with_batches(), batches }
    }
}

impl<R: AsyncRead + Unpin + Send> Says for Reader<R> {
    async fn next(&mut self) -> Option<Item> {
        loop {
            self.batches.room().await;
            let item = self.lines.take();
            if let Some(item) = self.batches.read(&mut self.lines, item) {
                return Some(item);
            }
            if !matches!(self.input.read_buf(self.lines.buffer()).await, Ok(1..)) {
                let last = self.lines.finish();
                return self.batches.read(&mut self.lines, last);
            }
        }
    }
}

/// An agent that hands messages over, one at a time.
pub(super) struct Handed {
    said: mpsc::Receiver<Passed>,
    limits: frame::Limits,
    /// A text that was handed over is a line without its break; a batch is several messages.
    lines: Lines,
}

impl Handed {
    pub(super) fn new(said: mpsc::Receiver<Passed>, limits: frame::Limits) -> Self {
        Self { said, limits, lines: Lines::new(limits) }
    }
}

impl Says for Handed {
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.lines.take() {
                return Some(item);
            }
            let text = match self.said.recv().await?.one_line() {
                // It was read by whoever handed it over, who may have other limits.
                Passed::Frame(frame) if frame.is_within(self.limits) => return Some(Item::Frame(frame)),
                other => other.into_text(),
            };
            let buffer = self.lines.buffer();
            buffer.extend_from_slice(&text);
            buffer.extend_from_slice(b"\n");
        }
    }
}

/// Writes what the agent is to hear, until it is deaf or there is nothing more.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut frames: queue::Receiver<Passed>,
    batches: Batches,
) {
    while let Some(text) = batches.next(&mut frames).await {
        let text = text.text();
        let mut gathered = Vec::with_capacity(text.len() + 1);
        gathered.extend_from_slice(text);
        gathered.push(b'\n');
        while gathered.len() < GATHERED
            && let Some(text) = batches.try_next(&mut frames)
        {
            gathered.extend_from_slice(text.text());
            gathered.push(b'\n');
        }
        if output.write_all(&gathered).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
