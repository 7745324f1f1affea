//! A directory in memory, for one process: what holds for a fleet holds for one gateway too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linetender_core::lease::{Entry, Revision};
use tokio::sync::mpsc;

use crate::directory::{Changed, Directory, Later, Recalled, There};

/// Changes that wait for whoever watches. One that does not read them begins anew.
const WAITING: usize = 1024;

/// The directory. Cheap to clone.
#[derive(Clone, Default)]
pub struct Local(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    last: u64,
    lines: BTreeMap<String, (Revision, Entry)>,
    watchers: Vec<mpsc::Sender<Changed>>,
    /// Whoever notes calls says which are to be forgotten, and so how many there are.
    calls: BTreeMap<String, (Revision, Vec<u8>)>,
}

impl Local {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Directory for Local {
    fn look<'a>(&'a self, line: &'a str) -> Later<'a, There> {
        Box::pin(std::future::ready(Ok(self.inner().lines.get(line).copied())))
    }

    fn put<'a>(
        &'a self,
        line: &'a str,
        expected: Option<Revision>,
        entry: Entry,
    ) -> Later<'a, Option<Revision>> {
        let mut inner = self.inner();
        let there = inner.lines.get(line).map(|(revision, _)| *revision);
        let revision = (there == expected).then(|| {
            inner.last += 1;
            Revision(inner.last)
        });
        if let Some(revision) = revision {
            inner.lines.insert(line.to_owned(), (revision, entry));
            let changed = Changed { line: line.to_owned(), there: Some((revision, entry)) };
            inner.watchers.retain(|watcher| watcher.try_send(changed.clone()).is_ok());
        }
        Box::pin(std::future::ready(Ok(revision)))
    }

    fn watch(&self) -> Later<'_, mpsc::Receiver<Changed>> {
        let (tell, changes) = mpsc::channel(WAITING);
        self.inner().watchers.push(tell);
        Box::pin(std::future::ready(Ok(changes)))
    }

    fn recall<'a>(&'a self, call: &'a str) -> Later<'a, Recalled> {
        Box::pin(std::future::ready(Ok(self.inner().calls.get(call).cloned())))
    }

    fn note<'a>(
        &'a self,
        call: &'a str,
        expected: Option<Revision>,
        note: &'a [u8],
    ) -> Later<'a, Option<Revision>> {
        let mut inner = self.inner();
        let there = inner.calls.get(call).map(|(revision, _)| *revision);
        let revision = (there == expected).then(|| {
            inner.last += 1;
            Revision(inner.last)
        });
        if let Some(revision) = revision {
            inner.calls.insert(call.to_owned(), (revision, note.to_owned()));
        }
        Box::pin(std::future::ready(Ok(revision)))
    }

    fn is_memory(&self) -> bool {
        true
    }

    fn forget(&self, call: &str, noted: Revision) {
        let mut inner = self.inner();
        if inner.calls.get(call).is_some_and(|(revision, _)| *revision == noted) {
            inner.calls.remove(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Local;
    use crate::directory::Directory as _;
    use linetender_core::lease::{Entry, Held};
    use std::time::Duration;

    const FREE: Entry = Entry { held: Held::Free, lease: Duration::ZERO, written: 0 };

    #[tokio::test]
    async fn only_what_was_expected_is_replaced() {
        let local = Local::default();
        let mut changes = local.watch().await.unwrap();
        let first = local.put("a", None, FREE).await.unwrap().unwrap();
        assert_eq!(local.put("a", None, FREE).await.unwrap(), None);
        let second = local.put("a", Some(first), FREE).await.unwrap().unwrap();
        assert_eq!(local.put("a", Some(first), FREE).await.unwrap(), None);
        assert_eq!(local.look("a").await.unwrap(), Some((second, FREE)));
        assert_eq!(local.look("b").await.unwrap(), None);
        assert_eq!(changes.recv().await.unwrap().there, Some((first, FREE)));
        assert_eq!(changes.recv().await.unwrap().there, Some((second, FREE)));
        assert!(changes.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_call_begins_once() {
        let local = Local::default();
        assert_eq!(local.recall("call").await.unwrap(), None);
        let begun = local.note("call", None, b"runs").await.unwrap().unwrap();
        assert_eq!(local.note("call", None, b"again").await.unwrap(), None);
        assert_eq!(local.recall("call").await.unwrap(), Some((begun, b"runs".to_vec())));
        let done = local.note("call", Some(begun), b"done").await.unwrap().unwrap();
        assert_eq!(local.note("call", Some(begun), b"late").await.unwrap(), None);
        assert_eq!(local.recall("call").await.unwrap(), Some((done, b"done".to_vec())));
        local.forget("call", begun);
        assert!(local.recall("call").await.unwrap().is_some(), "that was replaced");
        local.forget("call", done);
        assert_eq!(local.recall("call").await.unwrap(), None);
        assert!(local.note("call", None, b"anew").await.unwrap().is_some_and(|anew| anew > done));
    }
}
