//! The judge's last word: books against histories, and the figures of a run.

use std::fmt;

use linetender_badserver::{Book, Bounds, Finding, History, check};
use serde_json::json;

use super::agent::HUNG;
use super::house::Server;
use super::notes::Pages;
use super::principals::Tally;
use super::serve::Has;
use crate::figures::{median, share};

/// What a run came to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What must not be; empty is good.
    pub findings: Vec<String>,
    pub(super) seed: u64,
    pub(super) agents: usize,
    pub(super) servers: usize,
    pub(super) missing: Vec<String>,
    pub(super) faults: Vec<(&'static str, u32)>,
    pub(super) calls: Calls,
    pub(super) looks: u64,
    pub(super) trees: usize,
    pub(super) before: Has,
    pub(super) after: Has,
    /// For each pair of windows: p99 under faults and without them, in milliseconds.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Calls whose audit was held against what agents were told, and those of them that the gateway refused at its door.
    pub(super) agreed: (usize, u64),
    /// How many principals there were, and what reached them.
    pub(super) isolation: Option<(usize, Tally)>,
}

/// What callers were told, all in all.
#[derive(Debug, Default)]
pub(super) struct Calls {
    answered: usize,
    unknown: usize,
    not_executed: usize,
    processed: usize,
    abandoned: u64,
    sessions: u64,
    notifications: u64,
}

impl Verdict {
    /// Holds what agents were told against what each server wrote down.
    pub(super) fn judge(&mut self, servers: &[Server], pages: &Pages) {
        self.findings.extend(pages.findings.iter().cloned());
        let bounds = Bounds { call: HUNG, dials_per_second: usize::MAX, changes: 0 };
        for (number, server) in servers.iter().enumerate() {
            let history = &pages.histories[number];
            self.calls.add(history);
            let empty = Book::at("/dev/null");
            let book = server.book.as_ref().unwrap_or(&empty);
            let found = check(history, book, bounds);
            // Without a book nobody knows what ran.
            let known =
                |finding: &Finding| server.book.is_some() || !matches!(finding, Finding::WrongVerdict { .. });
            self.findings.extend(
                found.iter().filter(|f| known(f)).map(|finding| format!("{}: {finding}", server.name)),
            );
            for (nonce, runs) in book.runs() {
                // Calls that were taken back are not in the history, and must not run twice either.
                if runs > 1 && !history.calls.contains_key(&nonce) && nonce.starts_with('s') {
                    self.findings.push(format!("{}: {}", server.name, Finding::RanTwice { nonce, runs }));
                } else if nonce.starts_with('s') && !nonce.starts_with(&format!("s{number}-")) {
                    self.findings.push(format!("{}: ran {nonce}, which was for another", server.name));
                }
            }
        }
        (self.calls.abandoned, self.calls.sessions) = (pages.abandoned, pages.sessions);
        self.calls.notifications = pages.notifications;
        self.pairs = pairs(&pages.samples);
    }

    /// The median of ratios, and the lowest and highest of them.
    pub fn ratio(&self) -> (f64, f64, f64) {
        let ratios: Vec<_> = self.pairs.iter().map(|(with, without)| with / without).collect();
        (median(&ratios), share(&ratios, 0.0), share(&ratios, 1.0))
    }

    /// The same as [`Display`](fmt::Display), for a program.
    pub fn json(&self) -> String {
        let (ratio, lowest, highest) = self.ratio();
        let has = |has: &Has| json!({ "processes": has.processes, "descriptors": has.descriptors, "sockets": has.sockets, "kib": has.kib });
        let isolation = self.isolation.as_ref().map(|(count, tally)| {
            let mut isolation = tally.json();
            isolation["principals"] = (*count).into();
            isolation
        });
        json!({
            "isolation": isolation,
            "seed": self.seed, "agents": self.agents, "servers": self.servers, "missing": self.missing,
            "findings": self.findings,
            "compared": { "calls": self.agreed.0, "refusedAtTheDoor": self.agreed.1 },
            "faults": self.faults.iter().map(|(name, times)| json!({ "name": name, "times": times })).collect::<Vec<_>>(),
            "calls": {
                "answered": self.calls.answered, "unknown": self.calls.unknown, "notExecuted": self.calls.not_executed,
                "processed": self.calls.processed, "abandoned": self.calls.abandoned,
            },
            "sessions": self.calls.sessions, "notifications": self.calls.notifications,
            "before": has(&self.before), "after": has(&self.after),
            "p99": { "ratio": ratio, "lowest": lowest, "highest": highest, "pairs": self.pairs },
        })
        .to_string()
    }
}

impl Calls {
    fn add(&mut self, history: &History) {
        for asked in history.calls.values() {
            match &asked.told {
                Some((_, Ok(()))) => self.answered += 1,
                Some((_, Err(failure))) if failure.not_executed() => self.not_executed += 1,
                Some((_, Err(failure))) if failure.answered() => self.processed += 1,
                Some((_, Err(_))) | None => self.unknown += 1,
            }
        }
    }
}

/// Odd windows are those with faults; each is held against the one after it.
fn pairs(samples: &[(u32, f64)]) -> Vec<(f64, f64)> {
    let p99 = |window: u32| {
        let times: Vec<_> = samples.iter().filter(|(of, _)| *of == window).map(|(_, time)| *time).collect();
        share(&times, 0.99)
    };
    let last = samples.iter().map(|(window, _)| *window).max().unwrap_or(0);
    let both = (1..=last).step_by(2).map(|window| (p99(window), p99(window + 1)));
    both.filter(|(with, without)| with.is_finite() && without.is_finite()).collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calls { answered, unknown, not_executed, processed, abandoned, sessions, notifications } =
            &self.calls;
        writeln!(
            f,
            "seed {}: {} agents on {} servers, {sessions} sessions",
            self.seed, self.agents, self.servers
        )?;
        for missing in &self.missing {
            writeln!(f, "left out: {missing}")?;
        }
        writeln!(f, "{} faults:", self.faults.iter().map(|(_, times)| times).sum::<u32>())?;
        for (name, times) in &self.faults {
            writeln!(f, "  {times:>4} × {name}")?;
        }
        writeln!(
            f,
            "{} calls: {answered} answered, {unknown} unknown, {not_executed} not executed, {processed} processed and \
             unreadable; {abandoned} more left in the middle; {notifications} notifications",
            answered + unknown + not_executed + processed,
        )?;
        if let Some((count, tally)) = &self.isolation {
            write!(f, "{count} principals:\n{tally}")?;
            if !tally.missing().is_empty() {
                writeln!(f, "never in this run: {}", tally.missing().join(", "))?;
            }
        } else {
            self.ratios(f)?;
        }
        let (before, after) = (&self.before, &self.after);
        writeln!(
            f,
            "the gateway at rest, before and after: {} and {} processes below it, {} and {} descriptors ({} and {} sockets), \
             {} and {} KiB",
            before.processes,
            after.processes,
            before.descriptors,
            after.descriptors,
            before.sockets,
            after.sockets,
            before.kib,
            after.kib,
        )?;
        writeln!(f, "{} looks at its processes; {} trees at the end", self.looks, self.trees)?;
        let (agreed, at_the_door) = self.agreed;
        writeln!(
            f,
            "{agreed} calls compared with status and audit; {at_the_door} of them were refused at the door"
        )?;
        if self.findings.is_empty() {
            return write!(
                f,
                "0 hung, 0 run twice, 0 wrong verdicts, 0 at the wrong agent, 0 causeless, 0 left over"
            );
        }
        for finding in &self.findings {
            writeln!(f, "BROKEN: {finding}")?;
        }
        Ok(())
    }
}

impl Verdict {
    fn ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ratio, lowest, highest) = self.ratio();
        writeln!(
            f,
            "p99 of servers that nobody touched, with / without faults: median {ratio:.2} of {} pairs, {lowest:.2} … {highest:.2}",
            self.pairs.len(),
        )?;
        for (with, without) in &self.pairs {
            writeln!(f, "  {with:>8.2} ms / {without:>8.2} ms = {:.2}", with / without)?;
        }
        Ok(())
    }
}
