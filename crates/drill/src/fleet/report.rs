//! A verdict for people, and for programs.

use std::fmt;

use super::verdict::{Row, Verdict};
use crate::figures::{median, share};
use crate::results;
use crate::results::fleet::{Fault, Fleet, Spread};

/// The most findings that are told one by one.
const TOLD: usize = 25;

impl Verdict {
    /// The same as [`Display`](fmt::Display), for a program.
    pub fn results(&self) -> Fleet {
        let [twice, hung, wrong_verdicts, trees_on_two_nodes] = self.counts;
        let calls = &self.calls;
        let fault = |row: &Row| Fault {
            name: row.name.to_owned(),
            times: row.times,
            takeover_seconds: spread(&row.takeovers),
            recovery_seconds: spread(&row.recoveries),
            stateless_gap_seconds: row.gap.as_secs_f64(),
            broken: row.broken,
            sessions_forgotten: row.forgotten,
        };
        Fleet {
            seed: self.seed,
            seconds: self.seconds,
            agents: self.agents,
            servers: self.servers,
            lease_seconds: self.lease.as_secs_f64(),
            debug: cfg!(debug_assertions),
            fleet: self.fleet,
            missing: self.missing.clone(),
            findings: self.findings.clone(),
            twice,
            hung,
            wrong_verdicts,
            trees_on_two_nodes,
            looks: self.looks,
            longest_stall_seconds: self.stall.as_secs_f64(),
            calls: results::fleet::Calls {
                answered: calls.answered,
                unknown: calls.unknown,
                not_executed: calls.not_executed,
                broken: calls.broken,
                sessions_forgotten: calls.forgotten,
                sessions: calls.sessions,
                stateless_probes: calls.probes,
                stateless_probes_failed: calls.probes_failed,
            },
            takeover_seconds: spread(&self.takeovers()),
            start_p99_seconds: self.start.as_secs_f64(),
            calm_stateless_gap_seconds: self.calm_gap.as_secs_f64(),
            faults: self.rows.iter().map(fault).collect(),
        }
    }
}

fn spread(values: &[f64]) -> Option<Spread> {
    let of = |part: f64| share(values, part);
    (!values.is_empty()).then(|| Spread {
        count: values.len(),
        p50: median(values),
        p99: of(0.99),
        max: of(1.0),
    })
}

fn words(values: &[f64]) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    format!("{:.1} / {:.1}", median(values), share(values, 1.0))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.fleet {
            "three gateways, one fleet"
        } else {
            "three gateways that do not know each other"
        };
        writeln!(
            f,
            "{kind}; seed {}, {} agents, {} servers, {} s, lease {} s",
            self.seed,
            self.agents,
            self.servers,
            self.seconds,
            self.lease.as_secs()
        )?;
        for missing in &self.missing {
            writeln!(f, "left out: {missing}")?;
        }
        writeln!(
            f,
            "\n{:<46}{:>6}{:>20}{:>20}{:>12}{:>9}{:>7}",
            "FAULT", "TIMES", "TAKEOVER s p50/max", "RECOVERY s p50/max", "GAP s", "BROKEN", "404"
        )?;
        for Row { name, times, takeovers, recoveries, gap, broken, forgotten } in &self.rows {
            writeln!(
                f,
                "{name:<46}{times:>6}{:>20}{:>20}{:>12.2}{broken:>9}{forgotten:>7}",
                words(takeovers),
                words(recoveries),
                gap.as_secs_f64(),
            )?;
        }
        let calls = &self.calls;
        writeln!(
            f,
            "\n{} calls: {} answered, {} unknown ({} of them broken connections), {} not executed; {} sessions, {} not known when used",
            calls.answered + calls.unknown + calls.not_executed,
            calls.answered,
            calls.unknown,
            calls.broken,
            calls.not_executed,
            calls.sessions,
            calls.forgotten,
        )?;
        let takeovers = self.takeovers();
        writeln!(
            f,
            "{} takeovers of a line: p50 / max {} s; a server's own start: p99 {:.1} s; longest time without an answered stateless call \
             when there was no fault: {:.2} s; {} stateless probes were answered, {} were not",
            takeovers.len(),
            words(&takeovers),
            self.start.as_secs_f64(),
            self.calm_gap.as_secs_f64(),
            calls.probes,
            calls.probes_failed,
        )?;
        let [twice, hung, wrong, two_nodes] = self.counts;
        writeln!(
            f,
            "{twice} run twice, {hung} hung, {wrong} wrong verdicts, {two_nodes} lines alive on two nodes at once ({} looks, the latest {:.2} s late)",
            self.looks,
            self.stall.as_secs_f64()
        )?;
        for finding in self.findings.iter().take(TOLD) {
            writeln!(f, "BROKEN: {finding}")?;
        }
        if self.findings.len() > TOLD {
            writeln!(f, "and {} more", self.findings.len() - TOLD)?;
        }
        write!(f, "{}", if self.findings.is_empty() { "KEPT" } else { "NOT KEPT" })
    }
}
