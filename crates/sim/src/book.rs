//! What the servers of a world really did, call by call: the truth that verdicts are held against.

use std::collections::BTreeMap;
use std::time::Duration;

/// What happened to one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deed {
    /// When it was run.
    pub(crate) runs: Vec<Duration>,
    /// When its whole answer had been accepted by the pipe or the connection, and when the process that gave it began.
    pub(crate) answered: Option<(Duration, Duration)>,
    /// When it was first refused because its session was gone.
    pub(crate) refused: Option<Duration>,
}

/// Deeds by nonce, and what must never be, seen where it happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) deeds: BTreeMap<String, Deed>,
    pub(crate) wrongs: Vec<String>,
}

impl Book {
    pub(crate) fn run(&mut self, nonce: &str, at: Duration) {
        self.deeds.entry(nonce.to_owned()).or_default().runs.push(at);
    }

    pub(crate) fn answered(&mut self, nonce: &str, at: Duration, began: Duration) {
        self.deeds.entry(nonce.to_owned()).or_default().answered.get_or_insert((at, began));
    }

    pub(crate) fn refused(&mut self, nonce: &str, at: Duration) {
        self.deeds.entry(nonce.to_owned()).or_default().refused.get_or_insert(at);
    }

    /// How often a call was run.
    pub(crate) fn runs(&self, nonce: &str) -> u32 {
        self.deeds.get(nonce).map_or(0, |deed| u32::try_from(deed.runs.len()).unwrap_or(u32::MAX))
    }
}
