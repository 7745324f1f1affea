//! Several agents on one line: each hears what is its own.

use crate::soak;

/// A few seconds of it; `drill soak agents 60` is the same for longer.
#[test]
fn fifty_agents_on_one_line_never_hear_what_is_anothers() {
    let done = soak(&["agents", "4"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// A few faults; `drill soak shared 10000` is the same for longer.
#[test]
fn agents_on_a_shared_server_are_told_the_truth_whatever_happens_to_server_and_keeper() {
    let done = soak(&["shared", "24"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}
