//! `linetender audit verify`, as a person and a program see it.

#![allow(clippy::disallowed_methods, reason = "a test adopts no orphans")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use linetender_holder::Holder;
use linetender_holder::audit::{Audit, Record, Settings, Verdict};
use linetender_holder::journal::Journal;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

/// A home of the test's own, gone with it.
struct Home(PathBuf);

impl Home {
    /// With an audit of three calls, whose head is in the journal from its beginning and from its end.
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lt-audit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let home = Self(path);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let journal = Journal::open(home.0.join(".local/state/linetender/journal.jsonl")).unwrap();
            let holder = Holder::new("serve", None, Some(journal));
            let audit = Audit::open(&Settings::new(home.file())).unwrap();
            holder.keep_head_of(audit.clone());
            for call in 1..=3 {
                let (server, verdict) = ("git".to_owned(), Verdict::Answered);
                let record = Record { at: Record::now(), call, server, verdict, ..Record::default() };
                audit.write(record).unwrap().await.unwrap();
            }
            holder.end("the test is over", SOON).await;
        });
        // Whoever writes it is a thread, which ends a moment after the audit is dropped.
        fs::File::open(home.file().with_extension("lock")).unwrap().lock_shared().unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit/audit.jsonl")
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.file()).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_linetender"))
            .args(words)
            .env_clear()
            .env("HOME", &self.0)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The exit code, and what it says.
    fn verify(&self, flags: &[&str]) -> (i32, String) {
        let file = self.file().to_string_lossy().into_owned();
        said(&self.run(&[&["audit", "verify", &file], flags].concat()))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// The text without the place of this test.
fn plain(home: &Home, text: &str) -> String {
    text.replace(&fs::canonicalize(&home.0).unwrap().display().to_string(), "HOME")
}

#[test]
fn a_sound_audit_is_called_so() {
    let home = Home::new("sound");
    let (code, text) = home.verify(&[]);
    let expected = "HOME/audit/audit.jsonl: OK\n  \
        sound: lines number 1 to 5 in 1 file, 3 calls\n  \
        its end was not compared with the journal: linetender audit verify --head\n";
    assert_eq!((code, plain(&home, &text).as_str()), (0, expected));
    let (code, text) = home.verify(&["--head"]);
    assert!(code == 0 && text.ends_with("  same as 2 heads in the journal\n"), "{text}");
    let (_, text) = home.verify(&["--head", "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&document["version"], &document["ok"]), (&1.into(), &true.into()), "{text}");
    assert_eq!((&document["calls"], &document["heads"]["same"]), (&3.into(), &2.into()), "{text}");
}

#[test]
fn a_damaged_audit_is_called_so_with_the_place() {
    let home = Home::new("damaged");
    let lines = home.lines();
    let edited = lines[2].replace("\"git\"", "\"fit\"");
    fs::write(home.file(), [&lines[..2], &[edited], &lines[3..]].concat().concat()).unwrap();
    let (code, text) = home.verify(&[]);
    let expected = "HOME/audit/audit.jsonl: DAMAGED: line 3 was edited: the next line has another hash of it\n  \
        sound up to there: lines number 1 to 2 in 1 file, 0 calls\n";
    assert_eq!((code, plain(&home, &text).as_str()), (1, expected));
    // A tail that was cut off is seen only beside the journal.
    fs::write(home.file(), lines[..4].concat()).unwrap();
    assert_eq!(home.verify(&[]).0, 0);
    let (code, text) = home.verify(&["--head"]);
    assert!(code == 1 && text.contains("DAMAGED: line 4 is the last one, but at 2"), "{text}");
    assert!(text.contains("at least 1 lines were cut off"), "{text}");
    let (code, text) = home.verify(&["--head", "--json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &document["bad"]["damage"], &document["bad"]["line"]),
        (1, &"cut-tail".into(), &4.into())
    );
}

#[test]
fn what_cannot_be_said_is_not_called_sound() {
    let home = Home::new("unknown");
    let (code, text) = said(&home.run(&["audit", "verify", "nothing.jsonl"]));
    assert!(code == 2 && text.contains("there is no such file"), "{text}");
    let (code, text) = said(&home.run(&["audit", "verify"]));
    assert!(code == 2 && text.contains("or name the audit file"), "{text}");
    fs::remove_file(home.0.join(".local/state/linetender/journal.jsonl")).unwrap();
    let (code, text) = home.verify(&["--head"]);
    assert!(code == 2 && text.contains("not compared: this user's journal has no hash"), "{text}");
}

#[test]
fn the_file_is_found_by_way_of_the_config() {
    let home = Home::new("config");
    let config = |table: &str| {
        let text = format!("{table}\n[servers.a]\ncommand = \"x\"\n");
        fs::write(home.0.join("linetender.toml"), text).unwrap();
        said(&home.run(&["audit", "verify", "--head"]))
    };
    let (code, text) = config("[gateway.audit]\npath = \"${HOME}/audit/audit.jsonl\"");
    assert!(code == 0 && text.contains("same as 2 heads"), "{text}");
    let (code, text) = config("");
    assert!(code == 2 && text.contains("has no [gateway.audit]"), "{text}");
}

#[test]
fn the_journal_tells_of_the_head_in_words() {
    let home = Home::new("words");
    let (_, text) = said(&home.run(&["journal"]));
    let hash = sha256sum(&home.0, home.lines().last().unwrap());
    let file = fs::canonicalize(home.file()).unwrap();
    assert!(text.contains(&format!("audit {}: line 5 was on disk at 2", file.display())), "{text}");
    assert!(text.contains(&format!("(SHA-256 {hash})")), "{text}");
}

/// As a person without linetender would find out.
fn sha256sum(folder: &Path, line: &str) -> String {
    let file = folder.join("line");
    fs::write(&file, line).unwrap();
    let output = Command::new("sha256sum").arg(&file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}
