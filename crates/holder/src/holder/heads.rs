//! The head of an audit, in the journal: a chain cannot see that its own tail was cut off.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::Inner;
use crate::audit::{Audit, Head};
use crate::journal::What;

/// How often a head is kept.
const EACH: Duration = Duration::from_secs(60);

/// Keeps the heads of one audit.
#[derive(Debug)]
pub(super) struct Heads {
    audit: Audit,
    /// The number of the line that was kept last.
    kept: Arc<Mutex<u64>>,
    /// It ends with this.
    keeper: JoinSet<()>,
}

impl Heads {
    pub(super) fn keep(audit: Audit, holder: Weak<Inner>) -> Self {
        let kept = Arc::<Mutex<u64>>::default();
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(audit.clone(), Arc::clone(&kept), holder));
        Self { audit, kept, keeper }
    }

    /// Keeps the last one, when everything is on disk or the time is over.
    pub(super) async fn end(mut self, limit: Duration, holder: &Inner) {
        self.keeper.shutdown().await;
        self.audit.flush(limit).await;
        write(&self.audit, &self.kept, holder);
    }
}

async fn keep(audit: Audit, kept: Arc<Mutex<u64>>, holder: Weak<Inner>) {
    while let Some(holder) = holder.upgrade() {
        write(&audit, &kept, &holder);
        drop(holder);
        tokio::time::sleep(EACH).await;
    }
}

/// Writes the head, unless it is still the same.
fn write(audit: &Audit, kept: &Mutex<u64>, holder: &Inner) {
    let Head { file, seq, hash, at } = audit.head();
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if *kept != seq {
        *kept = seq;
        let _ = holder.write(What::AuditHead { file, seq, hash, synced: at });
    }
}

#[cfg(test)]
mod tests {
    use super::EACH;
    use crate::audit::{Audit, Record, Settings, verify};
    use crate::journal::{Journal, What, heads_of, last};
    use crate::{Holder, audit::Damage};
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn the_head_is_in_the_journal_each_minute_and_at_the_end() {
        let folder = std::env::temp_dir().join(format!("linetender-heads-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (file, path) = (folder.join("audit.jsonl"), folder.join("journal.jsonl"));
        let journal = Journal::open(&path).unwrap();
        let holder = Holder::new("serve", None, Some(journal.clone()));
        let audit = Audit::open(&Settings::new(&file)).unwrap();
        holder.keep_head_of(audit.clone());
        let seqs = || -> Vec<u64> {
            let is_head = |what: &What| match what {
                What::AuditHead { seq, .. } => Some(*seq),
                _ => None,
            };
            let all = last(&path, 100, |_| true).unwrap();
            all.entries.iter().filter_map(|(_, entry)| is_head(&entry.what)).collect()
        };
        let write = async || audit.write(Record::default()).unwrap().await.unwrap();
        tokio::task::yield_now().await;
        write().await;
        assert!(journal.flush(SOON).await);
        assert_eq!(seqs(), [2]);
        // Idle minutes leave no entries.
        for _ in 0..3 {
            tokio::time::pause();
            tokio::time::sleep(EACH + Duration::from_secs(1)).await;
            tokio::time::resume();
        }
        assert!(journal.flush(SOON).await);
        assert_eq!(seqs(), [2, 3]);
        write().await;
        write().await;
        holder.end("over", SOON).await;
        assert_eq!(seqs(), [2, 3, 5]);
        // What was cut off is known.
        let heads = heads_of(&path, &audit.head().file).unwrap();
        assert!(verify(&file, Some(&heads)).unwrap().bad.is_none());
        drop(audit);
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        std::fs::write(&file, lines[..4].concat()).unwrap();
        assert!(verify(&file, None).unwrap().bad.is_none());
        assert_eq!(verify(&file, Some(&heads)).unwrap().bad.unwrap().damage, Damage::CutTail);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
