//! A node of a fleet: the lines that it has or may have, and the one task that hears of changes for all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linetender_core::lease::{Lease, Node, Terms};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::directory::Directory;
use crate::ownership::{Asked, Clock, Ownership};

/// Between two tries to hear of changes.
const AGAIN: Duration = Duration::from_millis(500);

type Lines = Arc<Mutex<BTreeMap<String, mpsc::Sender<Asked>>>>;

/// A node. Dropped, it hears of nothing any more; its lines look for themselves.
pub struct Fleet {
    node: Node,
    terms: Terms,
    directory: Arc<dyn Directory>,
    clock: Clock,
    lines: Lines,
    _hears: JoinSet<()>,
}

impl Fleet {
    /// Joins. `node` is never used again, by nobody.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn join(node: Node, terms: Terms, directory: Arc<dyn Directory>, clock: Clock) -> Self {
        let lines = Lines::default();
        let mut hears = JoinSet::new();
        hears.spawn(hear(Arc::clone(&directory), Arc::clone(&lines)));
        Self { node, terms, directory, clock, lines, _hears: hears }
    }

    /// A line that others may know too.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn line(&self, name: &str) -> Ownership {
        self.follow(name, Lease::new(self.node, self.terms))
    }

    /// A line whose name was made up here, and was never anywhere else: it can be had at once.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn minted(&self, name: &str) -> Ownership {
        self.follow(name, Lease::minted(self.node, self.terms))
    }

    fn follow(&self, name: &str, lease: Lease) -> Ownership {
        let line = Ownership::follow(name, lease, Arc::clone(&self.directory), Arc::clone(&self.clock));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.insert(name.to_owned(), line.teller());
        line
    }
}

/// Passes changes on for ever. What is missed while there is no news, each line finds when it looks by itself.
async fn hear(directory: Arc<dyn Directory>, lines: Lines) {
    loop {
        match directory.watch().await {
            Err(away) => tracing::debug!(%away, "no news of the fleet"),
            Ok(mut changes) => {
                // What changed before is told by nobody.
                for line in lines.lock().unwrap_or_else(PoisonError::into_inner).values() {
                    let _ = line.try_send(Asked::Missed);
                }
                while let Some(changed) = changes.recv().await {
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(line) = lines.get(&changed.line) else { continue };
                    if line.is_closed() {
                        lines.remove(&changed.line);
                    } else {
                        let _ = line.try_send(Asked::Saw(changed.there));
                    }
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}
