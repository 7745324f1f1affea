//! What a generation keeps in memory for agents: its identity, and how it ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use linetender_core::{ContextId, Leaf, Plan};
use linetender_wire::Exit;
use linetender_wire::wall::wall_clock;

use crate::status::Why;
use crate::status::signs::Signs;

/// The longest time from the only answer of a one-shot server to its exit.
const ONE_SHOT: Duration = Duration::from_secs(1);

/// A process, or a session with an id.
#[derive(Debug)]
pub(crate) struct ServerContext {
    pub(crate) id: ContextId,
    end: OnceLock<End>,
}

#[derive(Debug)]
struct End {
    at: SystemTime,
    cause: String,
    /// True if the server ends after every call.
    is_one_shot: bool,
}

impl ServerContext {
    pub(super) fn new() -> Self {
        // Lines that replace each other have agents in common.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = ContextId::new(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        Self { id, end: OnceLock::new() }
    }

    pub(crate) fn ends(&self, why: &Why, signs: &Signs) {
        let is_one_shot = why.exit == Some(Exit::Status(0))
            && (!why.planned || why.leaves.contains(&Leaf::Planned(Plan::Finished)))
            && signs.callers_answered() == 1
            && signs.since_answer() < ONE_SHOT;
        let _ = self.end.set(End { at: wall_clock(), cause: why.text.clone(), is_one_shot });
    }

    /// True if it ended as a server does that exits after every call. Such a server keeps nothing in memory.
    pub(crate) fn is_one_shot(&self) -> bool {
        self.end.get().is_some_and(|end| end.is_one_shot)
    }

    /// When and why it ended.
    pub(crate) fn end(&self) -> (SystemTime, String) {
        match self.end.get() {
            Some(end) => (end.at, end.cause.clone()),
            // A call can come to the next context before the end of this one is known.
            None => (wall_clock(), "a new connection took its place".to_owned()),
        }
    }
}
