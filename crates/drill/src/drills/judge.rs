//! Runs against books: the same rules for every target, by the one checker.

use std::time::Duration;

use linetender_badserver::{Asked, Book, Bounds, Finding, History, check, ran_again_by_refusal};

use super::agent::{Made, Outcome};
use super::play::Run;
use crate::results::{Calls, Provable, Row};
use crate::scenario::{Kind, Load, Scenario, Told};

/// The most findings of a row that are kept: one is enough to fail.
const FINDINGS: usize = 20;

/// What a busy machine may add before a call that was given its time counts as hung.
const GRACE: Duration = Duration::from_secs(1);

/// Adds a run to its row. `believed` are the refusals after which the target may send a call again.
pub(crate) fn judge(
    row: &mut Row,
    scenario: &Scenario,
    mut run: Run,
    book: Option<&Book>,
    believed: &'static [&'static str],
) {
    let mut findings = std::mem::take(&mut run.findings);
    let mut history = History { believed, ..History::default() };
    let (mut counted, mut knocks) = (Calls::default(), Calls::default());
    let attempts = book.map(Book::attempts);
    let of = |nonce: &str| attempts.as_ref().map(|all| all.get(nonce).map(Vec::as_slice).unwrap_or_default());
    for (nonce, made) in &run.calls {
        let calls = if run.knocks.contains(nonce) { &mut knocks } else { &mut counted };
        calls.made += 1;
        let load = run.loads.get(nonce).map(|load| &scenario.load[*load]);
        let ran = of(nonce).map(|attempts| attempts.iter().any(|attempt| attempt.runs > 0));
        if !is_answered(made) && is_doomed(load, ran) {
            calls.doomed += 1;
        }
        let missed = of(nonce).is_some_and(|all| all.first().is_some_and(|first| first.runs == 0))
            || load.is_some_and(|load| load.provable)
            || (ran == Some(false) && !is_answered(made));
        if missed && load.is_some() {
            let recovered = u64::from(matches!(made.told, Some((_, Outcome::Answered(_)))));
            row.not_run.add(Provable { calls: 1, recovered });
        }
        calls.ran_again_by_refusal +=
            u64::from(of(nonce).is_some_and(|all| ran_again_by_refusal(all, believed)));
        if let (Some(sent), Some(reached)) = (run.sent.get(nonce), of(nonce))
            && (*sent as usize) < reached.len()
        {
            findings.push(format!("{nonce} came {} times, and linetender reported {sent}", reached.len()));
        }
        // A target that was killed could say nothing; nobody knows what ran.
        if is_closed_on_purpose(scenario, made) {
            calls.unknown += 1;
            continue;
        }
        let told = made.told.as_ref().map(|(at, outcome)| (*at, outcome.verdict()));
        history.calls.insert(nonce.clone(), Asked { at: made.at, safe: false, told });
        match made.told.as_ref().map(|(_, outcome)| (outcome, outcome.told())) {
            Some((_, Some(Told::Answered | Told::Processed))) => calls.answered += 1,
            Some((_, Some(Told::NotExecuted))) => calls.not_executed += 1,
            Some((_, Some(Told::Refused))) => calls.refused += 1,
            Some((_, Some(Told::Unknown))) => calls.unknown += 1,
            Some((Outcome::Empty | Outcome::Closed, _)) => calls.empty += 1,
            Some(_) => calls.unexplained += 1,
            None => calls.hung += 1,
        }
    }
    let mut calls = counted;
    let nowhere = Book::at("/dev/null");
    let bounds = Bounds {
        call: Duration::from_millis(scenario.expect.hung_ms) + GRACE,
        dials_per_second: usize::MAX,
        changes: 0,
    };
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

/// Whether nobody could have answered this call. One that its scenario lets nobody answer is known; where that is left to
/// chance, one that ran died with its server, and one that did not might have been sent again.
fn is_doomed(load: Option<&Load>, ran: Option<bool>) -> bool {
    match load.map(|load| load.told.as_slice()) {
        // The next call has a server, or could wait for one.
        None | Some([Told::Answered]) => false,
        Some(told) if !told.contains(&Told::Answered) => true,
        // Without a book nobody knows.
        Some(_) => ran.unwrap_or(true),
    }
}

fn is_answered(made: &Made) -> bool {
    let told = made.told.as_ref().and_then(|(_, outcome)| outcome.told());
    matches!(told, Some(Told::Answered | Told::Processed))
}

fn is_closed_on_purpose(scenario: &Scenario, made: &Made) -> bool {
    let may = scenario.load.iter().any(|load| load.tool == made.tool && load.told.contains(&Told::Closed));
    may && matches!(made.told, Some((_, Outcome::Closed)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::agent::{Made, Outcome};
    use super::super::play::Run;
    use super::judge;
    use crate::results::{Calls, Row};
    use crate::scenario::Scenario;
    use linetender_badserver::Book;

    /// What three calls of the only load of a scenario, and the next call, come to if all of them fail; the book says that
    /// the first ran.
    fn all_fail(scenario: &str) -> Calls {
        let scenario = Scenario::all().unwrap().into_iter().find(|known| known.name == scenario).unwrap();
        let path =
            std::env::temp_dir().join(format!("linetender-judge-{}-{}", scenario.name, std::process::id()));
        std::fs::write(&path, "run 0e 1\n").unwrap();
        let failed = || Made {
            at: Duration::ZERO,
            tool: "write".to_owned(),
            told: Some((Duration::ZERO, Outcome::Error("Connection closed".to_owned()))),
        };
        let mut run = Run::default();
        for nonce in ["0e", "1e", "2e", "next"] {
            run.calls.insert(nonce.to_owned(), failed());
            if nonce != "next" {
                run.loads.insert(nonce.to_owned(), 0);
            }
        }
        let mut row = Row::default();
        judge(&mut row, &scenario, run, Some(&Book::at(path)), &[]);
        row.calls
    }

    #[test]
    fn a_call_at_work_when_its_server_is_killed_is_lost_by_nobody() {
        let calls = all_fail("S05");
        assert_eq!((calls.made, calls.doomed, calls.lost(), calls.answerable()), (4, 3, 1, 1));
    }

    #[test]
    fn where_a_call_may_go_either_way_only_one_that_ran_is_doomed() {
        let calls = all_fail("S05-rush");
        assert_eq!((calls.doomed, calls.lost()), (1, 3));
    }

    #[test]
    fn a_call_that_has_to_be_answered_is_lost_even_if_it_ran() {
        let calls = all_fail("S13");
        assert_eq!((calls.doomed, calls.lost()), (0, 4));
    }
}
