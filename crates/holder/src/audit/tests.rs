mod damage;
mod trouble;

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{
    Arguments, Audit, Damage, OnError, Record, Rotation, Settings, SyncPolicy, Verdict, Verified, verify,
};

const SOON: Duration = Duration::from_secs(20);

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("linetender-audit-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    fn settings(&self) -> Settings {
        Settings::new(self.file())
    }

    fn verify(&self) -> Verified {
        verify(&self.file(), None).unwrap()
    }

    /// An audit with so many calls, closed.
    async fn with_calls(count: u64) -> Self {
        let folder = Self::new();
        let audit = Audit::open(&folder.settings()).unwrap();
        write(&audit, 1..=count).await;
        folder.close(audit).await;
        folder
    }

    /// Waits until the lock is gone: the thread ends behind the last clone.
    async fn close(&self, audit: Audit) {
        assert!(audit.flush(SOON).await);
        drop(audit);
        until(|| !self.verify().is_open).await;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn record(call: u64) -> Record {
    Record {
        at: Record::now(),
        call,
        door: "http".into(),
        principal: Some("token:ci".into()),
        server: "git".into(),
        generation: Some(2),
        era: "legacy".into(),
        method: "tools/call".into(),
        tool: Some("git_log".into()),
        arguments: Arguments::hash(b"{}"),
        verdict: Verdict::Answered,
        ..Record::default()
    }
}

async fn write(audit: &Audit, calls: impl Iterator<Item = u64>) {
    for call in calls {
        let receipt = audit.write(record(call)).expect("it syncs every call");
        assert!(matches!(receipt.await, Ok(Some(_))));
    }
}

async fn until(mut so: impl FnMut() -> bool) {
    let waiting = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.expect("in vain");
}

#[tokio::test]
async fn an_audit_is_this_users_alone_and_verifies() {
    let folder = Folder::with_calls(20).await;
    #[cfg(unix)]
    {
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.file()), mode(&folder.0)), (0o600, 0o700));
    }
    let found = folder.verify();
    assert!(found.bad.is_none(), "{found:?}");
    // The beginning of the file and of the process, and the calls.
    assert_eq!((found.lines, found.calls, found.first, found.last), (22, 20, Some(1), Some(22)));
}

#[tokio::test]
async fn the_chain_goes_on_over_a_restart_and_over_files() {
    let folder = Folder::new();
    let rotation = Rotation { bytes: 4000, kept: 3 };
    let settings = Settings { rotation, ..folder.settings() };
    for _ in 0..3 {
        let audit = Audit::open(&settings).unwrap();
        write(&audit, 1..=10).await;
        folder.close(audit).await;
    }
    let all = folder.verify();
    assert!(all.bad.is_none() && all.first == Some(1) && all.files.len() > 2, "{all:?}");
    let audit = Audit::open(&settings).unwrap();
    write(&audit, 1..=30).await;
    let later = folder.verify();
    assert!(later.bad.is_none() && later.is_open, "{later:?}");
    assert!(later.first > Some(1) && later.files.len() == 4, "the oldest are gone: {later:?}");
    let head = audit.head();
    assert_eq!((Some(head.seq), Some(head.hash)), (later.last, later.hash));
}

#[tokio::test]
async fn a_file_that_was_put_away_a_moment_before_a_crash_is_continued() {
    let folder = Folder::with_calls(3).await;
    fs::rename(folder.file(), folder.0.join("audit.1.jsonl")).unwrap();
    drop(Audit::open(&folder.settings()).unwrap());
    let found = folder.verify();
    assert!(found.bad.is_none(), "{found:?}");
    assert_eq!((found.first, found.last), (Some(1), Some(7)));
}

#[tokio::test]
async fn a_second_process_is_refused_and_may_write_when_the_first_is_gone() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    let refused = Audit::open(&folder.settings()).unwrap_err().to_string();
    assert!(refused.contains("is written by another linetender process"), "{refused}");
    folder.close(audit).await;
    Audit::open(&folder.settings()).unwrap();
}

#[tokio::test]
async fn many_calls_share_a_sync_and_each_has_its_own_line() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    let receipts: Vec<_> = (0..500).map(|call| audit.write(record(call)).unwrap()).collect();
    let mut last = 2;
    for receipt in receipts {
        let seq = receipt.await.unwrap().unwrap();
        assert_eq!(seq, last + 1);
        last = seq;
    }
    assert_eq!(audit.head().seq, last);
}

#[tokio::test]
async fn with_an_interval_nobody_waits_and_the_head_follows() {
    let folder = Folder::new();
    let sync = SyncPolicy::Interval(Duration::from_millis(20));
    let audit = Audit::open(&Settings { sync, ..folder.settings() }).unwrap();
    assert!(audit.write(record(1)).is_none());
    until(|| audit.head().seq == 3).await;
    assert_eq!(folder.verify().calls, 1);
}

#[tokio::test]
async fn a_torn_line_is_closed_by_a_line_that_says_so() {
    let folder = Folder::with_calls(3).await;
    let mut text = fs::read(folder.file()).unwrap();
    let torn = br#"{"v":1,"seq":6,"prev":"12"#;
    text.extend_from_slice(torn);
    fs::write(folder.file(), &text).unwrap();
    let found = folder.verify();
    let bad = found.bad.unwrap();
    assert_eq!((bad.damage, bad.line, found.calls), (Damage::TornEnd, 6, 3), "{}", bad.what);
    let audit = Audit::open(&folder.settings()).unwrap();
    write(&audit, 1..=2).await;
    let found = folder.verify();
    assert!(found.bad.is_none(), "{found:?}");
    assert_eq!((found.torn, found.calls), (1, 5));
    // The beginning of the line is covered by the chain too.
    let at = text.len() - 3;
    let mut text = fs::read(folder.file()).unwrap();
    text[at] ^= 1;
    fs::write(folder.file(), text).unwrap();
    assert_eq!(folder.verify().bad.unwrap().damage, Damage::Foreign);
}

#[tokio::test]
async fn a_line_without_its_line_break_is_kept() {
    let folder = Folder::with_calls(3).await;
    let text = fs::read(folder.file()).unwrap();
    fs::write(folder.file(), &text[..text.len() - 1]).unwrap();
    assert_eq!(folder.verify().bad.unwrap().damage, Damage::TornEnd);
    drop(Audit::open(&folder.settings()).unwrap());
    let found = folder.verify();
    assert!(found.bad.is_none(), "{found:?}");
    assert_eq!((found.torn, found.calls), (0, 3));
}

#[cfg(unix)]
#[test]
fn another_file_is_not_written_to() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(folder.file(), "my notes\n").unwrap();
    let refused = Audit::open(&folder.settings()).unwrap_err().to_string();
    assert!(refused.contains("does not end with a line of an audit"), "{refused}");
    fs::remove_file(folder.file()).unwrap();
    std::os::unix::fs::symlink("/dev/null", folder.file()).unwrap();
    let refused = Audit::open(&folder.settings()).unwrap_err().to_string();
    assert!(refused.contains("is a symbolic link"), "{refused}");
    assert!(Audit::open(&Settings::new("audit.jsonl")).is_err(), "a relative path");
}

#[tokio::test]
async fn a_receipt_is_not_waited_for_longer_than_its_time() {
    let folder = Folder::new();
    let timeout = Duration::ZERO;
    for on_error in [OnError::Refuse, OnError::Continue] {
        let audit = Audit::open(&Settings { on_error, timeout, ..folder.settings() }).unwrap();
        let told = audit.write(record(1)).unwrap().await;
        match on_error {
            // The disk may have been faster.
            OnError::Refuse => assert!(told.is_ok() || told.unwrap_err().to_string().contains("after 0 ms")),
            OnError::Continue => assert!(told.is_ok()),
        }
        folder.close(audit).await;
    }
}
