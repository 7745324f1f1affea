//! A writer that nobody waits for: one thread writes, and a bounded queue stands before it.
//!
//! Whoever reads our stderr may be gone, may never read, or may have a full disk. None of that may reach the tasks that
//! run lines: a message that does not fit is dropped and counted, and the count is written once writing works again.
//! The descriptor's flags stay as they are, since other processes share it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linetender_holder::trusted;

#[cfg(unix)]
use unix::Sink;
#[cfg(windows)]
use windows::Sink;

/// The most bytes that wait to be written. As many again may be with the thread.
const QUEUED: usize = 1 << 20;

/// Where the bytes go.
pub(crate) enum Target {
    Stderr,
    File(File),
    /// A FIFO that nobody reads yet: opening it waits for a reader, so the thread does it.
    Fifo(PathBuf),
}

/// The way to the thread. Cheap to clone; writing to it never blocks and never fails.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// There is something to write.
    filled: Condvar,
    /// Everything was written, or could not be.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    messages: Vec<Vec<u8>>,
    bytes: usize,
    /// Messages that found no room since the thread last looked.
    dropped: u64,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Writing,
    /// There is no thread: the system had none to give.
    Dead,
}

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(target: Target) -> Self {
        let shared =
            Arc::new(Shared { queue: Mutex::default(), filled: Condvar::new(), done: Condvar::new() });
        let writer = Self(Arc::clone(&shared));
        let work = move || shared.write_to(target);
        if std::thread::Builder::new().name("log".into()).spawn(work).is_err() {
            writer.0.queue().state = State::Dead;
        }
        writer
    }

    /// Hands over one message, whole lines of text.
    pub(crate) fn push(&self, message: &[u8]) {
        let mut queue = self.0.queue();
        if queue.bytes + message.len() > QUEUED || matches!(queue.state, State::Dead) {
            queue.dropped += 1;
        } else {
            queue.bytes += message.len();
            queue.messages.push(message.to_vec());
        }
        self.0.filled.notify_one();
    }

    /// Waits until everything was written, but not longer than this.
    pub(crate) fn flush(&self, limit: Duration) {
        let under_way = |queue: &mut Queue| match queue.state {
            State::Idle => !queue.messages.is_empty() || queue.dropped > 0,
            State::Writing => true,
            State::Dead => false,
        };
        drop(self.0.done.wait_timeout_while(self.0.queue(), limit, under_way));
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn write_to(&self, target: Target) {
        let file = match target {
            Target::Stderr => None,
            Target::File(file) => Some(file),
            Target::Fifo(path) => match trusted::fifo(&path) {
                Ok(file) => Some(file),
                Err(_) => return self.queue().state = State::Dead,
            },
        };
        let to = Sink::new(file);
        let mut lost = 0;
        loop {
            let (messages, dropped) = self.next();
            lost = tell(&to, lost);
            for message in messages {
                lost += u64::from(to.write_all(&message).is_err());
            }
            // They came after what was just written.
            if dropped > 0 {
                lost = tell(&to, lost + dropped);
            }
        }
    }

    /// Waits for the next messages; how many were dropped after them.
    fn next(&self) -> (Vec<Vec<u8>>, u64) {
        let mut queue = self.queue();
        queue.state = State::Idle;
        self.done.notify_all();
        let is_empty = |queue: &mut Queue| queue.messages.is_empty() && queue.dropped == 0;
        let mut queue = self.filled.wait_while(queue, is_empty).unwrap_or_else(PoisonError::into_inner);
        queue.state = State::Writing;
        queue.bytes = 0;
        (mem::take(&mut queue.messages), mem::take(&mut queue.dropped))
    }
}

/// Says how many messages were lost; how many are still untold.
fn tell(to: &Sink, lost: u64) -> u64 {
    if lost == 0 {
        return 0;
    }
    let notice = format!("linetender: {lost} log messages dropped: writing the log failed or was too slow\n");
    if to.write_all(notice.as_bytes()).is_ok() { 0 } else { lost }
}

#[cfg(all(test, unix))]
mod tests;
