//! What the servers of a world really did, call by call: the truth that verdicts are held against.

use std::collections::BTreeMap;
use std::time::Duration;

use linetender_badserver::Attempt;

/// What happened to one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deed {
    /// When it was run.
    pub(crate) runs: Vec<Duration>,
    /// Where each run was: the number of a process or of a session, a later one being higher. `None` where nothing is kept in memory.
    pub(crate) contexts: Vec<Option<u64>>,
    /// Each time that it reached a server.
    pub(crate) attempts: Vec<Attempt>,
    /// When its whole answer had been accepted by the pipe or the connection, and when the process that gave it began.
    pub(crate) answered: Option<(Duration, Duration)>,
    /// When it was first refused because its session was gone.
    pub(crate) session_gone: Option<Duration>,
    /// The session on which its last attempt was refused, if the refusal reads as if the session were gone.
    doubted: Option<String>,
}

/// Deeds by nonce, and what must never be, seen where it happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) deeds: BTreeMap<String, Deed>,
    pub(crate) wrongs: Vec<String>,
}

impl Book {
    fn deed(&mut self, nonce: &str) -> &mut Deed {
        self.deeds.entry(nonce.to_owned()).or_default()
    }

    /// A call reached a server. `knows` says whether a session lives.
    pub(crate) fn read(&mut self, nonce: &str, knows: impl FnOnce(&str) -> bool) {
        let deed = self.deed(nonce);
        if let (Some(session), Some(last)) = (deed.doubted.take(), deed.attempts.last_mut()) {
            last.refused = (!knows(&session)).then(|| "session-lost".to_owned());
        }
        deed.attempts.push(Attempt::default());
    }

    pub(crate) fn run(&mut self, nonce: &str, at: Duration, context: Option<u64>) {
        let deed = self.deed(nonce);
        deed.runs.push(at);
        deed.contexts.push(context);
        if let Some(last) = deed.attempts.last_mut() {
            last.runs += 1;
        }
    }

    pub(crate) fn answered(&mut self, nonce: &str, at: Duration, began: Duration) {
        self.deed(nonce).answered.get_or_insert((at, began));
    }

    /// A server refused a call, for a reason that `retry_on` names: with that it promises that it did not run it.
    pub(crate) fn refused(&mut self, nonce: &str, reason: &str) {
        if let Some(last) = self.deed(nonce).attempts.last_mut() {
            last.refused = Some(reason.to_owned());
        }
    }

    /// A server refused a call as if its session were gone.
    pub(crate) fn doubted(&mut self, nonce: &str, session: &str) {
        self.deed(nonce).doubted = Some(session.to_owned());
    }

    /// The session of a call was gone when it was refused.
    pub(crate) fn session_gone(&mut self, nonce: &str, at: Duration) {
        self.deed(nonce).session_gone.get_or_insert(at);
    }
}
