//! Who called what, and what became of it: one line of JSON per call, chained by hashes.
//!
//! An audit is no log. A log may lose a line; here it is said beforehand what may be lost ([`SyncPolicy`]), and what happens to
//! calls when nothing can be written ([`OnError`]). And it is meant for a reader who does not believe the machine that it was
//! written on: a line that was changed, moved or removed is found by [`verify`], and a tail that was cut off by the
//! [`Head`] that is kept elsewhere.
//!
//! A call whose line could not be written has run all the same: under [`OnError::Refuse`] with [`SyncPolicy::Call`] its
//! [`Receipt`] fails. Whoever answers the agent then says so in place of the result, with the verdict that the call was
//! answered, so that nobody repeats it. Later calls are refused before they are sent ([`Audit::check`]).

mod chain;
mod pages;
mod record;
mod shared;
mod tail;
mod verify;
mod writer;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

pub use chain::{LONGEST_LINE, VERSION};
use pages::Pages;
pub use pages::Rotation;
pub use record::{Arguments, LONGEST_ARGUMENTS, LONGEST_NAME, Record, Verdict};
use shared::Shared;
pub use verify::{Bad, Damage, Heads, Verified, verify};
use writer::{Health, Order, Told, Writer};

/// How an audit is written.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file, by its absolute path. Older ones get numbers: `audit.1.jsonl`.
    pub path: PathBuf,
    /// When lines are on disk.
    pub sync: SyncPolicy,
    /// What happens when they cannot be written.
    pub on_error: OnError,
    /// When the file is put away.
    pub rotation: Rotation,
    /// How long a [`Receipt`] waits.
    pub timeout: Duration,
    /// How much may wait to be written.
    pub queue: Queue,
}

/// When lines are on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SyncPolicy {
    /// Before the agent has its answer.
    Call,
    /// At most this long after the call ended. They survive the end of the process after some milliseconds, and that of the machine
    /// after this.
    Interval(Duration),
}

/// What happens to calls when their lines cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnError {
    /// They are refused.
    Refuse,
    /// They go on. How many have no line is written as soon as that is possible.
    Continue,
}

/// Limits of what waits to be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Queue {
    /// Records.
    pub entries: usize,
    /// Bytes of all records.
    pub bytes: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Self { entries: 8192, bytes: 16 * 1024 * 1024 }
    }
}

impl Settings {
    /// The strictest ones: nothing runs that has no line.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            sync: SyncPolicy::Call,
            on_error: OnError::Refuse,
            rotation: Rotation::default(),
            timeout: Duration::from_secs(5),
            queue: Queue::default(),
        }
    }
}

/// The last line that is on disk. Kept where whoever can change the audit cannot change it too, it proves what the audit had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// The file.
    pub file: String,
    /// Number of the line.
    pub seq: u64,
    /// SHA-256 of the line, line break included.
    pub hash: String,
    /// When it was synced: RFC 3339, milliseconds, UTC.
    pub at: String,
}

/// Writes an audit. Cheap to clone; its thread ends with the last clone, and with it the lock of the file.
#[derive(Clone, Debug)]
pub struct Audit {
    queue: SyncSender<Order>,
    shared: Arc<Shared>,
    sync: SyncPolicy,
    on_error: OnError,
    timeout: Duration,
}

impl Audit {
    /// Continues the audit that is there, or begins one. When this returns, its first line is on disk.
    ///
    /// # Errors
    /// If nothing can be written there, another process writes it, others could have put it there, or it is no audit. The
    /// text completes the sentence "the audit file PATH …".
    pub fn open(settings: &Settings) -> io::Result<Self> {
        let Settings { sync, on_error, timeout, .. } = *settings;
        let pages = Pages::open(&settings.path, settings.rotation)?;
        // Room for all that the limit lets in, and for those who flush.
        let (queue, orders) = sync_channel(settings.queue.entries + 16);
        let shared = Arc::new(Shared::new(settings.queue, pages.path(), pages.tip()));
        let now = Instant::now();
        let of_writer = Arc::clone(&shared);
        let health = Health::Synced;
        let writer = Writer { pages, sync, on_error, shared: of_writer, health, looked: now, synced: now };
        std::thread::Builder::new().name("audit".into()).spawn(move || writer.run(&orders))?;
        Ok(Self { queue, shared, sync, on_error, timeout })
    }

    /// Whether a call may begin. Asked before it is sent.
    ///
    /// # Errors
    /// Why it must be refused, and what a person can do. Never under [`OnError::Continue`].
    pub fn check(&self) -> Result<(), String> {
        match self.on_error {
            OnError::Refuse => self.shared.check(),
            OnError::Continue => Ok(()),
        }
    }

    /// Queues the line of a call that has ended. Never blocks. Lines of requests that linetender refused give way to those of
    /// calls: a gap says how many have none. With [`SyncPolicy::Call`], wait for the receipt before the agent
    /// has its answer.
    pub fn write(&self, mut record: Record) -> Option<Receipt> {
        let (tell, told) = oneshot::channel();
        // It is spelt by the thread that writes it: calls do not wait for that.
        record.shorten();
        let bytes = record.weight();
        let is_awaited = matches!(self.sync, SyncPolicy::Call);
        if record.verdict == Verdict::NotExecuted && record.attempts == 0 {
            // Nothing was sent: its caller need not wait until that is on disk.
            if self.shared.enter_refusal(bytes) {
                self.queue_up(Order::Write { record: Box::new(record), told: None }, bytes);
            }
            return None;
        }
        if self.shared.enter(bytes) {
            let tell = is_awaited.then_some(tell);
            self.queue_up(Order::Write { record: Box::new(record), told: tell }, bytes);
        }
        is_awaited.then_some(Receipt { told, timeout: self.timeout, on_error: self.on_error })
    }

    fn queue_up(&self, line: Order, bytes: usize) {
        if self.queue.try_send(line).is_err() {
            self.shared.leave(1, bytes);
            self.shared.miss();
        }
    }

    /// Waits until everything before is on disk, at most so long; `false` if it is not.
    pub async fn flush(&self, limit: Duration) -> bool {
        let (tell, told) = oneshot::channel();
        self.queue.try_send(Order::Flush(tell)).is_ok()
            && matches!(tokio::time::timeout(limit, told).await, Ok(Ok(true)))
    }

    /// The last line that is on disk.
    pub fn head(&self) -> Head {
        self.shared.head().clone()
    }
}

/// Says when a line is on disk: `receipt.await`.
#[derive(Debug)]
#[must_use = "the agent has its answer after the line is on disk"]
pub struct Receipt {
    told: oneshot::Receiver<Told>,
    timeout: Duration,
    on_error: OnError,
}

/// A call was executed, and its line is not on disk. The text is for whoever reads the agent's error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotWritten(String);

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotWritten {}

impl Receipt {
    /// The number of the line; none if it is missing and calls go on without.
    async fn written(self) -> Result<Option<u64>, NotWritten> {
        let why = match tokio::time::timeout(self.timeout, self.told).await {
            Ok(Ok(Ok(seq))) => return Ok(Some(seq)),
            Ok(Ok(Err(why))) => why,
            Ok(Err(_)) => "there was no room in the queue, or its writer has ended".to_owned(),
            Err(_) => format!("it was not on disk after {} ms", self.timeout.as_millis()),
        };
        match self.on_error {
            OnError::Refuse => Err(NotWritten(format!("the call has no line in the audit file: {why}"))),
            OnError::Continue => Ok(None),
        }
    }
}

impl IntoFuture for Receipt {
    type Output = Result<Option<u64>, NotWritten>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.written())
    }
}

#[cfg(test)]
mod tests;
