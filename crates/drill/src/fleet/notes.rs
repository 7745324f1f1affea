//! What agents write down together: every call and what came of it, and what must not be.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use linetender_badserver::{Asked, Failure, History};

/// The most findings of agents that are kept: one is enough to fail, and a broken run has thousands.
const FINDINGS: usize = 40;

/// The notes of a run.
pub(super) struct Notes {
    start: Instant,
    pages: Mutex<Pages>,
}

/// What is in them.
#[derive(Default)]
pub(super) struct Pages {
    /// By server.
    pub(super) histories: Vec<History>,
    pub(super) findings: Vec<String>,
    /// When a call ended without an answer of a gateway's, and how.
    pub(super) broken: Vec<(Duration, String)>,
    /// When a legacy agent was told that its session is not known.
    pub(super) forgotten: Vec<Duration>,
    /// When a stateless probe was answered, and how long that took.
    pub(super) probes: Vec<(Duration, Duration)>,
    /// How long a server takes to start by itself, on this machine at that time.
    pub(super) starts: Vec<Duration>,
    pub(super) sessions: u64,
    /// Stateless probes that were not answered.
    pub(super) probes_failed: u64,
}

impl Notes {
    #[expect(clippy::disallowed_methods, reason = "histories have times")]
    pub(super) fn new(servers: usize) -> Self {
        let pages = Pages { histories: vec![History::default(); servers], ..Pages::default() };
        Self { start: Instant::now(), pages: Mutex::new(pages) }
    }

    /// The time in this run.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
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

    /// A call is made; when.
    pub(super) fn asks(&self, server: usize, nonce: &str) -> Duration {
        let at = self.now();
        let asked = Asked { at, safe: false, told: None };
        self.pages().histories[server].calls.insert(nonce.to_owned(), asked);
        at
    }

    /// A call was told something.
    pub(super) fn told(&self, server: usize, nonce: &str, told: Result<(), Failure>) {
        let at = self.now();
        if let Some(asked) = self.pages().histories[server].calls.get_mut(nonce) {
            asked.told = Some((at, told));
        }
    }

    /// A call failed without one of our errors.
    pub(super) fn fails(&self, server: usize, nonce: &str, cause: &str, delivery: &str) {
        let nothing = || "-".to_owned();
        let (cause, delivery) = (cause.to_owned(), delivery.to_owned());
        let failure = Failure { server: nothing(), phase: nothing(), cause, delivery, next_try: nothing() };
        self.told(server, nonce, Err(failure));
    }

    /// A call ended with its connection, or with a word of the balancer's: nobody said whether it ran.
    pub(super) fn broke(&self, server: usize, nonce: &str, how: &str) {
        self.fails(server, nonce, how, "unknown");
        let at = self.now();
        self.pages().broken.push((at, how.to_owned()));
    }
}
