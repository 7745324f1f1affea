//! Looking at every process, once a second, beside the keys: a process that does not answer makes nobody wait.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use linetender_holder::holder::{Ask, Found, Reply, UnderWayReport, ask_holder, look};
use linetender_holder::journal::Entry;
use linetender_holder::processes::Tree;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::model::Detail;
use super::row::Key;

/// What a process may take for what is asked beyond its report.
const PATIENCE: Duration = Duration::from_secs(1);

/// What one look has found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) found: Vec<Found>,
    /// Processes of local servers, by the linetender process that has them.
    pub(super) trees: BTreeMap<u32, Vec<Tree>>,
    pub(super) detail: Option<Detail>,
    /// Folders and sockets that are not trusted.
    pub(super) ignored: usize,
}

/// Looks at all of them, and closer at one.
pub(super) async fn look_at(folders: Vec<PathBuf>, closer: Option<Key>) -> Looked {
    let mut looked = Looked::default();
    looked.found = look(&folders, |_, _| looked.ignored += 1).await;
    let mut asking = JoinSet::new();
    // One that did not answer is not asked more.
    for found in looked.found.iter().filter(|found| matches!(found.reply, Reply::Report(_))) {
        let (folders, pid) = (folders.clone(), found.pid);
        asking.spawn(async move { (pid, asked::<Vec<Tree>>(&folders, pid, Ask::Processes).await) });
    }
    let answers = closer.as_ref().map(|key| {
        looked.found.iter().any(|found| found.pid == key.pid && matches!(found.reply, Reply::Report(_)))
    });
    if let (Some(key), Some(true)) = (closer, answers)
        && let Some(server) = key.server.clone()
    {
        let entries = Ask::Entries { server: server.clone() };
        let (calls, entries) = tokio::join!(
            asked::<Vec<UnderWayReport>>(&folders, key.pid, Ask::Calls),
            asked::<Vec<Entry>>(&folders, key.pid, entries),
        );
        let mut calls = calls.unwrap_or_default();
        calls.retain(|call| call.server == server);
        looked.detail = Some(Detail { key, calls, entries: entries.unwrap_or_default() });
    }
    while let Some(answer) = asking.join_next().await {
        if let Ok((pid, Some(trees))) = answer {
            looked.trees.insert(pid, trees);
        }
    }
    looked
}

async fn asked<A: DeserializeOwned>(folders: &[PathBuf], pid: u32, ask: Ask) -> Option<A> {
    tokio::time::timeout(PATIENCE, ask_holder(folders, pid, &ask)).await.ok()?.ok()
}
