//! Runs against books: the same rules for every target, by the one checker.

use std::time::Duration;

use super::agent::{HUNG, Made, Outcome};
use super::play::Run;
use crate::results::{Calls, Row};
use crate::scenario::{Kind, Scenario, Told};
use crate::{Asked, Book, Bounds, Finding, History, check};

/// The most findings of a row that are kept: one is enough to fail.
const FINDINGS: usize = 20;

/// What a busy machine may add before a call that was given its time counts as hung.
const GRACE: Duration = Duration::from_secs(1);

/// Adds a run to its row.
pub(crate) fn judge(row: &mut Row, scenario: &Scenario, mut run: Run, book: Option<&Book>) {
    let mut findings = std::mem::take(&mut run.findings);
    let mut history = History::default();
    let (mut counted, mut knocks) = (Calls::default(), Calls::default());
    for (nonce, made) in &run.calls {
        let calls = if run.knocks.contains(nonce) { &mut knocks } else { &mut counted };
        calls.made += 1;
        // A target that was killed could say nothing; nobody knows what ran.
        if is_closed_on_purpose(scenario, made) {
            calls.unknown += 1;
            continue;
        }
        // The server's own error says nothing of whether the call ran: there is nothing to hold against the book.
        if matches!(made.told, Some((_, Outcome::Own(_)))) {
            calls.answered += 1;
            continue;
        }
        let told = made.told.as_ref().map(|(at, outcome)| (*at, outcome.verdict()));
        history.calls.insert(nonce.clone(), Asked { at: made.at, safe: false, told });
        match made.told.as_ref().map(|(_, outcome)| (outcome, outcome.told())) {
            Some((_, Some(Told::Answered | Told::Processed))) => calls.answered += 1,
            Some((_, Some(Told::NotExecuted))) => calls.not_executed += 1,
            Some((_, Some(Told::Unknown))) => calls.unknown += 1,
            Some((Outcome::Empty | Outcome::Closed, _)) => calls.empty += 1,
            Some(_) => calls.unexplained += 1,
            None => calls.hung += 1,
        }
    }
    let mut calls = counted;
    let nowhere = Book::at("/dev/null");
    let bounds = Bounds { call: HUNG + GRACE, dials_per_second: usize::MAX, changes: 0 };
    for finding in check(&history, book.unwrap_or(&nowhere), bounds) {
        match &finding {
            Finding::RanTwice { .. } => calls.ran_twice += 1,
            // Without a book nobody knows what ran.
            Finding::WrongVerdict { .. } if scenario.server.kind == Kind::Node => continue,
            Finding::WrongVerdict { .. } => calls.wrong += 1,
            Finding::Causeless { nonce } => {
                let said =
                    run.calls[nonce].told.as_ref().map(|(_, outcome)| outcome.words()).unwrap_or_default();
                findings.push(format!("{finding}: {said}"));
                continue;
            }
            _ => {}
        }
        findings.push(finding.to_string());
    }
    row.runs += 1;
    row.calls.add(&calls);
    row.provable.add(run.provable);
    row.told_ms.extend(run.told_ms);
    row.back_ms.push(run.back_ms);
    let number = row.runs;
    let room = FINDINGS.saturating_sub(row.findings.len());
    row.findings.extend(findings.into_iter().take(room).map(|finding| format!("run {number}: {finding}")));
    row.kept = row.findings.is_empty();
}

fn is_closed_on_purpose(scenario: &Scenario, made: &Made) -> bool {
    let may = scenario.load.iter().any(|load| load.tool == made.tool && load.told.contains(&Told::Closed));
    may && matches!(made.told, Some((_, Outcome::Closed)))
}
