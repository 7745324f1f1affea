//! The way down: frames for the writer, bounded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use linetender_core::Extent;
use tokio::sync::Notify;

use super::{Carrier, Exchange};
use crate::frame::{self, Frame, Kept, Limits};
use crate::queue::{self, NotTaken, Weigh};

/// How much may wait for the writer. A message that is larger waits alone.
const BYTES: usize = 64 * 1024 * 1024;

/// A frame for the writer: one line, without its break.
pub struct Outgoing {
    payload: Payload,
    /// Whose it is, if anybody waits for the answer.
    pub ticket: Option<Arc<dyn Ticket>>,
}

/// Only some ways down need to know what a text says. What we have spelt ourselves is not read again for that.
enum Payload {
    Text(Bytes),
    Frame(Frame),
}

impl Outgoing {
    /// Somebody's words.
    pub fn text(text: Bytes, ticket: Option<Arc<dyn Ticket>>) -> Self {
        Self { payload: Payload::Text(frame::one_line(text)), ticket }
    }

    /// Words whose meaning is known.
    pub fn frame(frame: Frame, ticket: Option<Arc<dyn Ticket>>) -> Self {
        Self { payload: Payload::Frame(frame.one_line()), ticket }
    }

    /// What is written.
    pub fn bytes(&self) -> &Bytes {
        match &self.payload {
            Payload::Text(text) => text,
            Payload::Frame(frame) => frame.text(),
        }
    }

    /// What is written, what came with it, and whose it is.
    pub(crate) fn into_parts(self) -> (Bytes, Kept, Option<Arc<dyn Ticket>>) {
        match self.payload {
            Payload::Text(text) => (text, Kept::default(), self.ticket),
            Payload::Frame(frame) => {
                let kept = frame.kept();
                (frame.into_text(), kept, self.ticket)
            }
        }
    }

    /// What it means, and whose it is.
    ///
    /// # Errors
    /// If it means nothing.
    pub(crate) fn read(self, depth: usize) -> Result<(Frame, Option<Arc<dyn Ticket>>), Self> {
        let frame = match self.payload {
            Payload::Frame(frame) => frame,
            // It is our own spelling of what was within the limits, and may have become longer.
            Payload::Text(ref text) => match frame::parse(text, Limits { length: usize::MAX >> 1, depth }) {
                Ok(frame) => frame,
                Err(_) => return Err(self),
            },
        };
        Ok((frame, self.ticket))
    }
}

/// A call's place in its ledger, as the writer sees it.
pub trait Ticket: Send + Sync {
    /// The writer takes it. `false`: it was withdrawn, and must not be written.
    fn writing(&self, extent: Extent) -> bool;
    /// The pipe has accepted its last byte.
    fn flushed(&self);
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// Too many wait already.
    Full,
    /// The generation takes no more.
    Sealed,
}

/// Hands frames to the writer of one generation. Never blocks.
#[derive(Clone)]
pub struct Outbox {
    queue: queue::Sender<Outgoing>,
    seal: Arc<Seal>,
    /// Who makes exchanges of frames, where each has its own.
    carrier: Option<Weak<dyn Carrier>>,
}

/// Once set, the writer stops: in mid-line, if need be.
#[derive(Default)]
pub struct Seal {
    set: AtomicBool,
    news: Notify,
}

impl Outbox {
    pub(crate) fn new(capacity: usize) -> (Self, queue::Receiver<Outgoing>, Arc<Seal>) {
        let (queue, frames) = queue::queue(capacity, BYTES);
        let seal = Arc::new(Seal::default());
        (Self { queue, seal: Arc::clone(&seal), carrier: None }, frames, seal)
    }

    /// Frames that somebody waits for may go their own way from now on.
    pub(crate) fn carried(self, by: Weak<dyn Carrier>) -> Self {
        Self { carrier: Some(by), ..self }
    }

    /// A way down with a writer of one's own, which takes frames until the seal.
    pub fn channel(capacity: usize) -> (Self, queue::Receiver<Outgoing>) {
        let (outbox, frames, _) = Self::new(capacity);
        (outbox, frames)
    }

    /// Whether nothing is taken any more.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_set()
    }

    /// Hands a frame over.
    ///
    /// # Errors
    /// If the generation is sealed, or its queue is full.
    pub fn send(&self, outgoing: Outgoing) -> Result<(), Refused> {
        if self.seal.is_set() {
            return Err(Refused::Sealed);
        }
        self.queue.try_send(outgoing).map_err(|error| match error {
            NotTaken::Full => Refused::Full,
            NotTaken::Closed => Refused::Sealed,
        })
    }

    /// The same for whoever will carry the frame themselves, if it can go its own way: then it has not gone yet.
    ///
    /// # Errors
    /// If the generation is sealed, or its queue is full.
    pub fn carry(&self, outgoing: Outgoing) -> Result<Option<Exchange>, Refused> {
        let Some(carrier) = self.carrier.as_ref().and_then(Weak::upgrade) else {
            return self.send(outgoing).map(|()| None);
        };
        if self.seal.is_set() {
            return Err(Refused::Sealed);
        }
        match carrier.carry(outgoing) {
            Ok(exchange) => Ok(Some(exchange)),
            Err(outgoing) => self.send(outgoing).map(|()| None),
        }
    }

    /// Hands a frame over when there is room; `false` if the generation is sealed before that.
    pub async fn send_when_room(&self, outgoing: Outgoing) -> bool {
        !self.seal.is_set() && self.queue.send(outgoing).await.is_ok()
    }

    /// Returns when there is room for so many bytes, which another sender may take first; `false` if the generation is sealed
    /// before that.
    pub async fn room_for(&self, bytes: usize) -> bool {
        !self.seal.is_set() && self.queue.room_for(bytes).await.is_ok()
    }

    /// Nothing is taken from now on, and the writer stops.
    pub fn seal(&self) {
        self.seal.set();
    }
}

impl Weigh for Outgoing {
    fn bytes(&self) -> usize {
        Outgoing::bytes(self).len()
    }
}

impl Seal {
    /// Stops the writer.
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.news.notify_one();
    }

    fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until it is set.
    pub(crate) async fn wait(&self) {
        while !self.is_set() {
            self.news.notified().await;
        }
    }
}
