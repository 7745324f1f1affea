//! That the judge can be red, for each thing that it judges.

use std::path::PathBuf;
use std::time::Duration;

use linetender_badserver::{Asked, Book, History};

use super::Verdict;
use crate::fleet::house::Server;
use crate::fleet::mix::DECK;
use crate::fleet::notes::Pages;
use crate::fleet::saboteur::Strike;
use crate::fleet::watcher::Seen;

const SECOND: Duration = Duration::from_secs(1);

/// A server whose book says this.
struct Wrote(PathBuf);

impl Wrote {
    fn new(text: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("linetender-fleet-book-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn server(&self) -> Server {
        Server::new("stateful-0", true, Book::at(&self.0))
    }
}

impl Drop for Wrote {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Answered calls: when each was answered.
fn pages(answered: &[(&str, u32)]) -> Pages {
    let mut history = History::default();
    for (nonce, at) in answered {
        let at = *at * SECOND;
        history.calls.insert((*nonce).to_owned(), Asked { at, safe: false, told: Some((at, Ok(()))) });
    }
    // A probe was answered each half second, for ten minutes.
    let probes = (0..1200).map(|half| (half * SECOND / 2, SECOND)).collect();
    Pages { histories: vec![history], probes, ..Pages::default() }
}

/// A gateway that has the line with this process is killed after ten seconds; all is well after sixty.
fn killed(pid: i32) -> Strike {
    Strike {
        fault: DECK[0],
        whom: "gateway-a".to_owned(),
        at: 10 * SECOND,
        mended: 40 * SECOND,
        recovered: Some(60 * SECOND),
        lines: vec![("stateful-0".to_owned(), pid)],
    }
}

fn judged(book: &str, pages: &Pages, strikes: &[Strike]) -> Verdict {
    let wrote = Wrote::new(book);
    let mut verdict = Verdict { lease: 20 * SECOND, fleet: true, ..Verdict::default() };
    verdict.judge(&[wrote.server()], pages, strikes, &Seen::default());
    verdict
}

const BOOK: &str = "start - 1\nrun s0-a 1\nstart - 2\nrun s0-b 2\n";

#[test]
fn a_line_that_is_taken_over_in_time_is_no_finding_and_is_measured() {
    let verdict = judged(BOOK, &pages(&[("s0-a", 5), ("s0-b", 33)]), &[killed(1)]);
    assert_eq!(verdict.findings, Vec::<String>::new());
    assert_eq!(verdict.takeovers(), [23.0]);
}

#[test]
fn a_takeover_that_takes_too_long_or_never_comes_is_found() {
    let verdict = judged(BOOK, &pages(&[("s0-a", 5), ("s0-b", 36)]), &[killed(1)]);
    assert!(verdict.findings[0].contains("taken over after 26.0 s"), "{:?}", verdict.findings);
    let verdict = judged(BOOK, &pages(&[("s0-a", 5), ("s0-b", 36)]), &[killed(2)]);
    assert!(verdict.findings[0].contains("taken over never"), "{:?}", verdict.findings);
}

#[test]
fn two_processes_at_once_and_a_call_that_ran_twice_are_found() {
    let book = "start - 1\nstart - 2\nrun s0-b 2\nrun s0-a 1\nrun s0-a 2\n";
    let verdict = judged(book, &pages(&[("s0-a", 5), ("s0-b", 33)]), &[]);
    assert_eq!(verdict.counts, [1, 0, 0, 1]);
    assert_eq!(verdict.findings.len(), 2);
}

#[test]
fn a_stateless_gap_is_found_if_there_was_a_fault_and_if_not_is_told() {
    let mut with_gap = pages(&[("s0-a", 5), ("s0-b", 33)]);
    with_gap.probes.retain(|(at, _)| *at < 20 * SECOND || *at > 22 * SECOND);
    let verdict = judged(BOOK, &with_gap, &[killed(1)]);
    assert!(
        verdict.findings[0].contains("no stateless call was answered for 3.0 s"),
        "{:?}",
        verdict.findings
    );
    let verdict = judged(BOOK, &with_gap, &[]);
    assert_eq!((verdict.findings.len(), verdict.calm_gap), (0, 3 * SECOND));
}

#[test]
fn a_gap_in_which_the_machine_stood_still_is_no_finding() {
    let seen = Seen { stalls: vec![(23 * SECOND, 4 * SECOND)], ..Seen::default() };
    assert_eq!(seen.stalled(20 * SECOND, 22 * SECOND), 2 * SECOND);
    assert_eq!(seen.stalled(22 * SECOND, 40 * SECOND), SECOND);
    assert_eq!(seen.stalled(30 * SECOND, 40 * SECOND), Duration::ZERO);
}

#[test]
fn a_connection_that_breaks_for_no_reason_is_found() {
    for (at, findings) in [(30, 0), (80, 1)] {
        let mut broken = pages(&[("s0-a", 5), ("s0-b", 33)]);
        broken.broken.push((at * SECOND, "it broke".to_owned()));
        assert_eq!(judged(BOOK, &broken, &[killed(1)]).findings.len(), findings);
    }
}

#[test]
fn a_fleet_that_does_not_recover_is_found() {
    let strike = Strike { recovered: None, ..killed(1) };
    let verdict = judged(BOOK, &pages(&[("s0-a", 5), ("s0-b", 33)]), &[strike]);
    assert!(verdict.findings[0].contains("not every node"), "{:?}", verdict.findings);
}
