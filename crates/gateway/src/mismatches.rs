//! Tells of filters and renames that do not fit what a server lists, each once.

use std::collections::HashSet;
use std::sync::Arc;

use linetender::Catalogue;
use linetender_wire::aside;
use tokio::sync::watch;

use crate::config::Entry;

/// Looks at each list of a server, for as long as there is one. What is remembered is bounded by the config.
pub(crate) async fn told(entry: Entry, mut catalogues: watch::Receiver<Arc<Catalogue>>) {
    let (entry, mut told) = (Arc::new(entry), HashSet::new());
    loop {
        let (of, catalogue) = (Arc::clone(&entry), Arc::clone(&catalogues.borrow_and_update()));
        // Servers decide how long their lists are.
        let found = aside(move || of.mismatches(&catalogue)).await.unwrap_or_default();
        for mismatch in found.iter().map(ToString::to_string) {
            if !told.contains(&mismatch) {
                tracing::warn!(server = entry.server.name(), problem = %mismatch, "config does not fit the server");
                told.insert(mismatch);
            }
        }
        if catalogues.changed().await.is_err() {
            return;
        }
    }
}
