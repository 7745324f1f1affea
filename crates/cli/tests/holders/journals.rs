//! What is written down.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::kit::{Home, Shim, until};

fn of(journal: &[Value], holder: u32) -> Vec<&Value> {
    journal.iter().filter(|entry| entry["holder"] == holder).collect()
}

/// `state#generation` of each entry that has one, `begin` and `end`.
fn story(entries: &[&Value]) -> Vec<String> {
    let word = |entry: &&Value| match entry["what"].as_str().unwrap() {
        "state" => format!("{}#{}", entry["state"].as_str().unwrap(), entry["generation"]),
        other => other.to_owned(),
    };
    entries.iter().map(word).collect()
}

#[test]
fn a_killed_server_is_written_down_with_its_signal_and_what_it_cost() {
    let home = Home::new();
    let mut shim = home.shim(&[], &["--stderr", "about to work"]);
    shim.kill_server();
    let pid = shim.pid();
    shim.leave();
    let journal = home.journal();
    let entries = of(&journal, pid);
    let story = story(&entries);
    assert_eq!(story.first().map(String::as_str), Some("begin"), "{story:?}");
    assert_eq!(story.last().map(String::as_str), Some("end"), "{story:?}");
    assert_eq!(story[story.len() - 2], "closed#2");
    let places = ["dialing#1", "up#1", "ending#1", "dialing#2", "up#2"].map(|place| {
        story.iter().position(|word| word == place).unwrap_or_else(|| panic!("{place}: {story:?}"))
    });
    assert!(places.is_sorted(), "{story:?}");
    let ending = entries[places[2]];
    assert!(ending["cause"]["text"].as_str().unwrap().contains("SIGKILL"), "{ending}");
    assert_eq!(ending["cause"]["leaves"], json!(["exit"]));
    assert!(ending["cause"]["stderr"].as_str().unwrap().contains("about to work"), "{ending}");
    assert!((4000..5000).contains(&ending["budget_millis"].as_u64().unwrap()), "{ending}");
    assert!(ending["next_try"].is_string(), "{ending}");
    assert_eq!(ending["door"], "run");
    assert_eq!(ending["server"], "bad");
    assert_eq!(entries.last().unwrap()["why"], "the agent disconnected");
}

#[test]
fn shims_that_write_and_put_away_one_journal_at_once_lose_and_tear_nothing() {
    let home = Home::new();
    let mut shims: Vec<_> =
        (0..6).map(|_| Shim::start(home.linetender(&[]), &["--journal-size", "10k"], &[])).collect();
    shims = shims.into_iter().map(Shim::greeted).collect();
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for shim in &mut shims {
                scope.spawn(|| shim.kill_server());
            }
        });
    }
    let pids: Vec<_> = shims.iter().map(Shim::pid).collect();
    std::thread::scope(|scope| {
        for shim in shims {
            scope.spawn(|| shim.leave());
        }
    });
    let journal = home.journal();
    for pid in pids {
        let entries = of(&journal, pid);
        let story = story(&entries);
        let count = |word: &str| story.iter().filter(|said| *said == word).count();
        for word in
            ["begin", "up#1", "ending#1", "up#2", "ending#2", "up#3", "ending#3", "up#4", "closed#4", "end"]
        {
            assert_eq!(count(word), 1, "{word}: {story:?}");
        }
    }
    assert!(journal.iter().all(|entry| entry["what"] != "gap"), "{journal:?}");
    assert!(home.state().join("journal.1.jsonl").exists(), "it was put away");
}

#[test]
fn a_full_disk_is_said_once_and_hurts_nobody() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    shim.kill_server();
    // No file may grow, for a while.
    let pid = Pid::from_raw(i32::try_from(shim.pid()).unwrap());
    let limit = |current| {
        let before = prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None });
        before.unwrap().current
    };
    let before = limit(Some(0));
    shim.kill_server();
    limit(before);
    shim.kill_server();
    let said = shim.leave();
    assert_eq!(said.matches("cannot write the journal").count(), 1, "{said}");
    assert!(said.contains("File too large"), "{said}");
    let journal = home.journal();
    let gap = journal.iter().find(|entry| entry["what"] == "gap").unwrap();
    assert!(gap["entries"].as_u64().unwrap() >= 2, "{gap}");
    assert_eq!(journal.last().unwrap()["what"], "end");
}

#[test]
fn a_place_that_cannot_be_written_hurts_nobody() {
    let home = Home::new();
    // A file where the folder should be.
    std::fs::write(home.path().join(".local"), "").unwrap();
    let mut shim = home.shim(&[], &[]);
    shim.kill_server();
    let said = shim.leave();
    assert_eq!(said.matches("cannot write the journal").count(), 1, "{said}");
    assert_eq!(said.matches("will not list this process").count(), 1, "{said}");
}

#[test]
fn one_that_is_told_to_stop_still_writes_its_end() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    shim.signal("-TERM");
    assert_eq!(shim.process.wait().unwrap().code(), Some(128 + 15));
    let journal = home.journal();
    let end = journal.last().unwrap();
    assert_eq!((&end["what"], &end["why"]), (&json!("end"), &json!("stopped by a signal")));
}

#[test]
fn who_wants_no_journal_has_none() {
    let home = Home::new();
    let mut shim = home.shim(&["--no-journal"], &[]);
    shim.kill_server();
    shim.leave();
    assert!(!home.state().join("journal.jsonl").exists());
    let output = home.run(&["journal"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("The journal is empty."));
}

#[test]
fn the_journal_reads_as_a_story_and_can_be_asked_for_one_server() {
    let home = Home::new();
    let mut shim = home.shim(&[], &["--stderr", "with sk-1234567890abcdefghij"]);
    shim.kill_server();
    shim.leave();
    let read = |words: &[&str]| String::from_utf8(home.run(words).stdout).unwrap();
    let whole = read(&["journal"]);
    assert!(whole.contains("bad #1 ending: ") && whole.contains("SIGKILL"), "{whole}");
    assert!(whole.contains("(stderr: with [redacted])"), "{whole}");
    assert!(whole.contains("started (") && whole.contains("exited: the agent disconnected"), "{whole}");
    assert!(!whole.contains("sk-1234567890abcdefghij"), "{whole}");
    assert!(read(&["journal", "--server", "bad", "--last", "2"]).lines().count() == 2);
    assert!(read(&["journal", "--server", "good"]).starts_with("No entries for server good"));
}

#[test]
fn a_shim_that_is_killed_leaves_what_it_had_written() {
    let home = Home::new();
    let mut shim = home.shim(&[], &[]);
    shim.kill_server();
    let pid = shim.pid();
    until("its second generation is written down", || {
        story(&of(&home.journal(), pid)).contains(&"up#2".to_owned())
    });
    shim.process.kill().unwrap();
    shim.process.wait().unwrap();
    assert!(!story(&of(&home.journal(), pid)).contains(&"end".to_owned()));
}
