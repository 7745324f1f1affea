//! What happened to this user's lines: append-only, one line of JSON per state change, of every holder in one file.
//!
//! A line that died at night left its cause in an error that a model read and forgot. Here it stays. Nothing about the
//! journal may hurt a line: entries go through a bounded queue to a thread of their own; what cannot be written is
//! counted, said once, and its absence is written down as soon as the disk takes something again.

mod entry;
mod file;
mod read;
mod tail;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

pub use entry::{Charge, Entry, LONGEST_LINE, LeftProcess, Reason, VERSION, What};
use file::Pages;
pub use file::Rotation;
pub(crate) use file::{make_room, page};
pub use read::{Last, heads_of, in_order, last};
pub use tail::Tail;

/// Entries that wait to be written.
const QUEUE: usize = 256;

/// Journal writer. Cheap to clone; its thread ends with the last clone.
#[derive(Clone, Debug)]
pub struct Journal {
    queue: SyncSender<Order>,
    /// Entries that found no place in the queue.
    missed: Arc<AtomicU64>,
    /// Entries that were not written, since it was opened.
    lost: Arc<AtomicU64>,
}

enum Order {
    Write(Box<Entry>),
    /// Everything before it has been written, or could not be.
    Tell(oneshot::Sender<()>),
}

/// How writing goes.
enum Health {
    Writes,
    /// It was said once. What could not be written is counted until it goes again.
    Fails {
        missed: u64,
        why: String,
    },
}

impl Journal {
    /// Opens a journal. The file is created with the first entry; write errors show up then.
    ///
    /// # Errors
    /// If this machine gives us no thread.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_rotation(path, Rotation::default())
    }

    /// Opens a journal with its own rotation settings.
    ///
    /// # Errors
    /// If this machine gives us no thread.
    pub fn with_rotation(path: impl Into<PathBuf>, rotation: Rotation) -> io::Result<Self> {
        let (queue, orders) = sync_channel(QUEUE);
        let (missed, lost) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let writer = Writer {
            pages: Pages::new(path.into(), rotation),
            health: Health::Writes,
            missed: Arc::clone(&missed),
            lost: Arc::clone(&lost),
        };
        std::thread::Builder::new().name("journal".into()).spawn(move || writer.run(&orders))?;
        Ok(Self { queue, missed, lost })
    }

    /// Queues an entry. Never blocks.
    pub fn write(&self, entry: Entry) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Order::Write(Box::new(entry))) {
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many entries could not be written since it was opened.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Flushes queued entries within `limit`; `false` on timeout.
    pub async fn flush(&self, limit: Duration) -> bool {
        let (tell, told) = oneshot::channel();
        self.queue.try_send(Order::Tell(tell)).is_ok()
            && matches!(tokio::time::timeout(limit, told).await, Ok(Ok(())))
    }
}

struct Writer {
    pages: Pages,
    health: Health,
    missed: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    /// Runs until nobody can order anything any more.
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Write(entry) => self.write(&entry),
                Order::Tell(tell) => drop(tell.send(())),
            }
        }
    }

    fn write(&mut self, entry: &Entry) {
        match self.fill_gap(entry).and_then(|()| self.pages.append(&entry.line())) {
            Ok(()) => self.health = Health::Writes,
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                match &mut self.health {
                    Health::Fails { missed, .. } => *missed += 1,
                    Health::Writes => {
                        let file = self.pages.path().display();
                        tracing::warn!(%error, %file, "cannot write the journal; continuing without it");
                        self.health = Health::Fails { missed: 1, why: error.to_string() };
                    }
                }
            }
        }
    }

    /// Says what is missing before this entry.
    fn fill_gap(&mut self, next: &Entry) -> io::Result<()> {
        if let Health::Fails { missed, why } = &self.health {
            let why = format!("journal write failed: {why}");
            self.pages.append(&gap(next, *missed, why).line())?;
            tracing::info!(missed, "journal writable again");
            self.health = Health::Writes;
        }
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            missed => {
                let why = "events arrived faster than they could be written".to_owned();
                self.pages.append(&gap(next, missed, why).line()).inspect_err(|_| {
                    self.missed.fetch_add(missed, Ordering::Relaxed);
                })
            }
        }
    }
}

/// It has the time of the entry that it stands before, so that they stay together wherever they are sorted.
fn gap(next: &Entry, entries: u64, why: String) -> Entry {
    Entry { what: What::Gap { entries, why }, ..next.clone() }
}

#[cfg(test)]
mod tests;
