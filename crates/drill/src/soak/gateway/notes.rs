//! What all agents write down together: every call and what it was told, what must not be, and how long things took.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linetender_badserver::{Asked, Failure, History};

/// The most findings that are kept: one is enough to fail, and a broken run has thousands.
const FINDINGS: usize = 20;

/// The notes of a run.
pub(super) struct Notes {
    start: Instant,
    /// The window that is measured now; 0 is none.
    window: AtomicU32,
    pages: Mutex<Pages>,
}

/// What is in them.
#[derive(Default)]
pub(super) struct Pages {
    /// By server.
    pub(super) histories: Vec<History>,
    pub(super) findings: Vec<String>,
    /// Calls to servers that are never touched: in which window, and how many milliseconds.
    pub(super) samples: Vec<(u32, f64)>,
    pub(super) sessions: u64,
    pub(super) notifications: u64,
    /// Calls that were taken back, or whose agent hung up.
    pub(super) abandoned: u64,
}

impl Notes {
    #[expect(clippy::disallowed_methods, reason = "histories have times")]
    pub(super) fn new(servers: usize) -> Self {
        let pages = Pages { histories: vec![History::default(); servers], ..Pages::default() };
        Self { start: Instant::now(), window: AtomicU32::new(0), pages: Mutex::new(pages) }
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn finds(&self, what: String) {
        let mut pages = self.pages();
        if pages.findings.len() < FINDINGS {
            // Told at once: a long run may not live to tell it.
            eprintln!("BROKEN: {what}");
            pages.findings.push(what);
        }
    }

    /// A call is made; when, and in which window.
    pub(super) fn asks(&self, server: usize, nonce: &str) -> (Duration, u32) {
        let at = self.start.elapsed();
        let asked = Asked { at, safe: false, told: None };
        self.pages().histories[server].calls.insert(nonce.to_owned(), asked);
        (at, self.window.load(Ordering::Relaxed))
    }

    /// A call was told something; how long that took.
    pub(super) fn told(&self, server: usize, nonce: &str, told: Result<(), Failure>) -> Option<Duration> {
        let at = self.start.elapsed();
        let mut pages = self.pages();
        let asked = pages.histories[server].calls.get_mut(nonce)?;
        asked.told = Some((at, told));
        Some(at.saturating_sub(asked.at))
    }

    /// Nobody waits for this call any more; it must still not run twice.
    pub(super) fn abandons(&self, server: usize, nonce: &str) {
        let mut pages = self.pages();
        pages.abandoned += 1;
        pages.histories[server].calls.remove(nonce);
    }

    /// A measured call, if it began and ended in one window.
    pub(super) fn measures(&self, window: u32, took: Duration) {
        if window != 0 && window == self.window.load(Ordering::Relaxed) {
            self.pages().samples.push((window, took.as_secs_f64() * 1000.0));
        }
    }

    /// Another window begins; 0 is none.
    pub(super) fn turns_to(&self, window: u32) {
        self.window.store(window, Ordering::Relaxed);
    }
}
