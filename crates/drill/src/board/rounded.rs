//! Results as they are kept beside the page: everything the board shows, and no more digits than anybody believes.

use super::matrix::MOST_FINDINGS;
use crate::results::fleet::{Fault, Spread};
use crate::results::{Results, Row};

/// At most so many characters of a finding, or of a moment's words.
const LONGEST: usize = 300;

/// At most so many moments of a timeline.
const MOST_MOMENTS: usize = 200;

/// The same results, small enough to be kept with the source.
#[must_use]
pub fn rounded(mut results: Results) -> Results {
    for target in &mut results.targets {
        target.rows.iter_mut().for_each(slim);
        if let Some(line) = &mut target.timeline {
            line.events.truncate(MOST_MOMENTS);
            for event in &mut line.events {
                event.ms = digits(event.ms);
                shorten(&mut event.text);
            }
        }
    }
    if let Some(fleet) = &mut results.fleet {
        fleet.findings.truncate(MOST_FINDINGS);
        fleet.findings.iter_mut().for_each(shorten);
        let spreads =
            |fault: &mut Fault| [fault.takeover_seconds.take(), fault.recovery_seconds.take()].map(fewer);
        fleet.takeover_seconds = fewer(fleet.takeover_seconds);
        for time in [
            &mut fleet.start_p99_seconds,
            &mut fleet.calm_stateless_gap_seconds,
            &mut fleet.longest_stall_seconds,
        ] {
            *time = digits(*time);
        }
        for fault in &mut fleet.faults {
            [fault.takeover_seconds, fault.recovery_seconds] = spreads(fault);
            fault.stateless_gap_seconds = digits(fault.stateless_gap_seconds);
        }
    }
    results
}

fn fewer(spread: Option<Spread>) -> Option<Spread> {
    spread.map(|Spread { count, p50, p99, max }| Spread {
        count,
        p50: digits(p50),
        p99: digits(p99),
        max: digits(max),
    })
}

fn slim(row: &mut Row) {
    for time in row.told_ms.iter_mut().chain(row.back_ms.iter_mut().flatten()) {
        *time = digits(*time);
    }
    // The page says how many more there are, so one beyond what it shows would be a lie.
    if let Some(more @ 1..) = row.findings.len().checked_sub(MOST_FINDINGS) {
        row.findings.truncate(MOST_FINDINGS - 1);
        row.findings.push(format!("… and {} more", more + 1));
    }
    row.findings.iter_mut().for_each(shorten);
}

/// Three digits that mean something.
fn digits(ms: f64) -> f64 {
    if ms == 0.0 || !ms.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powf(2.0 - ms.abs().log10().floor());
    (ms * scale).round() / scale
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push('…');
    }
}
