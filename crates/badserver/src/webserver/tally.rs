//! What a server saw, so that a test can tell one dial from a storm.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::time::Instant;

/// Times of connections that are kept; later ones are only counted.
const ATTEMPTS_KEPT: usize = 100_000;
/// Requests that are kept.
const SEEN_KEPT: usize = 1_000;

/// Counts over a server's life.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that are open now.
    pub open: usize,
    /// The most connections that were open at once.
    pub most_open: usize,
    /// The most requests that were being served at once, up to their headers.
    pub most_requests: usize,
    /// POST requests.
    pub posts: u64,
    /// GET requests.
    pub gets: u64,
    /// DELETE requests.
    pub deletes: u64,
    /// `initialize` requests.
    pub initializes: u64,
    /// `server/discover` requests.
    pub discovers: u64,
    /// `subscriptions/listen` requests.
    pub listens: u64,
    /// `tools/call` requests.
    pub calls: u64,
    /// Requests refused for their credentials.
    pub refused: u64,
    /// When each connection was accepted, since the server started.
    pub attempts: Vec<Duration>,
    requests: usize,
}

/// One request, as far as a test may care.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// The HTTP method.
    pub verb: String,
    /// The path.
    pub path: String,
    /// The JSON-RPC method, if there was one.
    pub method: Option<String>,
    /// The JSON-RPC id as text, if there was one.
    pub id: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
}

/// The keeper of the counts.
#[derive(Debug)]
pub(super) struct Tally {
    start: Instant,
    counters: Mutex<Counters>,
    seen: Mutex<VecDeque<Seen>>,
}

/// Counts something as open until it is dropped.
pub(super) struct Counted<'a>(&'a Tally, fn(&mut Counters));

impl Counters {
    /// The most connections accepted within any window of this length.
    pub fn busiest(&self, window: Duration) -> usize {
        let mut from = 0;
        let mut most = 0;
        for (to, at) in self.attempts.iter().enumerate() {
            while self.attempts[from] + window <= *at {
                from += 1;
            }
            most = most.max(to - from + 1);
        }
        most
    }
}

impl Seen {
    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self { start: Instant::now(), counters: Mutex::default(), seen: Mutex::default() }
    }
}

impl Tally {
    pub(super) fn counters(&self) -> Counters {
        self.lock().clone()
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn connection(&self) -> Counted<'_> {
        let at = self.start.elapsed();
        let mut counters = self.lock();
        counters.connections += 1;
        counters.open += 1;
        counters.most_open = counters.most_open.max(counters.open);
        if counters.attempts.len() < ATTEMPTS_KEPT {
            counters.attempts.push(at);
        }
        Counted(self, |counters| counters.open -= 1)
    }

    pub(super) fn request(&self, verb: &Method) -> Counted<'_> {
        let mut counters = self.lock();
        match *verb {
            Method::POST => counters.posts += 1,
            Method::GET => counters.gets += 1,
            Method::DELETE => counters.deletes += 1,
            _ => {}
        }
        counters.requests += 1;
        counters.most_requests = counters.most_requests.max(counters.requests);
        Counted(self, |counters| counters.requests -= 1)
    }

    pub(super) fn refused(&self) {
        self.lock().refused += 1;
    }

    pub(super) fn saw(&self, verb: &Method, path: &str, headers: &HeaderMap, message: &Value) {
        let method = message["method"].as_str().map(str::to_owned);
        let mut counters = self.lock();
        match method.as_deref() {
            Some("initialize") => counters.initializes += 1,
            Some("server/discover") => counters.discovers += 1,
            Some("subscriptions/listen") => counters.listens += 1,
            Some("tools/call") => counters.calls += 1,
            _ => {}
        }
        drop(counters);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() == SEEN_KEPT {
            seen.pop_front();
        }
        seen.push_back(Seen {
            verb: verb.to_string(),
            path: path.to_owned(),
            method,
            id: message.get("id").map(Value::to_string),
            headers: headers.clone(),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        (self.1)(&mut self.0.lock());
    }
}
