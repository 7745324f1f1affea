//! What a server says to agents before its handshake is over: nobody can answer it yet, so it waits, in its order.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use linetender_wire::frame::{Frame, Message};

use crate::basics::sync::{Mutex, MutexGuard};

/// How many messages wait, and how much they may weigh together.
const MESSAGES: usize = 256;
const BYTES: usize = 1024 * 1024;

/// Messages that wait for the end of the handshake.
#[derive(Default)]
pub(super) struct Early {
    open: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    frames: Vec<Frame>,
    bytes: usize,
    /// Questions wait no longer: the server may wait for their answers before it answers the handshake.
    refuses: bool,
}

/// What becomes of a message.
pub(super) enum Kept {
    /// The handshake is done: it goes on.
    Open(Frame),
    Waits,
    Refused(Frame),
}

impl Early {
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a message, unless the handshake is done.
    pub(super) fn keep(&self, frame: Frame) -> Kept {
        if self.is_open() {
            return Kept::Open(frame);
        }
        let mut waiting = self.waiting();
        // Those that waited have been passed on while this one waited for the lock.
        if self.is_open() {
            return Kept::Open(frame);
        }
        let bytes = waiting.bytes + frame.text().len();
        let refused = waiting.refuses && matches!(frame.message(), Message::Request { .. });
        if refused || waiting.frames.len() >= MESSAGES || bytes > BYTES {
            return Kept::Refused(frame);
        }
        waiting.bytes = bytes;
        waiting.frames.push(frame);
        Kept::Waits
    }

    /// Passes on what waited. What comes meanwhile waits for that.
    pub(super) fn open(&self, pass: impl FnMut(Frame)) {
        let mut waiting = self.waiting();
        std::mem::take(&mut *waiting).frames.into_iter().for_each(pass);
        self.open.store(true, Ordering::Release);
    }

    /// The ids of the questions that waited. No other will.
    pub(super) fn refuse(&self) -> Vec<String> {
        let mut waiting = self.waiting();
        waiting.refuses = true;
        let mut asked = Vec::new();
        waiting.frames.retain(|frame| match frame.message() {
            Message::Request { id, .. } => {
                asked.push(id.to_owned());
                false
            }
            Message::Notification { .. } | Message::Response { .. } => true,
        });
        asked
    }
}
