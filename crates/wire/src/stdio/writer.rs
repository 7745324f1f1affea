//! Writes frames to a server's stdin, and counts every byte that the pipe accepted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf as _, BytesMut};
use linetender_core::Extent;
use tokio::io::AsyncWriteExt as _;

use super::Lifeline;
use super::platform::Stdin;
use crate::frame::Kept;
use crate::queue;
use crate::seam::{Outgoing, Seal, Ticket};
use crate::test_hooks;

/// Small messages are gathered up to about this much, so that few calls at a time are in the doubtful state of being
/// written.
const BATCH: usize = 4096;

/// The room of a batch above this is given back.
const LARGE: usize = 64 * 1024;

/// Why the writer stopped.
pub(crate) enum WriteEnd {
    /// The generation was sealed.
    Sealed,
    /// The server reads no more.
    Broken,
}

/// Writes until the seal, and gives the pipe back: what lies unread in it is evidence.
pub(crate) async fn write<S: Stdin>(
    mut stdin: S,
    mut frames: queue::Receiver<Outgoing>,
    seal: Arc<Seal>,
    accepted: Arc<AtomicU64>,
    lifeline: Option<Arc<Lifeline>>,
) -> (S, WriteEnd) {
    let end = {
        let work = pump(&mut stdin, &mut frames, &accepted, lifeline.as_deref());
        tokio::select! {
            biased;
            () = seal.wait() => WriteEnd::Sealed,
            () = work => WriteEnd::Broken,
        }
    };
    (stdin, end)
}

async fn pump(
    stdin: &mut impl Stdin,
    frames: &mut queue::Receiver<Outgoing>,
    accepted: &AtomicU64,
    lifeline: Option<&Lifeline>,
) {
    let mut batch = Batch::default();
    loop {
        let frame = tokio::select! {
            biased;
            frame = frames.recv() => frame,
            // Nobody reads any more: that is known without a write.
            () = stdin.broken() => return,
        };
        let Some(frame) = frame else { break };
        test_hooks::point("writer");
        batch.add(frame);
        while batch.text.len() < BATCH
            && let Some(frame) = frames.try_recv()
        {
            batch.add(frame);
        }
        let large = batch.text.len() > LARGE;
        while !batch.text.is_empty() {
            // This process may have slept, and its reaper too: what the server is no longer ours to run it does not get.
            if lifeline.is_some_and(Lifeline::is_over) {
                return;
            }
            let Ok(bytes) = stdin.write(&batch.text).await else { return };
            batch.text.advance(bytes);
            batch.written += bytes as u64;
            accepted.store(batch.written, Ordering::Release);
            batch.tell_flushed();
        }
        if large {
            batch.text = BytesMut::new();
        }
    }
    // Every sender is gone: the same as a seal, and that is waited for.
    std::future::pending::<()>().await;
}

/// What is being written, and whose it is.
#[derive(Default)]
struct Batch {
    text: BytesMut,
    written: u64,
    /// Where each call's line ends, its break included.
    marks: VecDeque<(u64, Arc<dyn Ticket>, Kept)>,
}

impl Batch {
    fn add(&mut self, frame: Outgoing) {
        let start = self.written + self.text.len() as u64;
        let (text, kept, ticket) = frame.into_parts();
        let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
        if let Some(ticket) = ticket {
            if !ticket.writing(Extent { start, len }) {
                return;
            }
            self.marks.push_back((start + u64::from(len) + 1, ticket, kept));
        }
        self.text.extend_from_slice(&text);
        self.text.extend_from_slice(b"\n");
    }

    fn tell_flushed(&mut self) {
        while self.marks.front().is_some_and(|(end, ..)| *end <= self.written) {
            if let Some((_, ticket, _)) = self.marks.pop_front() {
                ticket.flushed();
            }
        }
    }
}
