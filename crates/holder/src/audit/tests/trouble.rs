//! What happens when it cannot be written.

use std::fs;

use super::{Folder, SOON, record, until, write};
use crate::audit::{Audit, OnError, Queue, Record, Settings, SyncPolicy, Verdict};

fn gaps(folder: &Folder) -> (u64, u64) {
    let found = folder.verify();
    assert!(found.bad.is_none(), "{found:?}");
    (found.gaps, found.missed)
}

#[tokio::test]
async fn a_removed_file_refuses_calls_until_it_is_put_back() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    write(&audit, 1..=2).await;
    assert_eq!(audit.check(), Ok(()));
    let aside = folder.0.join("aside");
    fs::rename(folder.file(), &aside).unwrap();
    let failed = audit.write(record(3)).unwrap().await.unwrap_err().to_string();
    assert!(failed.contains("it was removed, moved or emptied"), "{failed}");
    let refused = audit.check().unwrap_err();
    assert!(refused.contains("To fix it: put the file back, or restart linetender"), "{refused}");
    fs::rename(&aside, folder.file()).unwrap();
    until(|| audit.check().is_ok()).await;
    write(&audit, 4..=5).await;
    assert_eq!((gaps(&folder), folder.verify().calls), ((1, 1), 4));
}

#[cfg_attr(windows, ignore = "under wine a file that is removed while it is open keeps its name")]
#[tokio::test]
async fn a_removed_file_is_seen_before_the_next_call() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    fs::remove_file(folder.file()).unwrap();
    until(|| audit.check().is_err()).await;
}

#[cfg_attr(windows, ignore = "under wine a file that is removed while it is open keeps its name")]
#[tokio::test]
async fn calls_that_go_on_have_a_new_file_that_says_what_is_missing() {
    let folder = Folder::new();
    let settings = Settings { on_error: OnError::Continue, ..folder.settings() };
    let audit = Audit::open(&settings).unwrap();
    write(&audit, 1..=2).await;
    fs::remove_file(folder.file()).unwrap();
    assert_eq!(audit.write(record(3)).unwrap().await, Ok(None), "the agent has its answer");
    assert_eq!(audit.check(), Ok(()));
    until(|| folder.file().exists() && audit.head().seq > 4).await;
    write(&audit, 4..=5).await;
    let found = folder.verify();
    assert_eq!((found.first, found.calls, gaps(&folder)), (Some(5), 2, (1, 1)));
    let text = fs::read_to_string(folder.file()).unwrap();
    assert!(text.contains("writing failed behind line 4: it was removed"), "{text}");
}

#[cfg_attr(windows, ignore = "under wine a file that is removed while it is open keeps its name")]
#[tokio::test]
async fn another_file_in_its_place_is_not_written_to() {
    let folder = Folder::new();
    for on_error in [OnError::Refuse, OnError::Continue] {
        let audit = Audit::open(&Settings { on_error, ..folder.settings() }).unwrap();
        write(&audit, 1..=2).await;
        let ours = fs::read(folder.file()).unwrap();
        let another = folder.0.join("another");
        fs::write(&another, "another\n").unwrap();
        fs::rename(&another, folder.file()).unwrap();
        let told = audit.write(record(3)).unwrap().await;
        assert_eq!(
            (told.is_err(), audit.check().is_err()),
            match on_error {
                OnError::Refuse => (true, true),
                OnError::Continue => (false, false),
            }
        );
        assert_eq!(fs::read(folder.file()).unwrap(), b"another\n");
        // A copy that was put back is as good.
        fs::write(folder.file(), ours).unwrap();
        until(|| folder.verify().gaps > 0).await;
        write(&audit, 4..=5).await;
        folder.close(audit).await;
        gaps(&folder);
        fs::remove_file(folder.file()).unwrap();
    }
}

#[tokio::test]
async fn lines_that_somebody_else_adds_or_cuts_off_are_seen_at_once() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    write(&audit, 1..=2).await;
    let ours = fs::read(folder.file()).unwrap();
    fs::write(folder.file(), &ours[..ours.len() / 2]).unwrap();
    let failed = audit.write(record(3)).unwrap().await.unwrap_err().to_string();
    assert!(failed.contains("replaced or changed by another program"), "{failed}");
    assert!(audit.check().unwrap_err().contains("linetender audit verify"));
    assert!(!audit.flush(SOON).await);
    fs::write(folder.file(), &ours).unwrap();
    until(|| audit.check().is_ok()).await;
}

#[tokio::test]
async fn a_full_queue_is_counted_and_said_in_the_file() {
    let folder = Folder::new();
    let queue = Queue { entries: 4, bytes: 1 << 20 };
    let sync = SyncPolicy::Interval(SOON);
    let audit = Audit::open(&Settings { sync, queue, ..folder.settings() }).unwrap();
    for call in 0..2000 {
        assert!(audit.write(record(call)).is_none());
    }
    // It is not expected to keep up, and calls are refused until it has said so.
    until(|| audit.check().is_ok()).await;
    assert!(audit.flush(SOON).await);
    let found = folder.verify();
    assert!(found.missed > 0 && found.gaps > 0, "{found:?}");
    assert_eq!(found.calls + found.missed, 2000, "{found:?}");
}

#[tokio::test]
async fn refused_requests_take_no_place_from_calls_however_many_they_are() {
    let folder = Folder::new();
    let queue = Queue { entries: 64, bytes: 1 << 20 };
    let sync = SyncPolicy::Interval(SOON);
    let audit = Audit::open(&Settings { sync, queue, ..folder.settings() }).unwrap();
    for call in 0..20_000 {
        let refused = Record { verdict: Verdict::NotExecuted, attempts: 0, ..record(call) };
        assert!(audit.write(refused).is_none());
        // Nobody is refused for them, and nothing that ran is without a line.
        audit.check().unwrap();
        if call % 1000 == 0 {
            assert!(audit.write(record(call)).is_none());
        }
    }
    assert!(audit.flush(SOON).await);
    let found = folder.verify();
    assert_eq!(found.calls + found.missed, 20_020, "each has a line, or is counted: {found:?}");
    assert!(found.missed > 0, "{found:?}");
    let text = fs::read_to_string(folder.file()).unwrap();
    assert_eq!(text.matches(r#""verdict":"answered""#).count(), 20);
    assert!(text.contains("requests that linetender refused came faster"), "{found:?}");
}

#[tokio::test]
async fn a_queue_is_limited_by_bytes_too() {
    let folder = Folder::new();
    let queue = Queue { entries: 1000, bytes: 1 };
    let audit = Audit::open(&Settings { queue, ..folder.settings() }).unwrap();
    let failed = audit.write(record(1)).unwrap().await.unwrap_err().to_string();
    assert!(failed.contains("no room in the queue"), "{failed}");
    until(|| audit.check().is_ok()).await;
    assert_eq!(gaps(&folder), (1, 1));
}

#[cfg_attr(windows, ignore = "under wine a file that is removed while it is open keeps its name")]
#[tokio::test]
async fn a_file_that_was_put_away_without_a_next_one_is_followed_by_one() {
    let folder = Folder::new();
    let audit = Audit::open(&folder.settings()).unwrap();
    write(&audit, 1..=2).await;
    // As if the disk had been full when the next file was to be made.
    fs::rename(folder.file(), folder.0.join("audit.1.jsonl")).unwrap();
    assert!(audit.write(record(3)).unwrap().await.is_err());
    until(|| audit.check().is_ok()).await;
    write(&audit, 4..=5).await;
    let found = folder.verify();
    assert_eq!((found.first, found.calls, gaps(&folder)), (Some(1), 4, (1, 1)));
}

/// Whoever reads a file that others wrote does not break.
#[test]
fn numbers_at_their_limit_are_only_damage() {
    let folder = Folder::new();
    crate::trusted::folder(&folder.0).unwrap();
    let line = |seq: u64, prev: &str| format!(r#"{{"v":1,"seq":{seq},"prev":"{prev}","what":"file"}}"#);
    for (one, other) in [(u64::MAX, u64::MAX), (u64::MAX, 0), (0, 0), (0, u64::MAX), (5, 5)] {
        fs::write(folder.file(), format!("{}\n{}\n", line(one, "x"), line(other, "y"))).unwrap();
        assert!(folder.verify().bad.is_some(), "{one} {other}");
    }
}
