//! What all parts of one world share: its habits, its book, its processes, its clock.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::book::Book;
use crate::habits::Habits;
use crate::process::Process;
use crate::rng::Rng;

/// The shared parts.
pub(crate) struct Scene {
    start: Instant,
    habits: Mutex<Habits>,
    book: Mutex<Book>,
    rng: Mutex<Rng>,
    processes: Mutex<Vec<Arc<Process>>>,
    pids: AtomicI32,
    trace: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scene {
    pub(crate) fn new(habits: Habits, rng: Rng, trace: bool) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            habits: Mutex::new(habits),
            book: Mutex::default(),
            rng: Mutex::new(rng),
            processes: Mutex::default(),
            pids: AtomicI32::new(100),
            trace,
        })
    }

    /// Since the world began.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn habits(&self) -> Habits {
        lock(&self.habits).clone()
    }

    /// Changes the habits of servers that are started from now on.
    #[cfg(test)]
    pub(crate) fn change(&self, change: impl FnOnce(&mut Habits)) {
        change(&mut lock(&self.habits));
    }

    pub(crate) fn heal(&self) {
        lock(&self.habits).heal();
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Choices for one more part.
    pub(crate) fn rng(&self) -> Rng {
        lock(&self.rng).fork()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pids.fetch_add(1, Ordering::Relaxed)
    }

    /// One more process of the server. Two trees of one line never live at once: they would hold the same port, lock, profile.
    pub(crate) fn enter(&self, process: &Arc<Process>) {
        let mut processes = lock(&self.processes);
        if let Some(old) = processes.iter().find(|old| old.lives()) {
            let wrong = format!("process {} was started while {} lives", process.pid, old.pid);
            self.book().wrongs.push(wrong);
        }
        processes.push(Arc::clone(process));
    }

    /// The newest process.
    pub(crate) fn process(&self) -> Option<Arc<Process>> {
        lock(&self.processes).last().cloned()
    }

    /// How many processes were started, and how many live.
    pub(crate) fn census(&self) -> (usize, usize) {
        let processes = lock(&self.processes);
        (processes.len(), processes.iter().filter(|process| process.lives()).count())
    }

    /// Tells a person who plays one world what happens in it.
    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>12.3?} {}", self.now(), what());
        }
    }
}
