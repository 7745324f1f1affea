//! What the writer and those who give it records know of each other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linetender_wire::wall::{rfc3339, wall_clock};

use super::chain::Tip;
use super::{Head, Queue};

#[derive(Debug)]
pub(super) struct Shared {
    limit: Queue,
    /// Records that are not written yet, and their size.
    entries: AtomicUsize,
    bytes: AtomicUsize,
    /// Records that found no place in the queue, and of which the file does not say so yet.
    missed: AtomicU64,
    /// Refusals that found no place in their part of the queue, and of which the file does not say so yet.
    left_out: AtomicU64,
    is_troubled: AtomicBool,
    trouble: Mutex<Option<String>>,
    head: Mutex<Head>,
}

impl Shared {
    pub(super) fn new(limit: Queue, path: &Path, tip: &Tip) -> Self {
        Self {
            limit,
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            is_troubled: AtomicBool::new(false),
            trouble: Mutex::default(),
            head: Mutex::new(head(path, tip)),
        }
    }

    /// Takes a place in the queue for a call that was made, or may have been.
    pub(super) fn enter(&self, bytes: usize) -> bool {
        let entries = self.entries.fetch_add(1, Ordering::Relaxed) + 1;
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let has_room = entries <= self.limit.entries && all <= self.limit.bytes;
        if !has_room {
            self.leave(1, bytes);
            self.miss();
        }
        has_room
    }

    /// Takes a place in the queue for a request that linetender refused, if it is less than a quarter full: whoever asks for what
    /// cannot be had, however often, takes no place from calls that run, and keeps nobody from making one.
    pub(super) fn enter_refusal(&self, bytes: usize) -> bool {
        let is_spare = self.entries.load(Ordering::Relaxed) * 4 < self.limit.entries
            && self.bytes.load(Ordering::Relaxed) * 4 < self.limit.bytes;
        if is_spare {
            self.entries.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        is_spare
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The file says that so many refusals have no line.
    pub(super) fn wrote_left_out(&self, refusals: u64) {
        self.left_out.fetch_sub(refusals, Ordering::Relaxed);
    }

    pub(super) fn leave(&self, entries: usize, bytes: usize) {
        self.entries.fetch_sub(entries, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A record cannot be given to the writer.
    pub(super) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// The file says that so many are missing.
    pub(super) fn wrote_gap(&self, missed: u64) {
        self.missed.fetch_sub(missed, Ordering::Relaxed);
    }

    pub(super) fn set_trouble(&self, why: &str, advice: &str) {
        let file = self.head().file.clone();
        *self.trouble() =
            Some(format!("the audit file {file} cannot be written: {why}. To fix it: {advice}"));
        self.is_troubled.store(true, Ordering::Release);
    }

    pub(super) fn clear_trouble(&self) {
        *self.trouble() = None;
        self.is_troubled.store(false, Ordering::Release);
    }

    /// What keeps a call that begins now from having its line, if anything does.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_troubled.load(Ordering::Acquire)
            && let Some(trouble) = &*self.trouble()
        {
            return Err(trouble.clone());
        }
        // The other half is for the calls that are in progress.
        let is_full = self.entries.load(Ordering::Relaxed) * 2 > self.limit.entries
            || self.bytes.load(Ordering::Relaxed) * 2 > self.limit.bytes;
        if is_full || self.missed() > 0 {
            let file = self.head().file.clone();
            return Err(format!(
                "the audit file {file} is written more slowly than calls end. To fix it: try again later; if it stays so, use a \
                 faster disk, or sync = \"interval\" in [gateway.audit]"
            ));
        }
        Ok(())
    }

    pub(super) fn set_head(&self, path: &Path, tip: &Tip) {
        *self.head() = head(path, tip);
    }

    pub(super) fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn head(path: &Path, tip: &Tip) -> Head {
    let file = path.to_string_lossy().into_owned();
    Head { file, seq: tip.seq, hash: tip.hash.clone(), at: rfc3339(wall_clock()) }
}
