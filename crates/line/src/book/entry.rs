//! One call's seat in its generation's ledger. Reader, writer, canceller and drain race for it: the first wins.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use linetender_core::{
    Delivery, Extent, Instant, Late, LossReport, Phase, Record, RecordStep, ServerRefusal,
};
use linetender_wire::frame::Frame;
use linetender_wire::http::KeyRefused;
use linetender_wire::seam::{Loss, Ticket};
use linetender_wire::stdio::Residue;
use linetender_wire::{Detail, Seen};
use tokio::sync::oneshot;

use super::question::Stand;
use crate::basics::order::Place;
use crate::basics::params::with_token;
use crate::basics::progress::OnProgress;
use crate::basics::sync::{Mutex, MutexGuard};

/// What a call is told by its generation.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The server's answer.
    Answer(Frame),
    /// The server answered, but not with something that can be passed on.
    Unusable(String),
    /// It was lost, and this is what is known.
    Lost(Lost),
}

/// A call that will not be answered.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) record: Record,
    /// What was seen of its own end; nothing, if that is the same as why its generation ended.
    pub(crate) seen: Option<Detail>,
    /// When the server wants to be asked again.
    pub(crate) after: Option<Duration>,
    /// What the server said to it, worth passing on if nothing can be mended.
    pub(crate) said: Option<Frame>,
    /// The key that it was refused for, where keys can be renewed.
    pub(crate) refused: Option<Box<KeyRefused>>,
}

impl Lost {
    /// Lost with its generation, which says why.
    pub(crate) const fn with_all(record: Record, seen: Option<Detail>) -> Self {
        Self { record, seen, after: None, said: None, refused: None }
    }

    /// Whether its session would refuse it again, executed or not: it can only go to another generation.
    pub(crate) fn session_is_gone(&self) -> bool {
        matches!(
            self.seen.as_deref(),
            Some(
                Seen::SessionLost
                    | Seen::SessionNeverKnown
                    | Seen::NotInitialized { .. }
                    | Seen::StreamEnded { .. }
            )
        ) || self.record.delivery() == Some(Delivery::Refused(ServerRefusal::SessionLost))
    }
}

/// Whoever outside waits for a call, and what they want to hear of it.
pub(crate) struct Heed {
    /// Their progress token, as they spelt it.
    token: Option<Box<str>>,
    progress: Option<OnProgress>,
    /// The call's place among those of its agent.
    place: Option<Place>,
}

impl Heed {
    pub(crate) fn of(token: Option<&str>, progress: Option<OnProgress>, place: Option<Place>) -> Self {
        Self { token: token.map(Into::into), progress, place }
    }
}

/// A seat.
pub(crate) struct Entry {
    /// Its JSON-RPC id.
    pub(crate) id: u64,
    /// Who outside waits for it; nobody, if it is our own (handshake, lists, probes).
    heed: Option<Heed>,
    seat: Mutex<Seat>,
    last: Arc<Last>,
    pub(crate) began: Instant,
    /// When the server last reported progress on it.
    progress_at: AtomicU64,
    /// How often the server redirected it, and it was sent again to the new place.
    redirects: AtomicU32,
    /// For how long it stood still, if the server asked the agent something during it.
    stand: OnceLock<Box<Stand>>,
    /// How its line begins: by that it is found in what a dead server left unread.
    head: [u8; HEAD],
}

/// How much of a line is kept: its number is in there.
const HEAD: usize = 48;

struct Seat {
    record: Record,
    reply: Option<oneshot::Sender<Reply>>,
}

impl Entry {
    pub(crate) fn new(
        id: u64,
        heed: Option<Heed>,
        record: Record,
        began: Instant,
        last: Arc<Last>,
        text: &[u8],
    ) -> (Self, oneshot::Receiver<Reply>) {
        let (reply, answer) = oneshot::channel();
        let seat = Mutex::new(Seat { record, reply: Some(reply) });
        let (progress_at, redirects) = (AtomicU64::new(0), AtomicU32::new(0));
        let mut head = [0; HEAD];
        for (kept, byte) in head.iter_mut().zip(text) {
            // As it is written: on one line.
            *kept = if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        }
        let stand = OnceLock::new();
        (Self { id, heed, seat, last, began, progress_at, redirects, stand, head }, answer)
    }

    /// True if a dead server has read no byte of it.
    pub(crate) fn is_unread_in(&self, residue: &Residue) -> bool {
        match self.seat().record.phase() {
            Phase::Writing(extent) | Phase::Flushed(extent) => {
                let length = HEAD.min(extent.len as usize);
                residue.holds(extent.start, &self.head[..length])
            }
            _ => false,
        }
    }

    /// For how long it stood still; made when it first does.
    pub(super) fn stand(&self) -> &Stand {
        self.stand.get_or_init(Box::default)
    }

    /// For how long it stood still. `None` if it never did.
    pub(crate) fn stood(&self) -> Option<&Stand> {
        self.stand.get().map(|stand| &**stand)
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

    /// It is lost; what was seen of that, if its generation cannot say.
    pub(crate) fn lose(&self, report: LossReport, seen: Option<Detail>) -> bool {
        let lost = |record| Some(self.lost(Lost::with_all(record, seen)));
        self.step(RecordStep::Lose(report), lost).is_ok()
    }

    /// Its own exchange failed.
    pub(crate) fn fail(&self, loss: Loss) -> bool {
        let Loss { report, seen, after, said, refused } = loss;
        let lost = |record| Some(self.lost(Lost { record, seen: Some(seen), after, said, refused }));
        self.step(RecordStep::Lose(report), lost).is_ok()
    }

    /// The reply to a call that was lost. The call is unsent again before the next generation takes any, however late the
    /// caller's task runs.
    fn lost(&self, lost: Lost) -> Reply {
        if let Some(place) = self.heed.as_ref().and_then(|heed| heed.place.as_ref()) {
            place.return_to_queue();
        }
        Reply::Lost(lost)
    }

    /// Nobody is left who could answer: lost, if it was anything before.
    pub(crate) fn forgotten(&self) -> Record {
        self.lose(LossReport::Nothing, None);
        self.seat().record
    }

    /// What is known of whether it ran, once it has ended.
    pub(crate) fn verdict(&self) -> Option<Delivery> {
        self.seat().record.verdict()
    }

    /// Whether somebody outside waits for it.
    pub(crate) const fn callers(&self) -> bool {
        self.heed.is_some()
    }

    /// Notes that the server redirected it, and that it was sent again to the new place.
    pub(crate) fn mark_redirected(&self) {
        self.redirects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn redirects(&self) -> u32 {
        self.redirects.load(Ordering::Relaxed)
    }

    /// Its deadline passed, or its caller went away.
    pub(crate) fn withdraw(&self, step: RecordStep) -> Result<Record, Late> {
        self.step(step, |_| None)
    }

    /// Whether the writer has not touched it.
    pub(crate) fn queued(&self) -> bool {
        self.seat().record.phase() == Phase::Queued
    }

    /// The server reported progress on it: its quiet time begins anew, and whoever wants to know is told.
    pub(crate) fn progressed(&self, now: Instant, params: &str) {
        self.progress_at.store(now.nanos(), Ordering::Relaxed);
        if let Some(Heed { token, progress: Some(progress), .. }) = &self.heed {
            match token.as_ref().and_then(|token| with_token(params, token)) {
                Some(params) => progress(&params),
                None => progress(params),
            }
        }
    }

    pub(crate) fn progress_at(&self) -> Instant {
        Instant::from_nanos(self.progress_at.load(Ordering::Relaxed))
    }
}

/// Whether the last thing that was written to a server was something that is not answered; and whether it takes no more.
#[derive(Debug, Default)]
pub(crate) struct Last {
    was_notice: AtomicBool,
    is_over: AtomicBool,
}

impl Last {
    pub(crate) fn was_notice(&self) -> bool {
        self.was_notice.load(Ordering::Relaxed)
    }

    /// Lets nothing be told any more that waits to be written.
    pub(crate) fn ends(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Something that is told and not answered.
pub(crate) struct Notice(pub(crate) Arc<Last>);

impl Ticket for Notice {
    fn writing(&self, _: Extent) -> bool {
        let Self(last) = self;
        let writes = !last.is_over.load(Ordering::Acquire);
        if writes {
            last.was_notice.store(true, Ordering::Relaxed);
        }
        writes
    }

    fn flushed(&self) {}
}

impl Ticket for Entry {
    fn writing(&self, extent: Extent) -> bool {
        let writes = self.step(RecordStep::Write(extent), |_| None).is_ok();
        if writes {
            self.last.was_notice.store(false, Ordering::Relaxed);
        }
        writes
    }

    fn flushed(&self) {
        // Too late if it was answered or withdrawn in the meantime.
        let _ = self.step(RecordStep::Flush, |_| None);
    }
}
