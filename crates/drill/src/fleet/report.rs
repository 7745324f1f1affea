//! A verdict for people, and for programs.

use std::fmt;

use serde_json::{Value, json};

use super::verdict::{Row, Verdict};
use crate::figures::{median, share};

/// The most findings that are told one by one.
const TOLD: usize = 25;

impl Verdict {
    /// The same as [`Display`](fmt::Display), for a program.
    pub fn json(&self) -> Value {
        let takeovers = self.takeovers();
        let [twice, hung, wrong, two_nodes] = self.counts;
        let calls = &self.calls;
        json!({
            "seed": self.seed, "seconds": self.seconds, "agents": self.agents, "servers": self.servers,
            "leaseSeconds": self.lease.as_secs_f64(), "fleet": self.fleet, "missing": self.missing,
            "findings": self.findings,
            "twice": twice, "hung": hung, "wrongVerdicts": wrong, "treesOnTwoNodes": two_nodes, "looks": self.looks,
            "calls": {
                "answered": calls.answered, "unknown": calls.unknown, "notExecuted": calls.not_executed,
                "broken": calls.broken, "sessionsForgotten": calls.forgotten, "sessions": calls.sessions,
                "statelessProbes": calls.probes, "others": calls.others,
            },
            "takeoverSeconds": spread(&takeovers),
            "startP99Seconds": self.start.as_secs_f64(),
            "calmStatelessGapSeconds": self.calm_gap.as_secs_f64(),
            "faults": self.rows.iter().map(|row| json!({
                "name": row.name, "times": row.times,
                "takeoverSeconds": spread(&row.takeovers), "recoverySeconds": spread(&row.recoveries),
                "statelessGapSeconds": row.gap.as_secs_f64(),
                "broken": row.broken, "sessionsForgotten": row.forgotten,
            })).collect::<Vec<_>>(),
        })
    }
}

/// Of how many, and the middle, p99 and longest of them.
fn spread(values: &[f64]) -> Value {
    if values.is_empty() {
        return Value::Null;
    }
    json!({ "count": values.len(), "p50": median(values), "p99": share(values, 0.99), "max": share(values, 1.0) })
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
        for (what, times) in &calls.others {
            writeln!(f, "{what}: {times}")?;
        }
        let takeovers = self.takeovers();
        writeln!(
            f,
            "{} takeovers of a line: p50 / max {} s; a server's own start: p99 {:.1} s; longest time without an answered stateless call \
             when there was no fault: {:.2} s, of {} probes",
            takeovers.len(),
            words(&takeovers),
            self.start.as_secs_f64(),
            self.calm_gap.as_secs_f64(),
            calls.probes,
        )?;
        let [twice, hung, wrong, two_nodes] = self.counts;
        writeln!(
            f,
            "{twice} run twice, {hung} hung, {wrong} wrong verdicts, {two_nodes} lines alive on two nodes at once ({} looks)",
            self.looks
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
