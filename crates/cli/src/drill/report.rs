//! What a drill came to, as a table: a line per row and target, a line per promise, and whatever must not be.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use linetender_drill::drills::Verdict;
use linetender_drill::figures::share;
use linetender_drill::results::{Results, Row, Target};

use crate::table::{Cell, Table};

/// The most findings that are told of a row.
const FINDINGS: usize = 3;

const HEAD: [&str; 16] = [
    "ROW",
    "ERA",
    "RUNS",
    "CALLS",
    "ANSWERED",
    "UNKNOWN",
    "NOT RUN",
    "REFUSED",
    "HUNG",
    "TWICE",
    "AGAIN",
    "WRONG",
    "UNEXPLAINED",
    "TOLD",
    "BACK",
    "VERDICT",
];

fn good() -> Style {
    Style::new().fg_color(Some(AnsiColor::Green.into()))
}

fn bad() -> Style {
    Style::new().fg_color(Some(AnsiColor::Red.into())).bold()
}

/// Prints it; to stderr where stdout belongs to a program.
pub(super) fn print(results: &Results, to_stderr: bool) {
    let mut text = String::new();
    for target in &results.targets {
        let _ = writeln!(text, "{} {} ({})", target.name, target.version, target.settings);
        text.push_str(&table(&target.rows).fitted(None));
        text.push_str(&findings(&target.rows));
        text.push_str(&promises(target));
        text.push('\n');
    }
    if results.is_empty() {
        let _ = writeln!(text, "{}no scenario was run{}", bad().render(), bad().render_reset());
    }
    let _ = writeln!(text, "seed {}, policy {}, {}", results.seed, results.policy, results.machine);
    say(&text, to_stderr);
}

fn say(text: &str, to_stderr: bool) {
    if to_stderr { anstream::eprint!("{text}") } else { anstream::print!("{text}") }
}

/// Prints a soak's.
pub(super) fn print_soak(verdict: &Verdict, to_stderr: bool) {
    let style = if verdict.kept() { good() } else { bad() };
    let text = verdict.to_string();
    let (figures, last) = text.rsplit_once('\n').unwrap_or(("", &text));
    let rows = table(&verdict.rows).fitted(None);
    say(&format!("{rows}{figures}\n{}{last}{}\n", style.render(), style.render_reset()), to_stderr);
}

fn table(rows: &[Row]) -> Table<16> {
    let mut table = Table::new(HEAD);
    for row in rows {
        let calls = &row.calls;
        let verdict = match (&row.skipped, row.kept) {
            (Some(why), _) => Cell::plain(&format!("skipped: {why}")),
            (None, true) => Cell::styled("kept", good()),
            (None, false) if row.runs == 0 && row.findings.is_empty() => Cell::plain("not drawn"),
            (None, false) => Cell::styled("BROKEN", bad()),
        };
        if row.runs == 0 {
            let mut cells = [const { Cell::none() }; 16];
            (cells[0], cells[1], cells[15]) = (Cell::plain(&row.row), Cell::plain(&row.era), verdict);
            table.row(cells);
            continue;
        }
        let back: Vec<_> = row.back_ms.iter().flatten().copied().collect();
        table.row([
            Cell::plain(&row.row),
            Cell::plain(&row.era),
            Cell::number(row.runs),
            Cell::number(calls.made),
            Cell::number(calls.answered),
            Cell::number(calls.unknown),
            Cell::number(calls.not_executed),
            Cell::number(calls.refused),
            Cell::number(calls.hung),
            Cell::number(calls.ran_twice),
            Cell::number(calls.ran_again_by_refusal),
            Cell::number(calls.wrong),
            Cell::number(calls.unexplained + calls.empty),
            Cell::number(times(&row.told_ms)),
            Cell::number(times(&back)),
            verdict,
        ]);
    }
    table
}

/// The median, and what 99 of a hundred stay below, in milliseconds.
fn times(all: &[f64]) -> String {
    match all {
        [] => "-".to_owned(),
        [one] => format!("{one:.0} ms"),
        _ => format!("{:.0}/{:.0} ms", share(all, 0.5), share(all, 0.99)),
    }
}

fn findings(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.findings.is_empty()) {
        for finding in row.findings.iter().take(FINDINGS) {
            let _ = writeln!(text, "  {} ({}): {finding}", row.row, row.era);
        }
        if row.findings.len() > FINDINGS {
            let _ = writeln!(text, "  {} ({}): and {} more", row.row, row.era, row.findings.len() - FINDINGS);
        }
    }
    text
}

/// A line for each promise that was put to the test.
fn promises(target: &Target) -> String {
    let mut by_promise: BTreeMap<&str, (usize, u64, usize)> = BTreeMap::new();
    for row in target.rows.iter().filter(|row| row.skipped.is_none()) {
        for promise in &row.promises {
            let (rows, calls, broken) = by_promise.entry(promise).or_default();
            *rows += 1;
            *calls += row.calls.made;
            *broken += usize::from(!row.kept);
        }
    }
    let mut text = String::new();
    for (promise, (rows, calls, broken)) in by_promise {
        let (style, word) = if broken == 0 { (good(), "kept") } else { (bad(), "BROKEN") };
        let _ = write!(
            text,
            "{promise} {}{word}{}, {rows} scenarios, {calls} calls",
            style.render(),
            style.render_reset()
        );
        if broken > 0 {
            let _ = write!(text, ", {broken} broken");
        }
        text.push('\n');
    }
    text
}
