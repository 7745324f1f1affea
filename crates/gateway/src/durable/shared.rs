//! What the nodes of a fleet share, as far as calls are concerned.

use std::sync::Arc;

use linetender_fleet::{Directory, Local};

/// Where calls are noted, and which node this is.
#[derive(Clone)]
pub struct Shared {
    pub(super) directory: Arc<dyn Directory>,
    pub(super) node: u64,
    pub(super) lives: Arc<dyn Fn(u64) -> bool + Send + Sync>,
}

impl Shared {
    /// This node is one of several. `node` is the number of this process: no other process ever has it, not even the next one on this
    /// machine. `lives` says whether the process of another number may still run calls; it is asked now and then while somebody waits for
    /// one, and must not block.
    pub fn new(
        directory: Arc<dyn Directory>,
        node: u64,
        lives: impl Fn(u64) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { directory, node, lives: Arc::new(lives) }
    }

    /// This node is alone, and remembers calls in its own memory: a record of another process cannot be found.
    pub(crate) fn alone() -> Self {
        let node = number();
        Self::new(Arc::new(Local::default()), node, move |other| other == node)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("node", &self.node).finish_non_exhaustive()
    }
}

/// A number that nobody else has.
pub(super) fn number() -> u64 {
    let mut bytes = [0; 8];
    // Without chance it is the same for all. Then two runs are not told apart, which matters only where the directory failed.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
