use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::{Entry, Journal, Rotation, What, in_order, last};

const SOON: Duration = Duration::from_secs(20);

/// A folder of the test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linetender-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn journal(&self) -> PathBuf {
        self.0.join("state/journal.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An entry that can be told from every other.
fn entry(holder: u32, number: u64) -> Entry {
    Entry::now(holder, "run", What::Gap { entries: number, why: "a test counts".into() })
}

fn numbers(journal: &std::path::Path, holder: u32) -> Vec<u64> {
    let read = last(journal, usize::MAX, |entry| entry.holder == holder).unwrap();
    let number = |entry: &Entry| match &entry.what {
        What::Gap { entries, .. } => *entries,
        other => panic!("{other:?}"),
    };
    read.entries.iter().map(|(_, entry)| number(entry)).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_written_is_this_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("modes");
    let journal = Journal::open(folder.journal()).unwrap();
    journal.write(entry(1, 1));
    assert!(journal.flush(SOON).await);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.journal()), 0o600);
    assert_eq!(mode(folder.journal().parent().unwrap()), 0o700);
}

/// Eight writers, each with a file and a thread of its own, as if they were processes: a lock and an appended line do not
/// know the difference.
#[cfg_attr(
    windows,
    ignore = "under wine two who append at the same time overwrite each other: of 80,000 lines from four threads of a C program 11,000 were lost"
)]
#[tokio::test]
async fn many_that_write_and_put_away_at_once_lose_and_tear_nothing() {
    let folder = Folder::new("many");
    let rotation = Rotation { bytes: 16 * 1024, kept: 60, most: 1 << 20 };
    let each = 500;
    let journals: Vec<_> =
        (0..8).map(|_| Journal::with_rotation(folder.journal(), rotation).unwrap()).collect();
    for number in 0..each {
        for (holder, journal) in (0..).zip(&journals) {
            journal.write(entry(holder, number));
        }
        // The queue takes no more than it can hold.
        if number % 100 == 99 {
            for journal in &journals {
                assert!(journal.flush(SOON).await);
            }
        }
    }
    for holder in 0..8 {
        let found = numbers(&folder.journal(), holder);
        let odd: Vec<_> = (0..).zip(&found).filter(|(number, found)| number != *found).take(5).collect();
        assert_eq!((found.len() as u64, odd), (each, Vec::new()), "holder {holder}");
    }
    assert_eq!(last(&folder.journal(), 1, |_| true).unwrap().unread, 0);
    assert!(folder.0.join("state/journal.10.jsonl").exists(), "it was put away often");
}

/// `Get-Content -Wait` opens it so.
#[cfg(windows)]
#[tokio::test]
async fn a_journal_that_somebody_holds_open_is_written_on_and_loses_no_old_file() {
    use std::os::windows::fs::OpenOptionsExt as _;
    let folder = Folder::new("read");
    let journal =
        Journal::with_rotation(folder.journal(), Rotation { bytes: 2000, kept: 2, most: 8000 }).unwrap();
    let write = async |numbers: std::ops::Range<u64>| {
        for number in numbers {
            journal.write(entry(1, number));
        }
        assert!(journal.flush(SOON).await);
    };
    // Until two files are full.
    let old = |number: u32| folder.journal().with_extension(format!("{number}.jsonl"));
    let mut written = 0;
    while !old(2).exists() {
        write(written..written + 1).await;
        written += 1;
    }
    let before = numbers(&folder.journal(), 1);
    let reader = fs::OpenOptions::new().read(true).share_mode(3).open(folder.journal()).unwrap();
    write(written..written + 20).await;
    let now = numbers(&folder.journal(), 1);
    drop(reader);
    assert_eq!(now[..before.len()], before, "nothing old is lost");
    assert_eq!(now.len(), before.len() + 20, "nothing new is lost");
    write(written + 20..written + 22).await;
    assert!(fs::metadata(folder.journal()).unwrap().len() < 2000, "it was put away");
}

#[tokio::test]
async fn only_so_many_files_are_kept() {
    let folder = Folder::new("kept");
    let journal =
        Journal::with_rotation(folder.journal(), Rotation { bytes: 200, kept: 2, most: 800 }).unwrap();
    for number in 0..50 {
        journal.write(entry(1, number));
    }
    assert!(journal.flush(SOON).await);
    let mut files: Vec<_> = fs::read_dir(folder.journal().parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["journal.1.jsonl", "journal.2.jsonl", "journal.jsonl", "journal.lock"]);
    let kept = numbers(&folder.journal(), 1);
    assert_eq!(kept.last(), Some(&49));
    assert!(kept.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{kept:?}");
}

#[tokio::test]
async fn a_holder_that_was_stopped_while_it_put_the_file_away_holds_up_nobody() {
    let folder = Folder::new("held");
    let journal =
        Journal::with_rotation(folder.journal(), Rotation { bytes: 500, kept: 4, most: 2000 }).unwrap();
    journal.write(entry(1, 0));
    assert!(journal.flush(SOON).await);
    let lock = fs::File::create(folder.journal().with_extension("lock")).unwrap();
    lock.lock().unwrap();
    for number in 1..30 {
        journal.write(entry(1, number));
    }
    assert!(journal.flush(SOON).await);
    let length = fs::metadata(folder.journal()).unwrap().len();
    assert!((1500..2500).contains(&length), "it grows meanwhile, and not for ever: {length}");
    drop(lock);
    journal.write(entry(1, 77));
    assert!(journal.flush(SOON).await);
    let after = numbers(&folder.journal(), 1);
    let (missed, written) = (after[after.len() - 2], after.len() as u64 - 2);
    assert_eq!((after.last(), missed + written), (Some(&77), 30), "what is missing is counted: {after:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn x12_a_journal_that_is_a_link_is_not_written_and_what_is_missing_is_counted() {
    let folder = Folder::new("link");
    fs::create_dir_all(folder.journal().parent().unwrap()).unwrap();
    let target = folder.0.join("target");
    fs::write(&target, "keep").unwrap();
    std::os::unix::fs::symlink(&target, folder.journal()).unwrap();
    let journal = Journal::open(folder.journal()).unwrap();
    for number in 0..5 {
        journal.write(entry(1, number));
    }
    assert!(journal.flush(SOON).await, "it goes on");
    fs::remove_file(folder.journal()).unwrap();
    journal.write(entry(1, 42));
    assert!(journal.flush(SOON).await);
    let read = last(&folder.journal(), 10, |_| true).unwrap();
    let What::Gap { entries: 5, why } = &read.entries[0].1.what else { panic!("{:?}", read.entries) };
    assert!(why.contains("is a symbolic link"), "{why}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "keep");
    assert_eq!(numbers(&folder.journal(), 1), [5, 42]);
}

#[tokio::test]
async fn a_line_that_a_full_disk_tore_spoils_only_itself() {
    let folder = Folder::new("torn");
    fs::create_dir_all(folder.journal().parent().unwrap()).unwrap();
    fs::write(folder.journal(), r#"{"v":1,"at":"20"#).unwrap();
    let journal = Journal::open(folder.journal()).unwrap();
    journal.write(entry(1, 1));
    journal.write(entry(1, 2));
    assert!(journal.flush(SOON).await);
    let read = last(&folder.journal(), 10, |_| true).unwrap();
    assert_eq!((read.entries.len(), read.unread), (2, 1));
}

#[tokio::test]
async fn an_entry_of_a_later_version_is_passed_over() {
    let folder = Folder::new("later");
    let journal = Journal::open(folder.journal()).unwrap();
    journal.write(entry(1, 1));
    assert!(journal.flush(SOON).await);
    let later = r#"{"v":1,"at":"x","holder":1,"door":"serve","what":"elected"}"#;
    let text = fs::read_to_string(folder.journal()).unwrap();
    fs::write(folder.journal(), format!("{later}\n{text}")).unwrap();
    let read = last(&folder.journal(), 10, |_| true).unwrap();
    assert_eq!((read.entries.len(), read.unread), (1, 1));
}

#[test]
fn a_clock_that_is_set_back_does_not_change_the_order_of_what_one_process_wrote() {
    let at = |holder: u32, number: u64, at: &str| {
        let mut entry = entry(holder, number);
        entry.at = format!("2026-11-17T{at}:00.000Z");
        (holder, entry)
    };
    // The clock of 1 is set back by an hour after its second entry.
    let written =
        [at(1, 1, "10:00"), at(1, 2, "10:10"), at(1, 3, "09:20"), at(2, 4, "09:30"), at(2, 5, "10:05")];
    let numbers: Vec<_> = in_order(written)
        .iter()
        .map(|entry| match &entry.what {
            What::Gap { entries, .. } => *entries,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, [4, 1, 5, 2, 3]);
}
