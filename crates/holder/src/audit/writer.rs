//! The thread that writes: many records, one sync.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::chain::Body;
use super::pages::{Lost, Pages};
use super::record::Record;
use super::shared::Shared;
use super::{OnError, SyncPolicy};

/// How often the file is looked at, and how soon a failed write is tried again.
const LOOK: Duration = Duration::from_millis(250);

/// The most that is written at once.
const BATCH: usize = 1024 * 1024;

/// Why refusals have no line.
const LEFT_OUT: &str =
    "requests that linetender refused came faster than they could be written; none of them was executed";

/// How long lines are gathered that nobody waits for.
const GATHER: Duration = Duration::from_millis(10);

pub(super) enum Order {
    Write {
        record: Box<Record>,
        told: Option<oneshot::Sender<Told>>,
    },
    /// Everything before it is on disk, or could not be written.
    Flush(oneshot::Sender<bool>),
}

/// What became of a line: its number, or why it is not on disk.
pub(super) type Told = Result<u64, String>;

pub(super) struct Writer {
    pub(super) pages: Pages,
    pub(super) sync: SyncPolicy,
    pub(super) on_error: OnError,
    pub(super) shared: Arc<Shared>,
    pub(super) health: Health,
    /// When the file was looked at, or tried, the last time.
    pub(super) looked: Instant,
    pub(super) synced: Instant,
}

/// How writing goes.
pub(super) enum Health {
    /// Nothing is left to sync.
    Synced,
    /// Lines are in the file that may not be on disk.
    Dirty,
    /// What could not be written is counted until it goes again.
    Fails { missed: u64, why: String },
}

/// Lines that are written together.
#[derive(Default)]
struct Batch {
    bodies: Vec<Body>,
    told: Vec<Option<oneshot::Sender<Told>>>,
    flush: Option<oneshot::Sender<bool>>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, order: Order) {
        match order {
            Order::Write { record, told } => {
                self.bytes += record.weight();
                self.bodies.push(record.body());
                self.told.push(told);
            }
            Order::Flush(told) => self.flush = Some(told),
        }
    }

    fn is_full(&self) -> bool {
        self.flush.is_some() || self.bytes >= BATCH
    }
}

#[expect(clippy::disallowed_methods, reason = "it takes this long, whatever comes meanwhile")]
fn gather(interval: Duration) {
    std::thread::sleep(GATHER.min(interval));
}

impl Writer {
    /// Runs until nobody can order anything any more.
    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        let shared = Arc::clone(&self.shared);
        let _dead = Dead(&shared);
        loop {
            match orders.recv_timeout(self.rest()) {
                Ok(order) => {
                    let mut batch = Batch::default();
                    batch.add(order);
                    // Nobody waits for these: a thread that is woken for each costs more than all else that is done for a call.
                    if let (SyncPolicy::Interval(interval), false) = (self.sync, batch.is_full()) {
                        gather(interval);
                    }
                    while !batch.is_full()
                        && let Ok(order) = orders.try_recv()
                    {
                        batch.add(order);
                    }
                    self.write(batch);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.recover();
                    let _ = self.sync_now();
                    return;
                }
            }
            self.look();
        }
    }

    /// How long nothing has to be done if nothing is ordered.
    fn rest(&self) -> Duration {
        match (&self.health, self.sync) {
            (Health::Dirty, SyncPolicy::Interval(interval)) => {
                interval.saturating_sub(self.synced.elapsed()).min(LOOK)
            }
            _ => LOOK,
        }
    }

    fn write(&mut self, batch: Batch) {
        let Batch { mut bodies, told, flush, bytes } = batch;
        let count = bodies.len() as u64;
        let overflown = self.shared.missed();
        if overflown > 0 {
            bodies.insert(0, overflow(overflown));
        }
        let left_out = self.shared.left_out();
        if left_out > 0 {
            bodies.insert(0, Body::gap(left_out, LEFT_OUT));
        }
        let done = match &mut self.health {
            // Each would only find out the same. The next try is at its time, and says what is missing.
            Health::Fails { missed, why } => {
                *missed += count;
                Err(why.clone())
            }
            Health::Synced | Health::Dirty if bodies.is_empty() => Ok(()),
            Health::Synced | Health::Dirty => self.append(&bodies, count),
        };
        if done.is_ok() {
            self.shared.wrote_gap(overflown);
            self.shared.wrote_left_out(left_out);
        }
        let must_sync = flush.is_some() || matches!(self.sync, SyncPolicy::Call);
        let done = done.and_then(|()| if must_sync { self.sync_now() } else { Ok(()) });
        let first = self.pages.tip().seq.saturating_sub(count).saturating_add(1);
        for (seq, told) in (first..).zip(told) {
            if let Some(told) = told {
                let _ = told.send(done.clone().map(|()| seq));
            }
        }
        if let Some(flush) = flush {
            let _ = flush.send(done.is_ok());
        }
        self.shared.leave(usize::try_from(count).unwrap_or(usize::MAX), bytes);
    }

    /// Adds lines to the file; if it cannot, `count` calls are missing.
    fn append(&mut self, bodies: &[Body], count: u64) -> Result<(), String> {
        let added = self.pages.check().and_then(|()| Ok(self.pages.append(bodies)?));
        match added {
            Ok(()) => {
                if matches!(self.health, Health::Synced) {
                    self.synced = Instant::now();
                }
                self.health = Health::Dirty;
                Ok(())
            }
            Err(lost) => Err(self.fail(count, &lost)),
        }
    }

    /// Syncs, if there is something to sync, and says so where others ask for the head.
    fn sync_now(&mut self) -> Result<(), String> {
        match &self.health {
            Health::Synced => return Ok(()),
            Health::Fails { why, .. } => return Err(why.clone()),
            Health::Dirty => {}
        }
        // What is on disk under no name that anybody looks for is as good as lost.
        match self.pages.sync().map_err(Lost::from).and_then(|()| self.pages.check()) {
            Ok(()) => {
                self.health = Health::Synced;
                self.synced = Instant::now();
                self.shared.set_head(self.pages.path(), self.pages.tip());
                Ok(())
            }
            Err(lost) => Err(self.fail(0, &lost)),
        }
    }

    /// What is to be done from time to time.
    fn look(&mut self) {
        if let (Health::Dirty, SyncPolicy::Interval(interval)) = (&self.health, self.sync)
            && self.synced.elapsed() >= interval
        {
            let _ = self.sync_now();
        }
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        if let Health::Fails { .. } = self.health {
            self.recover();
        } else if let Err(lost) = self.pages.check() {
            self.fail(0, &lost);
        } else if self.shared.missed() + self.shared.left_out() > 0 {
            self.write(Batch::default());
        }
    }

    fn fail(&mut self, missed: u64, lost: &Lost) -> String {
        let why = match lost {
            Lost::Removed => "it was removed, moved or emptied".to_owned(),
            Lost::Changed => "it was replaced or changed by another program".to_owned(),
            Lost::Failed(error) => error.to_string(),
        };
        let file = self.pages.path().display();
        tracing::error!(%file, why, "cannot write the audit file");
        self.shared.set_trouble(&why, advice(lost));
        self.health = Health::Fails { missed, why: why.clone() };
        why
    }

    /// Tries whether writing goes again; then what is missing is said first.
    fn recover(&mut self) {
        let Health::Fails { missed, why } = &self.health else { return };
        let (missed, why, seq) = (*missed, why.clone(), self.pages.tip().seq);
        let overflown = self.shared.missed();
        let gap = Body::gap(missed + overflown, &format!("writing failed behind line {seq}: {why}"));
        let tried = match (self.pages.take_again(), self.on_error) {
            (Err(Lost::Removed), OnError::Continue) => self.pages.begin_anew().map_err(Lost::from),
            (tried, _) => tried,
        };
        let tried = tried.and_then(|()| {
            self.pages.append(&[gap])?;
            Ok(self.pages.sync()?)
        });
        match tried {
            Ok(()) => {
                tracing::info!(missed, "audit file writable again");
                self.shared.wrote_gap(overflown);
                self.shared.clear_trouble();
                self.shared.set_head(self.pages.path(), self.pages.tip());
                (self.health, self.synced) = (Health::Synced, Instant::now());
            }
            Err(lost) => {
                let why = match &lost {
                    Lost::Failed(error) => error.to_string(),
                    Lost::Removed | Lost::Changed => why,
                };
                self.shared.set_trouble(&why, advice(&lost));
            }
        }
    }
}

fn overflow(missed: u64) -> Body {
    Body::gap(missed, "calls ended faster than they could be written")
}

/// What a person can do about it.
fn advice(lost: &Lost) -> &'static str {
    match lost {
        Lost::Removed => "put the file back, or restart linetender, which then begins a new one",
        Lost::Changed => {
            "put the file back as it was; or look at it with `linetender audit verify`, move it away, and restart linetender"
        }
        Lost::Failed(_) => {
            "make room on the disk or correct its permissions; linetender tries again four times a second"
        }
    }
}

/// Whoever asks is told that nobody writes any more, whatever the reason.
struct Dead<'a>(&'a Shared);

impl Drop for Dead<'_> {
    fn drop(&mut self) {
        self.0.set_trouble("the thread that writes it has ended", "restart linetender");
    }
}
