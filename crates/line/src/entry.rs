//! One call's seat in its generation's ledger. Reader, writer, canceller and drain race for it: the first wins.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use linetender_core::{Evidence, Extent, Instant, Late, Phase, Record, RecordStep};
use linetender_wire::frame::Frame;
use linetender_wire::stdio::Ticket;
use tokio::sync::oneshot;

use crate::sync::{Mutex, MutexGuard};

/// What a call is told by its generation.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The server's answer.
    Answer(Frame),
    /// The server answered, but not with something that can be passed on.
    Unusable(String),
    /// It was lost, and this is what is known.
    Lost(Record),
}

/// A seat.
pub(crate) struct Entry {
    /// Its JSON-RPC id.
    pub(crate) id: u64,
    /// Whether somebody outside waits for it, or we ourselves do (handshake, lists, probes).
    pub(crate) callers: bool,
    seat: Mutex<Seat>,
    /// When the server last reported progress on it.
    progress_at: AtomicU64,
}

struct Seat {
    record: Record,
    reply: Option<oneshot::Sender<Reply>>,
}

impl Entry {
    pub(crate) fn new(id: u64, callers: bool, record: Record) -> (Self, oneshot::Receiver<Reply>) {
        let (reply, answer) = oneshot::channel();
        let seat = Mutex::new(Seat { record, reply: Some(reply) });
        (Self { id, callers, seat, progress_at: AtomicU64::new(0) }, answer)
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step; whoever ends the call gives the reply.
    fn step(&self, step: RecordStep, reply: impl FnOnce(Record) -> Option<Reply>) -> Result<Record, Late> {
        let mut seat = self.seat();
        let record = seat.record.step(step)?;
        seat.record = record;
        if let Some(reply) = reply(record)
            && let Some(sender) = seat.reply.take()
        {
            // A caller that is gone does not mind.
            let _ = sender.send(reply);
        }
        Ok(record)
    }

    /// The server's answer came.
    pub(crate) fn answer(&self, reply: Reply) -> bool {
        self.step(RecordStep::Answer, |_| Some(reply)).is_ok()
    }

    /// Its generation lost it.
    pub(crate) fn lose(&self, evidence: Evidence) -> bool {
        self.step(RecordStep::Lose(evidence), |record| Some(Reply::Lost(record))).is_ok()
    }

    /// Its deadline passed, or its caller went away.
    pub(crate) fn withdraw(&self, step: RecordStep) -> Result<Record, Late> {
        self.step(step, |_| None)
    }

    /// Whether the writer has not touched it.
    pub(crate) fn queued(&self) -> bool {
        self.seat().record.phase() == Phase::Queued
    }

    pub(crate) fn progressed(&self, now: Instant) {
        self.progress_at.store(now.nanos(), Ordering::Relaxed);
    }

    pub(crate) fn progress_at(&self) -> Instant {
        Instant::from_nanos(self.progress_at.load(Ordering::Relaxed))
    }
}

impl Ticket for Entry {
    fn writing(&self, extent: Extent) -> bool {
        self.step(RecordStep::Write(extent), |_| None).is_ok()
    }

    fn flushed(&self) {
        // Too late if it was answered or withdrawn in the meantime.
        let _ = self.step(RecordStep::Flush, |_| None);
    }
}

impl Reply {
    pub(crate) fn too_large(bad: linetender_wire::frame::Bad, seen: usize) -> Self {
        Self::Unusable(format!("the answer is {bad} ({seen} bytes had come)"))
    }
}
