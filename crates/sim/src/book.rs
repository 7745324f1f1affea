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

    /// How often each was run.
    pub(crate) fn runs(&self) -> std::collections::HashMap<String, u32> {
        let count = |deed: &Deed| u32::try_from(deed.runs.len()).unwrap_or(u32::MAX);
        self.deeds.iter().map(|(nonce, deed)| (nonce.clone(), count(deed))).collect()
    }
}
