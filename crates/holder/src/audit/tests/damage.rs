//! Every kind of damage is found, and called what it is.

use std::fs;

use proptest::prelude::*;

use super::{Audit, Folder, write};
use crate::audit::{Damage, Head, Verified, verify};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An audit whose lines can be changed: 2 and ten calls.
fn audit() -> (Folder, Vec<String>) {
    let folder = runtime().block_on(Folder::with_calls(10));
    let lines = fs::read_to_string(folder.file()).unwrap().lines().map(str::to_owned).collect();
    (folder, lines)
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

fn write_lines(folder: &Folder, lines: &[String]) {
    fs::write(folder.file(), text(lines)).unwrap();
}

fn damage(found: &Verified) -> Option<(Damage, u64)> {
    found.bad.as_ref().map(|bad| (bad.damage, bad.line))
}

fn head_of(folder: &Folder) -> Head {
    let found = folder.verify();
    let file = folder.file().to_string_lossy().into_owned();
    Head { file, seq: found.last.unwrap(), hash: found.hash.unwrap(), at: "then".into() }
}

#[test]
fn an_edited_line_is_named() {
    let (folder, mut lines) = audit();
    lines[4] = lines[4].replace("token:ci", "token:me");
    write_lines(&folder, &lines);
    let found = folder.verify();
    assert_eq!(damage(&found), Some((Damage::Edited, 5)), "{found:?}");
    assert!(found.bad.unwrap().what.contains("next line has another hash of it"));
    assert_eq!((found.lines, found.calls, found.last), (4, 2, Some(4)));
}

#[test]
fn a_line_whose_own_hash_or_number_was_edited_is_named() {
    let (folder, lines) = audit();
    let mut edited = lines.clone();
    edited[6] = edited[6].replacen("\"seq\":7", "\"seq\":9", 1);
    write_lines(&folder, &edited);
    assert_eq!(damage(&folder.verify()), Some((Damage::Edited, 7)));
    let mut edited = lines.clone();
    let at = edited[6].find("\"prev\":\"").unwrap() + 8;
    let digit = if &edited[6][at..=at] == "0" { "1" } else { "0" };
    edited[6].replace_range(at..=at, digit);
    write_lines(&folder, &edited);
    assert_eq!(damage(&folder.verify()), Some((Damage::Edited, 7)));
}

#[test]
fn missing_moved_copied_and_foreign_lines_are_told_apart() {
    let (folder, lines) = audit();
    let mut missing = lines.clone();
    missing.drain(5..8);
    write_lines(&folder, &missing);
    let found = folder.verify();
    assert_eq!(damage(&found), Some((Damage::Missing, 6)));
    assert!(found.bad.unwrap().what.contains("3 lines are missing before it (6 to 8)"));
    let mut moved = lines.clone();
    moved.swap(4, 8);
    write_lines(&folder, &moved);
    assert_eq!(damage(&folder.verify()), Some((Damage::Reordered, 5)));
    let mut copied = lines.clone();
    copied.insert(7, lines[3].clone());
    write_lines(&folder, &copied);
    assert_eq!(damage(&folder.verify()), Some((Damage::Reordered, 8)));
    let mut foreign = lines.clone();
    foreign.insert(7, "hello".into());
    write_lines(&folder, &foreign);
    assert_eq!(damage(&folder.verify()), Some((Damage::Foreign, 8)));
    let mut newer = lines.clone();
    newer[9] = newer[9].replacen("\"v\":1", "\"v\":2", 1);
    write_lines(&folder, &newer);
    assert_eq!(damage(&folder.verify()), Some((Damage::Newer, 10)));
    write_lines(&folder, &lines[1..]);
    assert_eq!(damage(&folder.verify()), Some((Damage::Missing, 1)), "its beginning was cut off");
    write_lines(&folder, &lines);
    assert_eq!(damage(&folder.verify()), None);
}

#[test]
fn a_whole_file_that_is_missing_in_the_middle_is_found() {
    let (folder, lines) = audit();
    let put = |number: u32, lines: &[String]| {
        fs::write(folder.0.join(format!("audit.{number}.jsonl")), text(lines)).unwrap();
    };
    put(2, &lines[..4]);
    put(1, &lines[4..8]);
    write_lines(&folder, &lines[8..]);
    assert_eq!(damage(&folder.verify()), None);
    fs::remove_file(folder.0.join("audit.1.jsonl")).unwrap();
    let found = folder.verify();
    assert_eq!(damage(&found), Some((Damage::Missing, 1)));
    assert!(found.bad.unwrap().file.ends_with("audit.jsonl"));
}

#[test]
fn a_cut_tail_an_edited_end_and_another_file_are_found_by_the_head() {
    let (folder, lines) = audit();
    let head = head_of(&folder);
    let with_head = || verify(&folder.file(), Some(std::slice::from_ref(&head))).unwrap();
    assert_eq!((damage(&with_head()), with_head().heads.unwrap().same), (None, 1));
    write_lines(&folder, &lines[..9]);
    assert_eq!(damage(&folder.verify()), None, "the chain alone does not see it");
    let found = with_head();
    assert_eq!(damage(&found), Some((Damage::CutTail, 9)));
    assert!(found.bad.unwrap().what.contains("at least 3 lines were cut off"));
    // Somebody goes on as if nothing had happened.
    runtime().block_on(async {
        let audit = Audit::open(&folder.settings()).unwrap();
        write(&audit, 1..=20).await;
        folder.close(audit).await;
    });
    assert_eq!(damage(&folder.verify()), None);
    assert_eq!(damage(&with_head()), Some((Damage::Replaced, 12)));
    let mut edited = lines.clone();
    edited[11] = edited[11].replace("token:ci", "token:me");
    write_lines(&folder, &edited);
    assert_eq!(damage(&folder.verify()), None, "no line comes behind the last");
    assert_eq!(damage(&with_head()), Some((Damage::Replaced, 12)));
    // It was removed, and another begun.
    fs::remove_file(folder.file()).unwrap();
    drop(Audit::open(&folder.settings()).unwrap());
    assert_eq!(damage(&with_head()), Some((Damage::CutTail, 2)));
}

#[test]
fn heads_of_files_that_rotation_removed_are_passed_over() {
    let (folder, lines) = audit();
    let mut old = head_of(&folder);
    let newest = old.clone();
    (old.seq, old.hash) = (1, "gone".into());
    let mut later = lines[3..].to_vec();
    later[0] = later[0].replace("\"what\":\"call\"", "\"what\":\"file\"");
    write_lines(&folder, &later[..1]);
    let found = verify(&folder.file(), Some(&[old.clone()])).unwrap();
    assert_eq!((damage(&found), found.heads.unwrap().older), (None, 1), "{found:?}");
    assert_eq!(found.first, Some(4));
    assert_eq!(damage(&verify(&folder.file(), Some(&[old, newest])).unwrap()), Some((Damage::CutTail, 1)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A byte before the last line cannot be changed unseen, and none at all if the head is known.
    #[test]
    fn any_changed_byte_is_found(at in any::<prop::sample::Index>(), change in 1_u8..=255) {
        with_shared(|folder, text, head| {
            let at = at.index(text.len());
            let mut changed = text.to_vec();
            changed[at] ^= change;
            fs::write(folder.file(), &changed).unwrap();
            let last_line = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
            let found = verify(&folder.file(), None).unwrap();
            assert!(found.bad.is_some() || at > last_line, "byte {at} ^ {change}: {found:?}");
            let found = verify(&folder.file(), Some(std::slice::from_ref(head))).unwrap();
            assert!(found.bad.is_some(), "byte {at} ^ {change}: {found:?}");
        });
    }

    /// Neither can two lines change places, nor bytes or lines in the middle go.
    #[test]
    fn anything_moved_or_cut_out_is_found(
        one in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        of_lines in any::<bool>(),
        moves in any::<bool>(),
    ) {
        with_shared(|folder, text, _| {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let count = lines.len();
            if of_lines {
                let (one, other) = (one.index(count), other.index(count));
                let (first, last) = (one.min(other), one.max(other));
                if moves && first != last {
                    lines.swap(first, last);
                } else if first < last {
                    lines.drain(first..last);
                } else {
                    return;
                }
                fs::write(folder.file(), lines.concat()).unwrap();
            } else {
                let last_line = text.len() - lines[count - 1].len();
                let (one, other) = (one.index(last_line), other.index(last_line));
                let (first, last) = (one.min(other), one.max(other));
                if first == last {
                    return;
                }
                fs::write(folder.file(), [&text[..first], &text[last..]].concat()).unwrap();
            }
            let found = verify(&folder.file(), None).unwrap();
            assert!(found.bad.is_some(), "{found:?}");
        });
    }

    /// A tail cannot be cut off unseen if the head is known.
    #[test]
    fn any_cut_tail_is_found(at in any::<prop::sample::Index>()) {
        with_shared(|folder, text, head| {
            fs::write(folder.file(), &text[..at.index(text.len())]).unwrap();
            let found = verify(&folder.file(), Some(std::slice::from_ref(head))).unwrap();
            assert_eq!(found.bad.unwrap().damage, Damage::CutTail);
        });
    }
}

/// The same audit for all cases of a thread.
fn with_shared(test: impl FnOnce(&Folder, &[u8], &Head)) {
    thread_local! {
        static AUDIT: (Folder, Vec<u8>, Head) = {
            let (folder, _) = audit();
            let (text, head) = (fs::read(folder.file()).unwrap(), head_of(&folder));
            (folder, text, head)
        };
    }
    AUDIT.with(|(folder, text, head)| test(folder, text, head));
}
