//! S01–S03, S16: servers that do not start, take their time, or die as soon as they have started.

use std::time::Duration;

use linetender::Era;

use crate::agent::LINETENDER;
use crate::kit::{Door, in_both_eras};
use crate::look::{Dir, eventually, kill};
use crate::told::assert_full;

/// Starts the badserver once a file is there; before that it fails, and counts how often.
const UNTIL_FIXED: &str =
    r#"echo start >> starts; [ -e fixed ] || { echo "no API key" >&2; exit 3; }; exec "$@""#;

fn starts(door: &Door) -> usize {
    std::fs::read_to_string(door.dir.file("starts")).unwrap_or_default().lines().count()
}

fn fix(door: &Door) {
    std::fs::write(door.dir.file("fixed"), "").unwrap();
}

/// Seconds until the next try, if it is said to be in seconds.
fn seconds(next_try: &str) -> u32 {
    next_try.trim_start_matches("in ").split('.').next().unwrap().parse().unwrap_or(0)
}

#[test]
fn s01_a_command_that_is_not_there_is_named_with_the_path_and_wakes_by_use_once_it_is_there() {
    in_both_eras(|era| {
        let dir = Dir::new();
        let command = dir.file("late-server");
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let mut door = Door::open(era, &["--", "late-server"], &[("PATH", &path)], dir);
        let failure = assert_full(&door.greet());
        assert!(
            failure.cause.contains("late-server") && failure.cause.contains("PATH searched"),
            "{failure}"
        );
        assert!(failure.not_executed(), "{failure}");
        assert!((200..=300).contains(&seconds(&failure.next_try)), "{failure}");
        let failure = door.fails("too-early", "write", serde_json::json!({}));
        assert!(failure.not_executed() && door.took("too-early") < Duration::from_secs(1), "{failure}");
        let book = door.book.path().display();
        let era = crate::kit::word(door.era);
        let script = format!("#!/bin/sh\nexec '{LINETENDER}' __badserver --era {era} --book '{book}'\n");
        std::fs::write(&command, script).unwrap();
        crate::look::allow(&command);
        door.works_again();
        door.greets();
        door.closes();
    });
}

#[test]
fn s02_an_exit_before_the_first_reply_is_told_with_status_and_stderr() {
    in_both_eras(|era| {
        let mut door = Door::script(era, UNTIL_FIXED, &[]);
        let answer = door.greet();
        let failure = assert_full(&answer);
        assert!(failure.cause.contains("exited with status 3"), "{failure}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("no API key"), "{answer}");
        fix(&door);
        door.works_again();
        door.greets();
        door.closes();
    });
}

#[test]
fn s03_a_slow_first_start_is_waited_for_and_not_started_twice() {
    in_both_eras(|era| {
        let mut door = Door::script(era, "echo start >> starts; exec \"$@\"", &["--start-delay-ms", "1500"]);
        door.greets();
        door.works();
        assert_eq!(starts(&door), 1);
        door.closes();
    });
}

#[test]
fn s16_a_crash_loop_is_parked_refuses_at_once_with_the_last_stderr_and_wakes_by_use() {
    let mut door = Door::set(Era::Legacy, &["--stateless"], UNTIL_FIXED, &[]);
    // It has answered once: what never did is started seldom (S58).
    fix(&door);
    door.greets();
    door.works();
    std::fs::remove_file(door.dir.file("fixed")).unwrap();
    kill("-9", door.server());
    let mut call = 0;
    let parked = eventually("a parked line", || {
        call += 1;
        let answer = door.call(&format!("c{call}"), "write", serde_json::json!({}));
        assert!(assert_full(&answer).not_executed(), "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        text.contains("the server is down; last error:").then_some(text)
    });
    assert!(parked.contains("no API key") && parked.contains("exited with status 3"), "{parked}");
    let before = starts(&door);
    assert!((6..=8).contains(&before), "{before} starts: one that served, and a budget of five");
    for call in 0..20 {
        let nonce = format!("refused-{call}");
        assert!(door.fails(&nonce, "write", serde_json::json!({})).not_executed());
        assert!(door.took(&nonce) < Duration::from_secs(2), "{:?}", door.took(&nonce));
    }
    assert!(starts(&door) <= before + 1, "it is not hammered");
    fix(&door);
    door.works_again();
    door.closes();
}
